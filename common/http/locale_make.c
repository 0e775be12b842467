/* Making a locale matcher: what ICU knows of the supported languages is written down. It is asked here alone, by who compiles a policy: its calls
 * take memory and locks of the library and some microseconds each (in 72 a likely subtag 2 us, in any release the data is opened by name). They
 * may run in several threads at once (ICU's design of thread safety: all but objects that are shared and written). */
#include <stdlib.h>
#include <unicode/putil.h>
#include <unicode/uloc.h>
#include <unicode/uregion.h>
#include <unicode/ures.h>

#include "common/http/locale_priv.h"

enum { REGIONS_MAX = 512, ID_MAX = 3 * (LANGUAGE_RANGE_MAX + 1) };

/* What is asked about for every language; of the world there are some 300. */
struct regions {
    uint64_t codes[REGIONS_MAX];
    size_t n;
};

/* While a matcher is made. */
struct making {
    struct locale_matcher *m;
    struct arena *arena;
    struct regions regions;
    UResourceBundle *aliases; /* of subtags; NULL: this ICU keeps them elsewhere, and languages have one name */
};

/* The subtag as text; returns its length. */
static size_t code_text(uint64_t code, char text[static sizeof(uint64_t) + 1])
{
    size_t len = 0;

    for (int shift = 56; shift >= 0; shift -= 8)
        if ((code >> shift & 0xff) != 0)
            text[len++] = (char) (code >> shift & 0xff);
    text[len] = '\0';
    return len;
}

static void put_code(struct buf *id, const char *before, uint64_t code)
{
    char text[sizeof(uint64_t) + 1];

    if (code == 0)
        return;
    buf_put_cstr(id, before);
    buf_put(id, (struct str){text, code_text(code, text)});
}

/* Fills in what is 0 of script and region; what ICU does not know stays so. After a failure ICU's functions do nothing. */
static void add_likely(uint64_t language, uint64_t *script, uint64_t *region)
{
    char id_text[ID_MAX], likely[ULOC_FULLNAME_CAPACITY], part[ULOC_FULLNAME_CAPACITY];
    UErrorCode status = U_ZERO_ERROR;
    struct buf id;

    buf_init(&id, id_text, sizeof id_text - 1);
    put_code(&id, "", language);
    put_code(&id, "_", *script);
    put_code(&id, "_", *region);
    id_text[id.len] = '\0';
    uloc_addLikelySubtags(id_text, likely, sizeof likely, &status);
    if (*script == 0 && uloc_getScript(likely, part, sizeof part, &status) > 0 && U_SUCCESS(status))
        *script = subtag_code(str_of(part));
    if (*region == 0 && uloc_getCountry(likely, part, sizeof part, &status) > 0 && U_SUCCESS(status))
        *region = subtag_code(str_of(part));
}

/* --- Other names --- */

struct alias {
    uint64_t name;
    struct language_tag stands_for; /* borrows text */
    char text[ULOC_FULLNAME_CAPACITY];
};

/* The next alias of rows that is one subtag for one tag. False: there is none any more. */
static bool next_alias(UResourceBundle *rows, struct alias *out)
{
    while (ures_hasNext(rows)) {
        UErrorCode status = U_ZERO_ERROR;
        int32_t len = 0;
        UResourceBundle *row = ures_getNextResource(rows, NULL, &status);
        const UChar *text = ures_getStringByKey(row, "replacement", &len, &status);
        const char *name = ures_getKey(row);
        bool ok = U_SUCCESS(status) && name != NULL && len < (int32_t) sizeof out->text && strlen(name) <= sizeof(uint64_t) && strchr(name, '_') == NULL;
        if (ok) {
            out->name = subtag_code(str_of(name));
            u_UCharsToChars(text, out->text, len);
            out->text[len] = '\0';
        }
        ures_close(row);
        if (ok)
            return true;
    }
    return false;
}

static bool next_language_alias(UResourceBundle *rows, struct alias *out)
{
    while (next_alias(rows, out))
        if (language_tag_read(str_of(out->text), &out->stands_for))
            return true;
    return false;
}

/* CLDR keeps Norwegian and its Bokmål apart as names, but matches them as one. */
static uint64_t one_name(uint64_t language)
{
    return language == subtag_code(STR("no")) ? subtag_code(STR("nb")) : language;
}

/* The name by which a language is known here; its script where the name has one. */
static uint64_t proper_name(const struct making *mk, uint64_t language, uint64_t *script)
{
    UErrorCode status = U_ZERO_ERROR;
    UResourceBundle *rows = mk->aliases != NULL ? ures_getByKey(mk->aliases, "language", NULL, &status) : NULL;
    struct alias alias;

    while (rows != NULL && U_SUCCESS(status) && next_language_alias(rows, &alias))
        if (alias.name == language) {
            language = subtag_code(alias.stands_for.language);
            if (*script == 0)
                *script = subtag_code(alias.stands_for.script);
            break;
        }
    ures_close(rows);
    return one_name(language);
}

