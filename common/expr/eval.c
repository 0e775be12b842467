/* Runs programs over the facts of one request: no recursion, no memory but the run's, each predicate asked at most once. */
#include "common/expr/program_priv.h"
#include "common/expr/values_priv.h"

/* What of a slot is extracted already. */
struct slot_texts {
    struct texts texts;
    enum { SLOT_UNKNOWN, SLOT_KNOWN, SLOT_REFUSED } state;
};

bool expr_run_init(struct expr_run *run, const struct expr_set *set, const struct expr_facts *facts, struct arena *a)
{
    size_t n_words = set_n_words(set);
    uint64_t *memo = ARENA_NEW_N(a, 3 * n_words, uint64_t);
    struct slot_texts *slots = ARENA_NEW_N(a, set->n_slots, struct slot_texts);

    if (memo == NULL || slots == NULL)
        return false;
    *run = (struct expr_run){.set = set, .facts = facts, .memo = memo, .slots = slots};
    return true;
}

/* The memo's three parts, one bit a predicate each: its answer is yes, no, or an error; none of them: unknown. */
static inline uint64_t *yes_bits(const struct expr_run *run)
{
    return run->memo;
}

static inline uint64_t *no_bits(const struct expr_run *run)
{
    return run->memo + set_n_words(run->set);
}

static inline uint64_t *error_bits(const struct expr_run *run)
{
    return run->memo + 2 * set_n_words(run->set);
}

__attribute__((noinline)) static void extract(const struct expr_run *run, const struct slot *s, struct slot_texts *out)
{
    out->state = facts_texts(run->facts, s->field, s->key, &out->texts) ? SLOT_KNOWN : SLOT_REFUSED;
}

/* NULL: memory is refused. */
static inline const struct texts *texts_of(const struct expr_run *run, uint32_t slot)
{
    struct slot_texts *known = (struct slot_texts *)run->slots + slot;

    if (known->state == SLOT_UNKNOWN)
        extract(run, &run->set->slots[slot], known);
    return known->state == SLOT_KNOWN ? &known->texts : NULL;
}

/* ---- one predicate, one value ---- */

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
static bool contains(const struct predicate *p, struct str text)
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

static bool is_one_of(const struct predicate *p, struct str text)
{
    for (size_t i = 0; i < p->texts.n; i++)
        if (str_eq(p->texts.items[i], text))
            return true;
    return false;
}

static inline enum match match_of(bool yes)
{
    return yes ? MATCH_YES : MATCH_NO;
}

static enum match text_holds(const struct predicate *p, struct str text)
{
    switch (p->kind) {
    case TEXT_IS:
        return match_of(text.len == p->text.len && stands_at(text, 0, p->text));
    case TEXT_IN:
        return match_of(is_one_of(p, text));
    case TEXT_CONTAINS:
        return match_of(contains(p, text));
    case TEXT_BEGINS:
        return match_of(text.len >= p->text.len && stands_at(text, 0, p->text));
    case TEXT_ENDS:
        return match_of(text.len >= p->text.len && stands_at(text, text.len - p->text.len, p->text));
    case TEXT_WILDCARD:
        return match_of(wildcard_matches(&p->wildcard, text));
    case TEXT_MATCHES:
        return regex_matches(p->regex, text);
    case INT_IN:
    case ADDRESS_IN:
    case IS_TRUE:
    case HAS_SIGNAL:
        break;
    }
    return MATCH_ERROR;
}

/* ---- one predicate, one request: a missing value is never what a positive form asks for ---- */

static enum match any_text_holds(const struct expr_run *run, const struct predicate *p)
{
    const struct texts *texts = texts_of(run, p->slot);
    enum match out = MATCH_NO;

    if (texts == NULL)
        return MATCH_ERROR;
    for (size_t i = 0; i < texts->n; i++) {
        enum match m = text_holds(p, texts->items[i]);

        if (m == MATCH_YES)
            return m;
        if (m == MATCH_ERROR)
            out = m;
    }
    return out;
}

