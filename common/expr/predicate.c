/* Conditions to predicates: conditions that mean the same share one. */
#include "common/expr/program_priv.h"

/* ---- slots ---- */

MUSTUSE static bool slot_key(const struct condition *c, struct arena *scratch, struct str *out)
{
    char *p = arena_take_bytes(scratch, 1 + c->key.len);

    if (p == NULL)
        return false;
    p[0] = (char)c->field;
    for (size_t i = 0; i < c->key.len; i++)
        p[1 + i] = field_info(c->field)->key == KEY_HEADER ? ascii_lower(c->key.p[i]) : c->key.p[i];
    *out = (struct str){p, 1 + c->key.len};
    return true;
}

MUSTUSE static bool slot_of(struct expr_set *set, const struct condition *c, struct arena *scratch, uint32_t *index)
{
    struct str key, kept;
    uintptr_t known;
    void *existing;

    if (!slot_key(c, scratch, &key))
        return false;
    known = (uintptr_t)map_get(&set->known_slots, key);
    if (known > 0) {
        *index = (uint32_t)(known - 1);
        return true;
    }
    if (!arena_copy_str(set->arena, key, &kept) ||
        !make_room(set->arena, &set->slots, &set->max_slots, set->n_slots, sizeof(*set->slots)) ||
        !map_add(&set->known_slots, kept, (void *)(uintptr_t)(set->n_slots + 1), &existing))
        return false;
    *index = (uint32_t)set->n_slots;
    set->slots[set->n_slots++] = (struct slot){.field = c->field, .key = str_sub(kept, 1, kept.len)};
    return true;
}

/* ---- keys ---- */

/* A predicate as a key: its kind, where its values are and its literals as bytes, so that equal keys are equal
 * predicates. Numbers are as they are in memory, texts follow their lengths. */
enum { KEY_HEAD_BYTES = 1 + sizeof(uint32_t) };

static void put_bytes(struct buf *b, const void *p, size_t size_bytes)
{
    buf_put(b, (struct str){p, size_bytes});
}

static void put_text(struct buf *b, struct str s)
{
    uint32_t len = (uint32_t)s.len;

    put_bytes(b, &len, sizeof(len));
    buf_put(b, s);
}

static void put_literals(struct buf *b, const struct form *f)
{
    const struct predicate *p = &f->predicate;

    switch (p->kind) {
    case TEXT_IS:
    case TEXT_CONTAINS:
    case TEXT_BEGINS:
    case TEXT_ENDS:
        put_text(b, p->text);
        break;
    case TEXT_IN:
        for (size_t i = 0; i < p->texts.n; i++)
            put_text(b, p->texts.items[i]);
        break;
    case TEXT_WILDCARD:
        buf_put_byte(b, (char)p->wildcard.strict);
        for (size_t i = 0; i < p->wildcard.n_pieces; i++)
            put_text(b, p->wildcard.pieces[i]);
        break;
    case TEXT_MATCHES:
        put_text(b, f->pattern);
        break;
    case INT_IN:
        put_bytes(b, p->ints.items, p->ints.n * sizeof(*p->ints.items));
        break;
    case ADDRESS_IN:
        put_bytes(b, p->addresses.ranges, p->addresses.n * sizeof(*p->addresses.ranges));
        break;
    case HAS_SIGNAL:
        put_bytes(b, &p->signals, sizeof(p->signals));
        break;
    case IS_TRUE:
        break;
    }
}

/* At least what the literals of c take in its key, however they are normalised. */
static size_t literals_max(const struct condition *c)
{
    size_t size_bytes = 0;

    for (size_t i = 0; i < c->n_values; i++)
        size_bytes += sizeof(struct addr_range) + (1 + sizeof(uint32_t)) * (1 + c->values[i].text.len);
    return size_bytes + sizeof(uint32_t);
}

