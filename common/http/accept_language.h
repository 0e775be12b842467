/* Accept-Language (RFC 9110 12.5.4), read leniently: an item that makes no sense is left out, the rest counts. */
#ifndef COMMON_HTTP_ACCEPT_LANGUAGE_H
#define COMMON_HTTP_ACCEPT_LANGUAGE_H

#include "common/base/str.h"

enum { ACCEPT_LANGUAGE_MAX = 256, ACCEPT_LANGUAGE_RANGES_MAX = 16, LANGUAGE_RANGE_MAX = 64 };

struct language_range {
    struct str tag;     /* as sent, borrowed: letters, digits and '-' or '_'; or "*" */
    uint16_t thousandths; /* of weight: 1..1000 */
};

/* The ranges that are wanted, best first, equal weights in the order sent; returns how many: of more than ACCEPT_LANGUAGE_RANGES_MAX those sent first.
 * Blanks may stand anywhere between the parts. Left out: what is no tag by its form (RFC 5646 2.1, at most LANGUAGE_RANGE_MAX bytes, "_" read as "-"),
 * a weight that is no number from 0 to 1, weight 0, other parameters' items are kept. Longer than ACCEPT_LANGUAGE_MAX: none. */
size_t accept_language_parse(struct str header, struct language_range out[static ACCEPT_LANGUAGE_RANGES_MAX]);

#endif