/* --- Lists --- */

static int code_order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int pair_order(const void *x, const void *y)
{
    const struct code_pair *a = x, *b = y;

    return code_order(a->key, b->key);
}

static int name_order(const void *x, const void *y)
{
    const struct language_name *a = x, *b = y;

    return code_order(a->name, b->name);
}

static int tag_order(const void *x, const void *y)
{
    const struct supported_tag *a = x, *b = y;
    int order = code_order(a->language, b->language);

    return order != 0 ? order : code_order(a->index, b->index);
}

static bool keep_pairs(const struct making *mk, struct code_pair *pairs, size_t n, struct code_pairs *out)
{
    struct code_pair *items = ARENA_NEW_N(mk->arena, n, struct code_pair);

    if (!items)
        return false;
    if (n > 0) {
        qsort(pairs, n, sizeof pairs[0], pair_order);
        memcpy(items, pairs, n * sizeof pairs[0]);
    }
    *out = (struct code_pairs){items, n};
    return true;
}

/* --- Regions --- */

static void list_regions(struct regions *out)
{
    static const URegionType types[] = {URGN_TERRITORY, URGN_SUBCONTINENT, URGN_CONTINENT, URGN_GROUPING, URGN_WORLD};
    const char *code;

    out->n = 0;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        UErrorCode status = U_ZERO_ERROR;
        UEnumeration *available = uregion_getAvailable(types[i], &status);
        while (U_SUCCESS(status) && (code = uenum_next(available, NULL, &status)) != NULL && out->n < REGIONS_MAX)
            out->codes[out->n++] = subtag_code(str_of(code));
        uenum_close(available);
    }
}

static const URegion *find_region(uint64_t code)
{
    char text[sizeof(uint64_t) + 1];
    UErrorCode status = U_ZERO_ERROR;

    size_t len = code_text(code, text);
    for (size_t i = 0; i < len; i++)
        if (ascii_is_alpha(text[i]))
            text[i] = (char) (text[i] & ~0x20); /* as ICU has them */
    return uregion_getRegionFromCode(text, &status);
}

/* The regions within a tag's own. ICU's world has countries and continents, but no grouping such as Latin America. */
static bool fill_contained(const struct making *mk, struct supported_tag *tag)
{
    struct code_pair pairs[REGIONS_MAX];
    const URegion *outer = find_region(tag->region), *inner;
    const bool is_world = outer != NULL && uregion_getType(outer) == URGN_WORLD;
    size_t n = 0;

    for (size_t i = 0; tag->has_region && outer != NULL && i < mk->regions.n; i++)
        if (is_world || ((inner = find_region(mk->regions.codes[i])) != NULL && uregion_contains(outer, inner)))
            pairs[n++] = (struct code_pair){mk->regions.codes[i], 1};
    return keep_pairs(mk, pairs, n, &tag->contained);
}

/* Codes that countries have had, as far as each became one other: UK is GB. */
static bool fill_region_names(const struct making *mk)
{
    struct code_pair pairs[REGIONS_MAX];
    UErrorCode status = U_ZERO_ERROR;
    UResourceBundle *rows = mk->aliases != NULL ? ures_getByKey(mk->aliases, "territory", NULL, &status) : NULL;
    struct alias alias;
    size_t n = 0;

    while (rows != NULL && U_SUCCESS(status) && n < REGIONS_MAX && next_alias(rows, &alias))
        if (strlen(alias.text) == 2 && alias.name <= 0xffff)
            pairs[n++] = (struct code_pair){alias.name, subtag_code(str_of(alias.text))};
    ures_close(rows);
    return keep_pairs(mk, pairs, n, &mk->m->region_names);
}

/* --- Languages --- */

static bool fill_tags(const struct making *mk, const struct str_list *supported)
{
    struct locale_matcher *m = mk->m;

    for (size_t i = 0; i < supported->n; i++) {
        struct supported_tag *tag = &m->tags[i];
        struct language_tag read = {0};
        *tag = (struct supported_tag){.text = supported->items[i], .index = i};
        (void) language_tag_read(tag->text, &read); /* what is none is served to nobody */
        const uint64_t region = subtag_code(read.region), renamed = code_pairs_get(&m->region_names, region);
        tag->script = subtag_code(read.script);
        tag->region = renamed != 0 ? renamed : region;
        tag->has_region = region != 0;
        tag->language = proper_name(mk, subtag_code(read.language), &tag->script);
        add_likely(tag->language, &tag->script, &tag->region);
        if (!fill_contained(mk, tag))
            return false;
    }
    qsort(m->tags, m->n_tags, sizeof m->tags[0], tag_order);
    return true;
}

static bool has_key(const struct code_pair *pairs, size_t n, uint64_t key)
{
    for (size_t i = 0; i < n; i++)
        if (pairs[i].key == key)
            return true;
    return false;
}

