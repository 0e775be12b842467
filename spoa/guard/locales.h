/* What was chosen for which Accept-Language: browsers send few different ones, so most requests pay no matching. */
#ifndef SPOA_GUARD_LOCALES_H
#define SPOA_GUARD_LOCALES_H

#include "common/base/err.h"
#include "common/http/locale.h"

/* Bounds of a cache: headers kept, and bytes of all of them. */
enum { LOCALES_MAX = 4096, LOCALES_BYTES_MAX = 512 * 1024 };

struct locale_cache;

/* Publisher's thread. */
MUSTUSE bool locale_cache_new(struct locale_cache **out, struct err *e);
void locale_cache_free(struct locale_cache **c);

/* locale_choose(m, header) by the header's bytes, remembered; every m of one cache must choose alike. What finds no room is matched and not kept. A part that
 * is full begins anew at most once a minute, so that a flood of made-up headers is no more than that. Any thread; one short lock, none while matching.
 * now_ms: of a clock that never runs backwards. *hit: nothing had to be matched. */
size_t locale_cache_choose(struct locale_cache *c, const struct locale_matcher *m, struct str header, uint64_t now_ms, bool *hit);

#endif