static bool int_in(const struct predicate *p, int64_t value)
{
    size_t from = 0, to = p->ints.n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (p->ints.items[middle].last < value)
            from = middle + 1;
        else
            to = middle;
    }
    return from < p->ints.n && p->ints.items[from].first <= value;
}

static enum match holds(const struct expr_run *run, const struct predicate *p)
{
    const struct expr_facts *facts = run->facts;
    int64_t number;

    if (p->kind == INT_IN)
        return match_of(facts_int(facts, p->field, &number) && int_in(p, number));
    if (p->kind == ADDRESS_IN)
        return match_of(facts->has_ip && addr_set_has(&p->addresses, &facts->ip));
    if (p->kind == IS_TRUE)
        return match_of(facts_truth(facts, p->field));
    if (p->kind == HAS_SIGNAL)
        return match_of((expr_facts_signals(facts) & p->signals) != 0);
    return any_text_holds(run, p);
}

/* ---- many predicates, one pass ---- */

static inline bool get_bit(const uint64_t *bits, uint32_t i)
{
    return (bits[i / 64] >> i % 64 & 1) != 0;
}

static inline void set_bit(uint64_t *bits, uint32_t i)
{
    bits[i / 64] |= UINT64_C(1) << i % 64;
}

/* The bits of [from, to) that lie in word w, which holds some. */
static inline uint64_t range_bits(uint32_t from, uint32_t to, uint32_t w)
{
    uint64_t bits = UINT64_MAX;

    if (w == from / 64)
        bits &= UINT64_MAX << from % 64;
    if (w == to / 64)
        bits &= ~(UINT64_MAX << to % 64);
    return bits;
}

/* Those of the bulk that have no other answer. */
static void set_rest(const struct expr_run *run, const struct bulk *b, uint64_t *bits)
{
    const uint64_t *yes = yes_bits(run), *no = no_bits(run), *error = error_bits(run);

    for (uint32_t w = b->first / 64; w <= (b->first + b->n - 1) / 64; w++)
        bits[w] |= range_bits(b->first, b->first + b->n, w) & ~(yes[w] | no[w] | error[w]);
}

static void clear_bits(const struct bulk *b, uint64_t *bits)
{
    for (uint32_t w = b->first / 64; w <= (b->first + b->n - 1) / 64; w++)
        bits[w] &= ~range_bits(b->first, b->first + b->n, w);
}

/* An entry's predicates are looked at once a value, however often the value holds the gram: then each is yes or, in no,
 * not so. */
static void mark_grams(const struct expr_run *run, const struct bulk *b, struct str value)
{
    uint64_t *yes = yes_bits(run), *no = no_bits(run);
    struct gram_walk walk = {.rest = value};
    const struct gram_entry *entry;

    clear_bits(b, no);
    while ((entry = gram_next(&b->grams, &walk)) != NULL) {
        const uint32_t *ids = b->grams.ids + entry->first;

        for (uint32_t i = 0; i < entry->n && !get_bit(no, ids[i]); i++) {
            if (!get_bit(yes, ids[i]) && text_holds(&run->set->predicates[ids[i]], value) == MATCH_YES)
                set_bit(yes, ids[i]);
            set_bit(no, ids[i]);
        }
    }
    clear_bits(b, no);
}

static void mark_ranges(const struct expr_run *run, const struct bulk *b)
{
    const struct expr_facts *facts = run->facts;
    int64_t number;

    if (facts_int(facts, b->field, &number))
        range_table_mark(&b->ranges.numbers, int_number(number), yes_bits(run));
    if (b->field == FIELD_IP_SRC && facts->has_ip)
        range_table_mark(addr_is_v4(&facts->ip) ? &b->ranges.numbers : &b->ranges.v6, address_number(&facts->ip), yes_bits(run));
}

