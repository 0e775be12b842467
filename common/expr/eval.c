/* Runs programs over the facts of one request: no allocation, no recursion, each predicate asked at most once. */
#include "common/expr/program_priv.h"

bool expr_run_init(struct expr_run *run, const struct expr_set *set, const struct expr_facts *facts, struct arena *a)
{
    uint8_t *memo = ARENA_NEW_N(a, set->n_predicates, uint8_t);

    if (memo == NULL)
        return false;
    *run = (struct expr_run){.set = set, .facts = facts, .memo = memo};
    return true;
}

/* FNV-1a. Its literals are the policy's own, so nobody gains by collisions: a hostile value can only meet the few
 * literals of one cluster. */
uint64_t string_set_hash(struct str s)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.p[i]) * 0x100000001b3;
    return hash ^ hash >> 32;
}

/* This and `contains` stand apart so that the cheap questions of `holds` need no stack. */
__attribute__((noinline)) static bool string_set_has(const struct string_set *set, struct str s)
{
    if (s.len > set->longest)
        return false;
    for (size_t i = string_set_hash(s) & set->mask; set->slots[i].p != NULL; i = (i + 1) & set->mask)
        if (str_eq(set->slots[i], s))
            return true;
    return false;
}

static struct str text_of(const struct expr_facts *facts, enum field f)
{
    if (f == FIELD_HTTP_HOST)
        return facts->host;
    if (f == FIELD_HTTP_METHOD)
        return facts->method;
    return f == FIELD_HTTP_PATH ? facts->path : STR_NONE;
}

/* Whether part stands at byte `at` of text, which has as many bytes from there. Hosts and paths are often alike where
 * they begin: the last byte tells most of them apart. */
static inline bool stands_at(struct str text, size_t at, struct str part)
{
    if (part.len == 0)
        return true;
    return text.p[at + part.len - 1] == part.p[part.len - 1] && memcmp(text.p + at, part.p, part.len) == 0;
}

/* Looks at a few places where the literal's rarest byte stands: mostly there are none. The rest, whose cost grows with
 * its length only whatever it holds, is left to str_find. */
__attribute__((noinline)) static bool contains(const struct predicate *p, struct str text)
{
    enum { PLACES_MAX = 4 };
    struct str rest = text;

    if (p->text.len == 0 || text.len < p->text.len)
        return p->text.len == 0;
    rest.len -= p->text.len - 1; /* places to begin at */
    for (int i = 0; i < PLACES_MAX; i++) {
        size_t at = str_find_byte((struct str){rest.p + p->rarest_at, rest.len}, p->text.p[p->rarest_at]);

        if (at == SIZE_MAX)
            return false;
        if (stands_at(rest, at, p->text))
            return true;
        str_skip(&rest, at + 1);
    }
    rest.len += p->text.len - 1;
    return str_find(rest, p->text) != SIZE_MAX;
}

/* A missing value is never what a positive form asks for. */
static bool holds(const struct predicate *p, const struct expr_facts *facts)
{
    struct str text = text_of(facts, p->field);

    switch (p->kind) {
    case TEXT_IS:
        return text.len == p->text.len && stands_at(text, 0, p->text);
    case TEXT_IN:
        return string_set_has(&p->texts, text);
    case TEXT_CONTAINS:
        return contains(p, text);
    case TEXT_BEGINS:
        return text.len >= p->text.len && stands_at(text, 0, p->text);
    case TEXT_ENDS:
        return text.len >= p->text.len && stands_at(text, text.len - p->text.len, p->text);
    case ADDRESS_IN:
        return facts->has_ip && addr_set_has(&p->addresses, &facts->ip);
    }
    return false;
}

/* As a memo's byte. */
static uint8_t ask(const struct expr_run *run, uint32_t predicate)
{
    return holds(&run->set->predicates[predicate], run->facts) ? 1 + MATCH_YES : 1 + MATCH_NO;
}

/* Where the program ends when every condition that ends in an error counts as error_counts_as, negated or not.
 * *had_error is set when one was met. */
static inline int walk(const struct expr_run *run, const struct program *p, bool error_counts_as, bool *had_error)
{
    int at = p->entry;

    while (at >= 0) {
        const struct step *step = &p->steps[at];
        uint8_t known = run->memo[step->predicate];
        bool yes;

        if (known == 0)
            known = run->memo[step->predicate] = ask(run, step->predicate);
        yes = (known == 1 + MATCH_YES) != step->negated;
        if (known == 1 + MATCH_ERROR) {
            *had_error = true;
            yes = error_counts_as;
        }
        at = yes ? step->if_yes : step->if_no;
    }
    return at;
}

/* Of a program that is not YES and met an error. */
__attribute__((noinline)) static enum match error_or_no(const struct expr_run *run, const struct program *p)
{
    bool had_error;

    return walk(run, p, true, &had_error) == END_YES ? MATCH_ERROR : MATCH_NO;
}

/* With NO < ERROR < YES, `and` is the least of its parts and `or` the greatest, and negations stand at the conditions
 * only. So the answer is YES when it is even with errors as NO, and at least ERROR when it is YES with errors as YES.
 */
enum match expr_run(struct expr_run *run, size_t program)
{
    const struct program *p = &run->set->programs[program];
    bool had_error = false;

    if (walk(run, p, false, &had_error) == END_YES)
        return MATCH_YES;
    return had_error ? error_or_no(run, p) : MATCH_NO;
}
