/* Proves that expressions never match: two conditions that must both hold and that no request meets together. What is
 * not proven is taken as possible. */
#include "common/expr/literal_priv.h"

enum { SCRATCH_BLOCK_BYTES = 4096, CONDITION_SHOWN = 120 };

/* A condition that must hold: its positive form, or where `positive` is false the negation of that. */
struct fact {
    const struct condition *c;
    bool positive;
    struct wildcard wildcard; /* of the two wildcard operators */
};

struct facts {
    struct fact items[EXPR_CONDITIONS_MAX];
    size_t n;
};

struct search {
    struct arena scratch;
    bool told; /* at and text hold the reason; the first one is told */
    const struct condition *at;
    struct buf *text;
};

static bool is_listed(enum op op)
{
    return op == OP_EQ || op == OP_NE || op == OP_IN || op == OP_NOT_IN;
}

/* ---- texts and signals ---- */

/* Whether the positive form of f has text, which may be unknown. */
static enum match has_text(const struct fact *f, struct str text)
{
    const struct condition *c = f->c;
    bool has = false;

    switch (c->op) {
    case OP_EQ:
    case OP_NE:
    case OP_IN:
    case OP_NOT_IN:
        for (size_t i = 0; i < c->n_values; i++)
            has = has || str_eq(c->values[i].text, text);
        break;
    case OP_CONTAINS:
        has = str_find(text, c->values->text) != SIZE_MAX;
        break;
    case OP_STARTS_WITH:
        has = str_starts(text, c->values->text);
        break;
    case OP_ENDS_WITH:
        has = str_ends(text, c->values->text);
        break;
    case OP_WILDCARD:
    case OP_STRICT_WILDCARD:
        has = wildcard_matches(&f->wildcard, text);
        break;
    case OP_MATCHES:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
    case OP_N:
        return MATCH_ERROR;
    }
    return has ? MATCH_YES : MATCH_NO;
}

static bool all_texts(const struct fact *listed, const struct fact *f, enum match answer)
{
    for (size_t i = 0; i < listed->c->n_values; i++)
        if (has_text(f, listed->c->values[i].text) != answer)
            return false;
    return true;
}

/* What every text that f has begins (at_end: ends) with; empty when nothing is known. folded: but for its case. */
static struct str affix(const struct fact *f, bool at_end)
{
    if (f->c->op == (at_end ? OP_ENDS_WITH : OP_STARTS_WITH))
        return f->c->values->text;
    return f->wildcard.n_pieces == 0 ? STR_NONE : f->wildcard.pieces[at_end ? f->wildcard.n_pieces - 1 : 0];
}

static bool is_folded(const struct fact *f)
{
    return f->c->op == OP_WILDCARD;
}

/* Whether no text has both beginnings (at_end: endings). */
static bool affixes_differ(const struct fact *p, const struct fact *q, bool at_end)
{
    struct str a = affix(p, at_end), b = affix(q, at_end);
    size_t n = a.len < b.len ? a.len : b.len;

    a = at_end ? str_sub(a, a.len - n, a.len) : str_sub(a, 0, n);
    b = at_end ? str_sub(b, b.len - n, b.len) : str_sub(b, 0, n);
    return is_folded(p) || is_folded(q) ? !str_eq_nocase(a, b) : !str_eq(a, b);
}

static bool texts_apart(const struct fact *p, const struct fact *q)
{
    if (is_listed(p->c->op))
        return all_texts(p, q, MATCH_NO);
    if (is_listed(q->c->op))
        return all_texts(q, p, MATCH_NO);
    return affixes_differ(p, q, false) || affixes_differ(p, q, true);
}

static bool texts_within(const struct fact *p, const struct fact *q)
{
    enum op op = p->c->op;
    struct str text = q->c->values->text;

    if (is_listed(op))
        return all_texts(p, q, MATCH_YES);
    if (op == q->c->op && str_eq(p->c->values->text, text))
        return true;
    if (q->c->op == OP_CONTAINS)
        return (op == OP_CONTAINS || op == OP_STARTS_WITH || op == OP_ENDS_WITH) &&
               str_find(p->c->values->text, text) != SIZE_MAX;
    if (is_folded(p))
        return false;
    return (q->c->op == OP_STARTS_WITH && str_starts(affix(p, false), text)) ||
           (q->c->op == OP_ENDS_WITH && str_ends(affix(p, true), text));
}

