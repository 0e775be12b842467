/* Which programs can hold: what each one's top-level `and` needs of host, method and path, looked up by the request's. A
 * program is left out only when one of those conditions is no; these never end in an error, and with a no in its `and` the
 * whole is no, whatever the rest is. */
#include "common/expr/program_priv.h"

static void set_bit(struct expr_candidates *c, size_t program)
{
    c->bits[program / 64] |= UINT64_C(1) << program % 64;
}

/* ---- what a program needs ---- */

/* Texts of which the field must equal one or, of a path, begin with one. */
struct need {
    const struct str *items;
    size_t n;
};

/* False: p says nothing of the kind. */
static bool need_of(const struct predicate *p, bool beginning, struct need *out)
{
    if (p->kind == TEXT_IS || (beginning && p->kind == TEXT_BEGINS))
        *out = (struct need){&p->text, 1};
    else if (p->kind == TEXT_IN)
        *out = (struct need){p->texts.items, p->texts.n};
    else if (beginning && p->kind == TEXT_WILDCARD)
        *out = (struct need){&p->wildcard.pieces[0], 1};
    else
        return false;
    return true;
}

static size_t shortest(const struct need *need)
{
    size_t len = SIZE_MAX;

    for (size_t i = 0; i < need->n; i++)
        if (need->items[i].len < len)
            len = need->items[i].len;
    return len;
}

/* The most telling one of what must hold: the one with the longest texts. False: there is none. */
static bool find_need(const struct expr_set *set, const struct program *program, enum field field, struct need *out)
{
    const struct chain *top = program->first_chain < 0 ? NULL : &program->chains[program->first_chain];
    bool found = false;

    if (top == NULL || !top->inverted || top->if_any != END_NO)
        return false;
    for (size_t i = 0; i < top->n_leaves; i++) {
        const struct predicate *p = &set->predicates[top->leaves[i].predicate];
        struct need need;

        if (top->leaves[i].negated || p->field != field || !need_of(p, field == FIELD_HTTP_PATH, &need))
            continue;
        if (!found || shortest(&need) > shortest(out))
            *out = need;
        found = true;
    }
    return found;
}

/* ---- tables ---- */

static struct str fold_into(char *p, struct str s)
{
    s = str_sub(s, 0, PATH_PREFIX_MAX);
    for (size_t i = 0; i < s.len; i++)
        p[i] = ascii_lower(s.p[i]);
    return (struct str){p, s.len};
}

MUSTUSE static bool keep_literal(struct expr_set *set, enum field field, struct str text, struct str *out)
{
    char *p;

    *out = text;
    if (field != FIELD_HTTP_PATH)
        return true;
    p = arena_take_bytes(set->arena, PATH_PREFIX_MAX);
    if (p != NULL)
        *out = fold_into(p, text);
    return p != NULL;
}

MUSTUSE static bool build_table(struct expr_set *set, enum field field, struct arena *scratch, struct text_table *table,
                                struct expr_candidates *any)
{
    struct literal *literals;
    struct need need;
    size_t n = 0, at = 0;

    for (size_t i = 0; i < set->n_programs; i++) {
        if (find_need(set, &set->programs[i], field, &need))
            n += need.n;
        else
            set_bit(any, i);
    }
    literals = ARENA_NEW_N(scratch, n, struct literal);
    if (literals == NULL)
        return false;
    for (size_t i = 0; i < set->n_programs; i++) {
        if (!find_need(set, &set->programs[i], field, &need))
            continue;
        for (size_t j = 0; j < need.n; j++) {
            literals[at].id = (uint32_t)i;
            if (!keep_literal(set, field, need.items[j], &literals[at++].text))
                return false;
        }
    }
    return text_table_build(table, field == FIELD_HTTP_PATH ? PART_BEGINNING : PART_WHOLE, literals, n, set->arena, scratch);
}

/* Reading the index costs as much as running some programs: it is worth it where it can leave out that many. */
enum { USEFUL_PROGRAMS_MIN = 16 };

static size_t count_useful(const struct expr_set *set)
{
    const struct index *x = &set->index;
    size_t n = set->n_programs;

    for (size_t i = 0; i < EXPR_PROGRAMS_MAX / 64; i++)
        n -= (size_t)__builtin_popcountll(x->any_host.bits[i] & x->any_method.bits[i] & x->any_path.bits[i]);
    return n;
}

bool index_build(struct expr_set *set, struct arena *scratch)
{
    struct index *x = &set->index;
    bool ok = build_table(set, FIELD_HTTP_HOST, scratch, &x->hosts, &x->any_host) &&
              build_table(set, FIELD_HTTP_METHOD, scratch, &x->methods, &x->any_method) &&
              build_table(set, FIELD_HTTP_PATH, scratch, &x->paths, &x->any_path);

    x->pays = ok && count_useful(set) >= USEFUL_PROGRAMS_MIN;
    return ok;
}

void expr_run_candidates(const struct expr_run *run, struct expr_candidates *out)
{
    const struct index *x = &run->set->index;
    struct expr_candidates host = x->any_host, method = x->any_method, path = x->any_path;
    char folded[PATH_PREFIX_MAX];
    text_table_mark(&x->hosts, run->facts->host, host.bits);
    text_table_mark(&x->methods, run->facts->method, method.bits);
    if (x->paths.n_lengths > 0)
        text_table_mark(&x->paths, fold_into(folded, run->facts->path), path.bits);
    for (size_t i = 0; i < EXPR_PROGRAMS_MAX / 64; i++)
        out->bits[i] = host.bits[i] & method.bits[i] & path.bits[i];
}

void expr_run_worth_asking(const struct expr_run *run, struct expr_candidates *out)
{
    if (run->set->index.pays)
        expr_run_candidates(run, out);
    else
        memset(out, UINT8_MAX, sizeof(*out));
}
