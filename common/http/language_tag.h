/* The form of language tags (RFC 5646 2.1, BCP 47), without a look at what the subtags mean. */
#ifndef COMMON_HTTP_LANGUAGE_TAG_H
#define COMMON_HTTP_LANGUAGE_TAG_H

#include "common/http/accept_language.h"

/* Borrowed from the text; empty where the tag has none. In any case of letters. */
struct language_tag {
    struct str language; /* of "zh-yue" its extended language "yue", which it means (RFC 5646 4.5) */
    struct str script, region;
};

/* At most LANGUAGE_RANGE_MAX bytes; "_" counts as "-", as old programs write it. False for what is no tag, for the irregular grandfathered ones, and for what consists
 * of private use alone; *out is untouched then. */
bool language_tag_read(struct str s, struct language_tag *out);
/* As clients may send it: those two as well. A grandfathered one is read as what is said today, and private use alone has no language. */
bool language_range_read(struct str s, struct language_tag *out);
/* In any case, "_" as "-". */
bool language_tag_equal(struct str a, struct str b);

#endif