/* ---- numbers and addresses: both are ranges ---- */

struct span {
    int64_t first, last;
};

/* The i-th range of what the positive form of c has; false when it is empty. */
static bool int_span(const struct condition *c, size_t i, struct span *out)
{
    int64_t first = c->values[i].ints.first, last = c->values[i].ints.last;

    *out = (struct span){first, last};
    if (c->op == OP_LT || c->op == OP_LE)
        *out = (struct span){INT64_MIN, c->op == OP_LE || last == INT64_MIN ? last : last - 1};
    if (c->op == OP_GT || c->op == OP_GE)
        *out = (struct span){c->op == OP_GE || first == INT64_MAX ? first : first + 1, INT64_MAX};
    return !(c->op == OP_LT && last == INT64_MIN) && !(c->op == OP_GT && first == INT64_MAX);
}

static bool address_is_v4(const struct addr_range *r)
{
    return addr_is_v4(&r->first) && addr_is_v4(&r->last);
}

enum relation { APART, WITHIN, ACROSS };

/* How the i-th range of p lies to the j-th of q. */
static enum relation relation(const struct condition *p, size_t i, const struct condition *q, size_t j)
{
    const struct addr_range *a = &p->values[i].range, *b = &q->values[j].range;
    struct span s, t;

    if (field_info(p->field)->type == T_INT) {
        if (!int_span(p, i, &s) || !int_span(q, j, &t) || s.last < t.first || t.last < s.first)
            return APART;
        return t.first <= s.first && s.last <= t.last ? WITHIN : ACROSS;
    }
    if (address_is_v4(a) != address_is_v4(b) || addr_cmp(&a->last, &b->first) < 0 || addr_cmp(&b->last, &a->first) < 0)
        return APART;
    return addr_cmp(&b->first, &a->first) <= 0 && addr_cmp(&a->last, &b->last) <= 0 ? WITHIN : ACROSS;
}

static bool ranges_apart(const struct condition *p, const struct condition *q)
{
    for (size_t i = 0; i < p->n_values; i++)
        for (size_t j = 0; j < q->n_values; j++)
            if (relation(p, i, q, j) != APART)
                return false;
    return true;
}

static bool ranges_within(const struct condition *p, const struct condition *q)
{
    for (size_t i = 0; i < p->n_values; i++) {
        bool within = false;

        for (size_t j = 0; j < q->n_values; j++)
            within = within || relation(p, i, q, j) == WITHIN;
        if (!within)
            return false;
    }
    return true;
}

/* ---- two facts ---- */

static bool truth_wanted(const struct fact *f)
{
    return f->c->values->truth == f->positive;
}

/* Whether no value has what the positive forms of both ask for. */
static bool apart(const struct fact *p, const struct fact *q)
{
    if ((field_info(p->c->field)->type & (T_INT | T_IP)) != 0)
        return ranges_apart(p->c, q->c);
    return texts_apart(p, q);
}

/* Whether every value that the positive form of p asks for has what that of q asks for. */
static bool within(const struct fact *p, const struct fact *q)
{
    if ((field_info(p->c->field)->type & (T_INT | T_IP)) != 0)
        return ranges_within(p->c, q->c);
    return texts_within(p, q);
}

static bool same_values(const struct condition *a, const struct condition *b)
{
    if (a->field != b->field)
        return false;
    return field_info(a->field)->key == KEY_HEADER ? str_eq_nocase(a->key, b->key) : str_eq(a->key, b->key);
}

