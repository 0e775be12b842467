/* Space-Saving over a small array: a new subject takes the place of the smallest. */
#include "spoa/record/topk.h"

void topk_clear(struct topk *t)
{
    t->n = 0;
    t->n_came = 0;
}

static bool is_text(const char *text, struct str s)
{
    return (s.len == 0 || strncmp(text, s.p, s.len) == 0) && text[s.len] == '\0';
}

static void text_set(char *out, struct str s)
{
    if (s.len > 0)
        memcpy(out, s.p, s.len);
    out[s.len] = '\0';
}

/* The longest beginning of at most max bytes that does not end in an escape, \x or \uxxxx; a surrogate is not parted from its other half, which
 * a reader would not decode. */
static struct str display_cut(struct str s, size_t max)
{
    size_t at = 0, end = 0;

    if (s.len <= max)
        return s;
    while (at < max) {
        size_t step = 1;
        bool high = false;

        if (s.p[at] == '\\') {
            step = at + 1 < s.len && s.p[at + 1] == 'u' ? 6 : 2;
            /* D800 to DBFF: the first half of a pair */
            high = step == 6 && at + 4 <= s.len && ascii_lower(s.p[at + 2]) == 'd' && strchr("89abAB", s.p[at + 3]) != NULL;
        }
        at += step;
        if (at <= max && !high)
            end = at;
    }
    return str_sub(s, 0, end);
}

static struct topk_entry *entry_find(struct topk *t, struct str rule, struct str subject)
{
    for (size_t i = 0; i < t->n; i++)
        if (is_text(t->entries[i].subject, subject) && is_text(t->entries[i].rule, rule))
            return &t->entries[i];
    return NULL;
}

static struct topk_entry *entry_smallest(struct topk *t)
{
    struct topk_entry *smallest = &t->entries[0];

    for (size_t i = 1; i < t->n; i++)
        if (t->entries[i].count < smallest->count)
            smallest = &t->entries[i];
    return smallest;
}

void topk_add(struct topk *t, struct str rule, struct str subject, struct str display, uint64_t weight)
{
    struct topk_entry *entry;
    uint64_t inherited = 0;

    rule = str_sub(rule, 0, TOPK_ID_MAX);
    subject = str_sub(subject, 0, TOPK_HASH_LEN);
    entry = entry_find(t, rule, subject);
    if (entry != NULL) {
        entry->count += weight;
        return;
    }
    if (t->n < TOPK_SUBJECTS) {
        entry = &t->entries[t->n++];
    } else {
        entry = entry_smallest(t);
        inherited = entry->count;
    }
    text_set(entry->rule, rule);
    text_set(entry->subject, subject);
    text_set(entry->display, display_cut(display, TOPK_DISPLAY_MAX - 1));
    entry->count = inherited + weight;
    entry->err = inherited;
    entry->since = t->n_came++;
}

static bool is_before(const struct topk_entry *a, const struct topk_entry *b)
{
    return a->count > b->count || (a->count == b->count && a->since < b->since);
}

size_t topk_largest(const struct topk *t, const struct topk_entry **out, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n && max > 0; i++) {
        size_t at = n < max ? n++ : max;

        if (at == max && !is_before(&t->entries[i], out[--at]))
            continue;
        for (; at > 0 && is_before(&t->entries[i], out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = &t->entries[i];
    }
    return n;
}
