/* Which of the languages that a product speaks a request gets: ranges of Accept-Language against tags, by language, script and region, with
 * the likely subtags of CLDR (ICU) filled in on both sides: zh-TW is zh-Hant-TW. */
#ifndef COMMON_HTTP_LOCALE_H
#define COMMON_HTTP_LOCALE_H

#include "common/base/arena.h"
#include "common/http/accept_language.h"

struct locale_matcher; /* immutable; any thread may choose by it */

/* supported: 1..65535 BCP 47 tags, distinct, at most LANGUAGE_RANGE_MAX bytes each, borrowed; fallback: index of the one that is taken when nothing fits. Lives
 * in a. False: no memory. */
MUSTUSE bool locale_matcher_make(const struct str_list *supported, size_t fallback, struct arena *a, const struct locale_matcher **out);

/* Index of the tag chosen; never fails. Ranges count in the order of their weights; the first one that has a tag of its language and script is served, by
 * (in this order) the tag itself; a tag of the same region, rather one that names it where the range does; the one of the smallest region that contains it
 * (es-419 for es-MX); one without a region; the first of the list. Languages have other names too: iw is he, no is nb, sh is sr-Latn, eng is en. "*" is served
 * by the fallback. When no range was served so, the first one that has a tag of its language in another script is. Missing, malformed or longer than
 * ACCEPT_LANGUAGE_MAX: the fallback. Takes up to two microseconds, no lock and no memory. */
size_t locale_choose(const struct locale_matcher *m, struct str accept_language);
struct str locale_tag(const struct locale_matcher *m, size_t index); /* as written in supported */
/* Whether both choose the same index for every header. */
bool locale_matcher_equal(const struct locale_matcher *a, const struct locale_matcher *b);

#endif