/* Where a text of the language is likely from, by the scripts that tags have: a range of another script is served for its language alone. */
static bool fill_likely_regions(const struct making *mk, struct supported_language *l)
{
    struct code_pair pairs[REGIONS_MAX];
    size_t n = 0;

    for (size_t i = l->first; i < l->first + l->n && n < REGIONS_MAX; i++) {
        const struct supported_tag *tag = &mk->m->tags[i];
        uint64_t script = tag->script, region = 0;
        if (has_key(pairs, n, script))
            continue;
        add_likely(tag->language, &script, &region);
        pairs[n++] = (struct code_pair){script, region};
    }
    return keep_pairs(mk, pairs, n, &l->regions);
}

static bool fill_language(const struct making *mk, uint64_t language, struct supported_language *l)
{
    struct code_pair pairs[REGIONS_MAX];
    uint64_t region = 0;
    size_t n = 0;

    add_likely(language, &l->script, &region);
    for (size_t i = 0; i < mk->regions.n; i++) {
        uint64_t script = 0;
        region = mk->regions.codes[i];
        add_likely(language, &script, &region);
        if (script != 0 && script != l->script)
            pairs[n++] = (struct code_pair){mk->regions.codes[i], script};
    }
    return keep_pairs(mk, pairs, n, &l->scripts) && fill_likely_regions(mk, l);
}

/* The languages, each with its own name; names are sorted, for the tags are. */
static bool fill_languages(const struct making *mk)
{
    struct locale_matcher *m = mk->m;

    for (size_t i = 0; i < m->n_tags; i++) {
        const uint64_t language = m->tags[i].language;
        struct supported_language *l = ARENA_NEW(mk->arena, struct supported_language);
        if (!l)
            return false;
        l->first = i;
        while (i + 1 < m->n_tags && m->tags[i + 1].language == language)
            i++;
        l->n = i + 1 - l->first;
        if (!fill_language(mk, language, l))
            return false;
        m->names[m->n_names++] = (struct language_name){.name = language, .language = l};
    }
    return true;
}

static const struct supported_language *find_language(const struct locale_matcher *m, uint64_t name)
{
    for (size_t i = 0; i < m->n_names; i++)
        if (m->names[i].name == name)
            return m->names[i].language;
    return NULL;
}

/* Behind the proper names, up to n_max in all. */
static void add_other_names(const struct making *mk, UResourceBundle *rows, size_t n_max)
{
    struct locale_matcher *m = mk->m;
    const size_t n_proper = m->n_names;
    struct alias alias = {.name = subtag_code(STR("no")), .stands_for = {.language = STR("nb")}};

    do {
        const struct locale_matcher proper = {.names = m->names, .n_names = n_proper};
        const struct supported_language *l = find_language(&proper, one_name(subtag_code(alias.stands_for.language)));
        if (l != NULL && find_language(m, alias.name) == NULL && m->n_names < n_max)
            m->names[m->n_names++] = (struct language_name){alias.name, subtag_code(alias.stands_for.script), l};
    } while (rows != NULL && next_language_alias(rows, &alias));
    qsort(m->names, m->n_names, sizeof m->names[0], name_order);
}

static bool fill(struct making *mk, const struct str_list *supported)
{
    struct locale_matcher *m = mk->m;
    UErrorCode status = U_ZERO_ERROR;
    UResourceBundle *rows = mk->aliases != NULL ? ures_getByKey(mk->aliases, "language", NULL, &status) : NULL;
    const size_t n_max = supported->n + 1 + (rows != NULL && U_SUCCESS(status) ? (size_t) ures_getSize(rows) : 0);
    bool ok = false;

    m->tags = ARENA_NEW_N(mk->arena, supported->n, struct supported_tag);
    m->names = ARENA_NEW_N(mk->arena, n_max, struct language_name);
    if (m->tags && m->names && fill_region_names(mk) && fill_tags(mk, supported) && fill_languages(mk)) {
        add_other_names(mk, U_SUCCESS(status) ? rows : NULL, n_max);
        ok = true;
    }
    ures_close(rows);
    return ok;
}

bool locale_matcher_make(const struct str_list *supported, size_t fallback, struct arena *a, const struct locale_matcher **out)
{
    UErrorCode status = U_ZERO_ERROR;
    struct locale_matcher *m = ARENA_NEW(a, struct locale_matcher);
    struct making mk = {.m = m, .arena = a};

    if (!m)
        return false;
    *m = (struct locale_matcher){.n_tags = supported->n, .fallback = fallback, .texts = supported->items};
    UResourceBundle *metadata = ures_openDirect(NULL, "metadata", &status), *aliases = ures_getByKey(metadata, "alias", NULL, &status);
    mk.aliases = U_SUCCESS(status) ? aliases : NULL;
    list_regions(&mk.regions);
    bool ok = fill(&mk, supported);
    ures_close(aliases);
    ures_close(metadata);
    if (ok)
        *out = m;
    return ok;
}