MUSTUSE static bool key_of(const struct condition *c, const struct form *f, struct arena *scratch, struct str *out)
{
    bool is_text = field_info(c->field)->type == T_STRING;
    uint32_t where = is_text ? f->predicate.slot : (uint32_t)c->field;
    struct buf b;

    if (!arena_take_buf(scratch, KEY_HEAD_BYTES + literals_max(c), &b))
        return false;
    buf_put_byte(&b, (char)f->predicate.kind);
    put_bytes(&b, &where, sizeof(where));
    put_literals(&b, f);
    *out = buf_str(&b);
    return !b.full;
}

/* ---- keeping ---- */

/* Where in text its rarest byte stands: hosts and paths are made of lower-case letters and slashes for the most part. */
static uint32_t rarest_at(struct str text)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < text.len; i++) {
        bool is_letter = text.p[i] >= 'a' && text.p[i] <= 'z';

        if (text.p[i] != '/' && (!is_letter || text.p[found] == '/'))
            found = i;
    }
    return found;
}

MUSTUSE static bool keep_texts(struct arena *a, const struct str *texts, size_t n, struct str **out)
{
    struct str *kept = ARENA_NEW_N(a, n, struct str);

    if (kept == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!arena_copy_str(a, texts[i], &kept[i]))
            return false;
    *out = kept;
    return true;
}

MUSTUSE static bool keep_ranges(struct arena *a, const void *ranges, size_t size_bytes, void **out)
{
    *out = arena_take(a, size_bytes);
    if (*out != NULL && size_bytes > 0)
        memcpy(*out, ranges, size_bytes);
    return *out != NULL;
}

/* What the form borrowed, in the set's arena. */
MUSTUSE static bool keep(struct arena *a, const struct form *f, struct predicate *p)
{
    struct err e = {0};
    struct str *texts;
    void *ranges;

    switch (p->kind) {
    case TEXT_IS:
    case TEXT_CONTAINS:
    case TEXT_BEGINS:
    case TEXT_ENDS:
        p->rarest_at = rarest_at(p->text);
        return arena_copy_str(a, p->text, &p->text);
    case TEXT_IN:
        if (!keep_texts(a, p->texts.items, p->texts.n, &texts))
            return false;
        p->texts.items = texts;
        return true;
    case TEXT_WILDCARD:
        return keep_texts(a, p->wildcard.pieces, p->wildcard.n_pieces, &p->wildcard.pieces);
    case TEXT_MATCHES:
        return regex_compile(f->pattern, a, &p->regex, &e);
    case INT_IN:
        if (!keep_ranges(a, p->ints.items, p->ints.n * sizeof(*p->ints.items), &ranges))
            return false;
        p->ints.items = ranges;
        return true;
    case ADDRESS_IN:
        if (!keep_ranges(a, p->addresses.ranges, p->addresses.n * sizeof(*p->addresses.ranges), &ranges))
            return false;
        p->addresses.ranges = ranges;
        return true;
    case IS_TRUE:
    case HAS_SIGNAL:
        break;
    }
    return true;
}

bool predicate_of(struct expr_set *set, const struct condition *c, struct arena *scratch, uint32_t *index, bool *negated)
{
    struct form f;
    struct str key, kept;
    uintptr_t known;
    void *existing;

    if (!form_of(c, scratch, &f))
        return false;
    if (field_info(c->field)->type == T_STRING && !slot_of(set, c, scratch, &f.predicate.slot))
        return false;
    if (!key_of(c, &f, scratch, &key))
        return false;
    *negated = f.negated;
    known = (uintptr_t)map_get(&set->known_predicates, key);
    *index = (uint32_t)(known > 0 ? known - 1 : set->n_predicates);
    if (known > 0)
        return true;
    if (!arena_copy_str(set->arena, key, &kept) || !keep(set->arena, &f, &f.predicate) ||
        !make_room(set->arena, &set->predicates, &set->max_predicates, set->n_predicates, sizeof(f.predicate)) ||
        !map_add(&set->known_predicates, kept, (void *)(uintptr_t)(set->n_predicates + 1), &existing))
        return false;
    set->predicates[set->n_predicates++] = f.predicate;
    return true;
}
