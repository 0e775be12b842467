/* Inside the locale: what is known of the supported languages once their likely subtags and other names are filled in. */
#ifndef COMMON_HTTP_LOCALE_PRIV_H
#define COMMON_HTTP_LOCALE_PRIV_H

#include "common/http/language_tag.h"
#include "common/http/locale.h"

/* A subtag as a number, in lower case: equal ones are equal. 0: none. */
static inline uint64_t subtag_code(struct str s)
{
    uint64_t code = 0;

    for (size_t i = 0; i < s.len && i < sizeof code; i++)
        code = code << 8 | (unsigned char) ascii_lower(s.p[i]);
    return code;
}

/* One of a sorted list; each key once. */
struct code_pair {
    uint64_t key, value;
};
struct code_pairs {
    const struct code_pair *items;
    size_t n;
};
/* 0: there is none of that key. */
uint64_t code_pairs_get(const struct code_pairs *pairs, uint64_t key);

struct supported_tag {
    struct str text; /* as written */
    size_t index;    /* of the list */
    uint64_t language, script, region; /* filled in */
    bool has_region;             /* written */
    struct code_pairs contained; /* the regions within its own, where that is more than a country; value: 1 */
};

/* A language of at least one tag. */
struct supported_language {
    size_t first, n;            /* its tags, in the order of the list */
    uint64_t script;            /* that it is likely written in */
    struct code_pairs scripts;  /* by region, where likely another one */
    struct code_pairs regions;  /* by script of a tag: where such a text is likely from */
};

/* A name by which a request may ask for one: its own, or one that it has had (iw of he), some with a script (sh is sr-Latn). */
struct language_name {
    uint64_t name, script;
    const struct supported_language *language;
};

struct locale_matcher {
    struct supported_tag *tags; /* by language, then as in the list */
    size_t n_tags, fallback;
    struct language_name *names; /* sorted; each name once */
    size_t n_names;
    struct code_pairs region_names; /* what countries have been called -> what they are */
    const struct str *texts;        /* by index */
};

#endif
