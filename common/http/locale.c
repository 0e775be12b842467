/* The choice of a locale: everything that ICU knows of the supported languages was asked when the matcher was made (locale_make.c), so that a
 * request's ranges are only looked up: no call of ICU, no lock and no memory, however odd the header. */
#include "common/http/locale_priv.h"

/* Index of the item of that key among n that each begin with theirs, sorted by it; n: there is none. */
static size_t key_find(const void *items, size_t item_bytes, size_t n, uint64_t key)
{
    const char *bytes = items;
    size_t low = 0, high = n;
    uint64_t found = 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        memcpy(&found, bytes + middle * item_bytes, sizeof found);
        if (found == key)
            return middle;
        if (found < key)
            low = middle + 1;
        else
            high = middle;
    }
    return n;
}

uint64_t code_pairs_get(const struct code_pairs *pairs, uint64_t key)
{
    size_t at = key_find(pairs->items, sizeof pairs->items[0], pairs->n, key);

    return at < pairs->n ? pairs->items[at].value : 0;
}

static const struct language_name *find_name(const struct locale_matcher *m, uint64_t name)
{
    size_t at = key_find(m->names, sizeof m->names[0], m->n_names, name);

    return at < m->n_names ? &m->names[at] : NULL;
}

_Static_assert(offsetof(struct code_pair, key) == 0 && offsetof(struct language_name, name) == 0, "what is found by key_find begins with its key");

/* A range whose language there is. */
struct wish {
    struct str text;
    const struct supported_language *language;
    uint64_t script, region; /* filled in */
    bool has_region;         /* sent */
};

/* False: none of the supported languages. */
static bool understand(const struct locale_matcher *m, struct str text, struct wish *out)
{
    struct language_tag tag;

    if (!language_range_read(text, &tag) || tag.language.len == 0)
        return false;
    const struct language_name *name = find_name(m, subtag_code(tag.language));
    if (name == NULL)
        return false;
    struct wish w = {.text = text, .language = name->language, .script = subtag_code(tag.script), .region = subtag_code(tag.region)};
    w.has_region = w.region != 0;
    const uint64_t renamed = code_pairs_get(&m->region_names, w.region);
    if (renamed != 0)
        w.region = renamed;
    if (w.script == 0)
        w.script = name->script;
    if (w.script == 0 && w.has_region)
        w.script = code_pairs_get(&w.language->scripts, w.region);
    if (w.script == 0)
        w.script = w.language->script;
    if (!w.has_region)
        w.region = code_pairs_get(&w.language->regions, w.script);
    *out = w;
    return true;
}

/* How well a tag of the language serves: the higher the better. */
enum fitness { FIT_NOT, FIT_LANGUAGE, FIT_NO_REGION, FIT_CONTAINS, FIT_REGION, FIT_WRITTEN_ALIKE, FIT_EQUAL };

static enum fitness fitness(const struct supported_tag *tag, const struct wish *w)
{
    if (language_tag_equal(tag->text, w->text))
        return FIT_EQUAL;
    if (tag->region == w->region)
        return tag->has_region == w->has_region ? FIT_WRITTEN_ALIKE : FIT_REGION;
    if (code_pairs_get(&tag->contained, w->region) != 0)
        return FIT_CONTAINS;
    return tag->has_region ? FIT_LANGUAGE : FIT_NO_REGION;
}

/* NULL: the language has no tag of the script. */
static const struct supported_tag *best_tag(const struct locale_matcher *m, const struct wish *w, bool any_script)
{
    const struct supported_tag *best = NULL;
    enum fitness best_fitness = FIT_NOT;

    for (size_t i = w->language->first; i < w->language->first + w->language->n; i++) {
        const struct supported_tag *tag = &m->tags[i];
        if (!any_script && tag->script != w->script)
            continue;
        enum fitness fits = fitness(tag, w);
        if (fits > best_fitness || (fits == FIT_CONTAINS && fits == best_fitness && tag->contained.n < best->contained.n)) {
            best = tag;
            best_fitness = fits;
        }
    }
    return best;
}

size_t locale_choose(const struct locale_matcher *m, struct str accept_language)
{
    struct language_range ranges[ACCEPT_LANGUAGE_RANGES_MAX];
    struct wish w, other_script = {0};
    size_t n = accept_language_parse(accept_language, ranges);

    for (size_t i = 0; i < n; i++) {
        if (str_eq(ranges[i].tag, STR("*")))
            return m->fallback;
        if (!understand(m, ranges[i].tag, &w))
            continue;
        const struct supported_tag *tag = best_tag(m, &w, false);
        if (tag != NULL)
            return tag->index;
        if (other_script.language == NULL)
            other_script = w;
    }
    return other_script.language != NULL ? best_tag(m, &other_script, true)->index : m->fallback;
}

struct str locale_tag(const struct locale_matcher *m, size_t index)
{
    return m->texts[index];
}

bool locale_matcher_equal(const struct locale_matcher *a, const struct locale_matcher *b)
{
    if (a->n_tags != b->n_tags || a->fallback != b->fallback)
        return false;
    for (size_t i = 0; i < a->n_tags; i++)
        if (!str_eq_nocase(a->texts[i], b->texts[i]))
            return false;
    return true;
}