/* A list may have one value for each of two positive facts; one value that a negative fact excludes it has not. */
static bool contradict(const struct fact *p, const struct fact *q)
{
    const struct field_info *info = field_info(p->c->field);

    if (!same_values(p->c, q->c))
        return false;
    if (info->type == T_BOOL)
        return truth_wanted(p) != truth_wanted(q);
    if (p->positive && q->positive)
        return !info->list && apart(p, q);
    if (p->positive)
        return within(p, q);
    return q->positive && within(q, p);
}

/* ---- trees ---- */

static void describe(struct buf *out, const struct fact *f)
{
    const struct expr x = {.condition = *f->c};
    char storage[EXPR_TEXT_MAX];
    struct buf b;
    struct str shown;

    buf_init(&b, storage, sizeof(storage));
    expr_render(&x, &b);
    shown = str_cut_utf8(buf_str(&b), CONDITION_SHOWN);
    if (f->positive == operator_info(f->c->op)->negated)
        buf_put_cstr(out, "not ");
    buf_put(out, shown);
    if (shown.len < b.len)
        buf_put_cstr(out, "...");
}

static void tell(struct search *s, const struct fact *before, const struct fact *f)
{
    if (s->told)
        return;
    s->told = true;
    s->at = f->c;
    describe(s->text, before);
    buf_put_cstr(s->text, " and ");
    describe(s->text, f);
    buf_put_cstr(s->text, " are never true together");
}

static void tell_of_not_true(struct search *s)
{
    if (s->told)
        return;
    s->told = true;
    buf_put_cstr(s->text, "not true is never true; to switch a rule off set its enabled to false");
}

static bool add_fact(struct search *s, const struct condition *c, bool negated, struct facts *facts)
{
    struct fact *f = &facts->items[facts->n];
    struct err e = {0};

    *f = (struct fact){.c = c, .positive = operator_info(c->op)->negated == negated};
    if ((c->op == OP_WILDCARD || c->op == OP_STRICT_WILDCARD) &&
        !wildcard_compile(c->values->text, c->op == OP_STRICT_WILDCARD, &s->scratch, &f->wildcard, &e))
        return false;
    for (size_t i = 0; i < facts->n; i++) {
        if (!contradict(&facts->items[i], f))
            continue;
        tell(s, &facts->items[i], f);
        return true;
    }
    facts->n++;
    return false;
}

static bool never(struct search *s, const struct expr *x, bool negated);

/* Whether all parts of a tree that are joined by `or` are never true. */
static bool all_never(struct search *s, const struct group *g, bool negated)
{
    bool told = s->told;

    for (size_t i = 0; i < g->n_rules; i++) {
        if (never(s, g->rules[i], negated))
            continue;
        if (!told) {
            s->told = false;
            s->at = NULL;
            s->text->len = 0;
        }
        return false;
    }
    return true;
}

/* Adds what must hold for x (negated: for its negation) to facts. True when it is proven that it never does. A negation
 * turns `and` into `or` on its way down. Recursion ends: a tree is at most EXPR_NESTING_MAX groups deep. */
static bool add_facts(struct search *s, const struct expr *x, bool negated, struct facts *facts)
{
    const struct group *g = &x->group;

    if (!x->is_group)
        return add_fact(s, &x->condition, negated, facts);
    negated = negated != g->negated;
    if (g->n_rules == 0) {
        if (negated)
            tell_of_not_true(s);
        return negated;
    }
    if (g->n_rules > 1 && (g->combinator == AND) == negated)
        return all_never(s, g, negated);
    for (size_t i = 0; i < g->n_rules; i++)
        if (add_facts(s, g->rules[i], negated, facts))
            return true;
    return false;
}

static bool never(struct search *s, const struct expr *x, bool negated)
{
    struct facts facts = {.n = 0};

    return add_facts(s, x, negated, &facts);
}

bool contradiction_find(const struct expr *x, const struct condition **at, struct buf *text)
{
    struct search s = {.text = text};
    bool found;

    arena_init(&s.scratch, SCRATCH_BLOCK_BYTES, 0);
    found = never(&s, x, false);
    arena_release(&s.scratch);
    *at = s.at;
    return found;
}