/* The part of the memo that an answer belongs into. */
static inline uint64_t *bits_of(const struct expr_run *run, enum match answer)
{
    return answer == MATCH_YES ? yes_bits(run) : answer == MATCH_NO ? no_bits(run) : error_bits(run);
}

static inline void answer_alone(const struct expr_run *run, const struct predicate *p, uint32_t word, uint64_t bit)
{
    bits_of(run, holds(run, p))[word] |= bit;
}

/* Of most keys the request has nothing. What is asked of the others is noted as an error first, and then answered. */
MUSTUSE static bool mark_keys(const struct expr_run *run, const struct bulk *b)
{
    uint64_t *noted = error_bits(run);
    struct names names;

    if (!facts_names(run->facts, b->field, &names))
        return false;
    for (size_t i = 0; i < names.n; i++)
        text_table_mark(&b->texts, name_at(&names, i), noted);
    for (uint32_t w = b->first / 64; w <= (b->first + b->n - 1) / 64; w++) {
        uint64_t there = noted[w] & range_bits(b->first, b->first + b->n, w);

        noted[w] &= ~there;
        for (; there != 0; there &= there - 1)
            answer_alone(run, &run->set->predicates[w * 64 + (uint32_t)__builtin_ctzll(there)], w, there & -there);
    }
    return true;
}

MUSTUSE static bool mark_texts(const struct expr_run *run, const struct bulk *b)
{
    const struct texts *texts = texts_of(run, b->slot);

    if (texts == NULL)
        return false;
    for (size_t i = 0; i < texts->n; i++) {
        if (b->kind == BULK_GRAMS)
            mark_grams(run, b, texts->items[i]);
        else
            text_table_mark(&b->texts, texts->items[i], yes_bits(run));
    }
    return true;
}

static void answer_bulk(const struct expr_run *run, const struct bulk *b)
{
    bool ok = true;

    switch (b->kind) {
    case BULK_TEXTS:
    case BULK_GRAMS:
        ok = mark_texts(run, b);
        break;
    case BULK_RANGES:
        mark_ranges(run, b);
        break;
    case BULK_KEYS:
        ok = mark_keys(run, b);
        break;
    }
    set_rest(run, b, ok ? no_bits(run) : error_bits(run));
}

/* ---- programs ---- */

static inline bool is_hit(const struct expr_run *run, const struct step *s)
{
    return ((yes_bits(run)[s->word] & s->yes) | (no_bits(run)[s->word] & s->no)) != 0;
}

static inline uint64_t unknown_bits(const struct expr_run *run, const struct step *s)
{
    return (s->yes | s->no) & ~(yes_bits(run)[s->word] | no_bits(run)[s->word] | error_bits(run)[s->word]);
}

/* Asks what is unknown, one after the other, until the step is decided. */
__attribute__((noinline)) static bool ask(const struct expr_run *run, const struct step *s)
{
    const struct predicate *predicates = run->set->predicates + s->word * 64;
    uint64_t unknown;

    while ((unknown = unknown_bits(run, s)) != 0) {
        const struct predicate *p = &predicates[__builtin_ctzll(unknown)];

        if (p->bulk == NO_BULK)
            answer_alone(run, p, s->word, unknown & -unknown);
        else
            answer_bulk(run, &run->set->bulks[p->bulk]);
        if (is_hit(run, s))
            return true;
    }
    return false;
}

/* Where the program ends when every condition that ends in an error counts as error_counts_as, negated or not.
 * *had_error is set when one was met. */
static inline int walk(const struct expr_run *run, const struct program *p, bool error_counts_as, bool *had_error)
{
    int at = p->entry;

    while (at >= 0) {
        const struct step *s = &p->steps[at];
        bool hit = is_hit(run, s) || (unknown_bits(run, s) != 0 && ask(run, s));

        if (!hit && (error_bits(run)[s->word] & (s->yes | s->no)) != 0) {
            *had_error = true;
            hit = error_counts_as != s->inverted;
        }
        at = hit ? s->if_any : s->if_none;
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
