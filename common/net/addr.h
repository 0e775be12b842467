/* IP addresses and ranges of addresses. IPv4 is kept as IPv4-mapped IPv6, so one compare serves both. */
#ifndef COMMON_NET_ADDR_H
#define COMMON_NET_ADDR_H

#include "common/base/arena.h"
#include "common/base/str.h"

struct addr {
    uint8_t b[16]; /* network order; IPv4 as ::ffff:a.b.c.d */
};

bool addr_is_v4(const struct addr *a);
int addr_cmp(const struct addr *a, const struct addr *b);
struct addr addr_from_v4(const uint8_t b[static 4]);
struct addr addr_from_v6(const uint8_t b[static 16]);
/* RFC 4291 2.2 and dotted decimal; no zone, port, brackets, leading zeros in IPv4. An IPv4-mapped IPv6 text is that
 * IPv4. */
MUSTUSE bool addr_parse(struct str s, struct addr *out);
enum { ADDR_TEXT_MAX = 46 };
/* RFC 5952 canonical text; returns its length. */
size_t addr_render(const struct addr *a, char out[static ADDR_TEXT_MAX]);
/* IPv6 cut at /64, IPv4 whole: the unit that limits count by. */
struct addr addr_subscriber(const struct addr *a);

struct addr_range {
    struct addr first, last; /* inclusive */
};
/* "10.0.0.0/8", "2001:db8::/32" or a bare address. Host bits set below the prefix are refused. An IPv6 prefix counts
 * 128 bits, so "::ffff:10.0.0.0/104" is 10.0.0.0/8. */
MUSTUSE bool addr_parse_cidr(struct str s, struct addr_range *out);

/* Sorted, merged, immutable once built; reads from any thread. A range is IPv4 when both its ends are: the others,
 * such as ::/0, never match an IPv4 address although they span the mapped ones. */
struct addr_set {
    struct addr_range *ranges; /* the IPv4 ones first */
    size_t n, n_v4;
};
/* ranges (first <= last in each) are sorted and merged in place, kept in the arena's memory given by the caller. */
void addr_set_build(struct addr_set *set, struct addr_range *ranges, size_t n);
bool addr_set_has(const struct addr_set *set, const struct addr *a);

#endif
