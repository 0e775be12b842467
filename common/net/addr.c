/* Addresses as 16 bytes, their text forms, and sorted sets of ranges. */
#include "common/net/addr.h"

#include <arpa/inet.h>
#include <stdlib.h>

enum { ADDR_BYTES = 16, ADDR_BITS = 128, V4_AT = 12, N_GROUPS = 8 };

static const uint8_t v4_prefix[V4_AT] = {[10] = 0xff, [11] = 0xff};

bool addr_is_v4(const struct addr *a)
{
    return memcmp(a->b, v4_prefix, sizeof(v4_prefix)) == 0;
}

int addr_cmp(const struct addr *a, const struct addr *b)
{
    return memcmp(a->b, b->b, ADDR_BYTES);
}

struct addr addr_from_v4(const uint8_t b[static 4])
{
    struct addr a;
    memcpy(a.b, v4_prefix, V4_AT);
    memcpy(a.b + V4_AT, b, 4);
    return a;
}

struct addr addr_from_v6(const uint8_t b[static 16])
{
    struct addr a;
    memcpy(a.b, b, ADDR_BYTES);
    return a;
}

bool addr_parse(struct str s, struct addr *out)
{
    char text[ADDR_TEXT_MAX];
    if (s.len == 0 || s.len >= sizeof(text) || str_find_byte(s, '\0') != SIZE_MAX)
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    uint8_t b[ADDR_BYTES];
    if (inet_pton(AF_INET, text, b) == 1)
        *out = addr_from_v4(b);
    else if (inet_pton(AF_INET6, text, b) == 1)
        *out = addr_from_v6(b);
    else
        return false;
    return true;
}

static uint16_t group_of(const struct addr *a, size_t i)
{
    return (uint16_t)(a->b[2 * i] << 8 | a->b[2 * i + 1]);
}

/* RFC 5952 4.2: the first of the longest runs of zero groups, if it has two or more. */
static void longest_zeros(const struct addr *a, size_t *first, size_t *n)
{
    *first = N_GROUPS;
    *n = 1;
    for (size_t i = 0; i < N_GROUPS; i++) {
        size_t end = i;
        while (end < N_GROUPS && group_of(a, end) == 0)
            end++;
        if (end - i > *n) {
            *first = i;
            *n = end - i;
        }
    }
}

/* Lower case, no leading zeros. */
static void put_group(struct buf *b, uint16_t group)
{
    static const char digits[] = "0123456789abcdef";
    unsigned shift = 12;
    while (shift > 0 && group >> shift == 0)
        shift -= 4;
    for (;; shift -= 4) {
        buf_put_byte(b, digits[group >> shift & 15]);
        if (shift == 0)
            return;
    }
}

static void put_v4(struct buf *b, const uint8_t bytes[static 4])
{
    for (size_t i = 0; i < 4; i++) {
        if (i > 0)
            buf_put_byte(b, '.');
        buf_put_u64(b, bytes[i]);
    }
}

size_t addr_render(const struct addr *a, char out[static ADDR_TEXT_MAX])
{
    struct buf b;
    buf_init(&b, out, ADDR_TEXT_MAX);
    if (addr_is_v4(a)) {
        put_v4(&b, a->b + V4_AT);
        return b.len;
    }
    size_t zeros, n_zeros;
    longest_zeros(a, &zeros, &n_zeros);
    for (size_t i = 0; i < N_GROUPS; i++) {
        if (i == zeros) {
            buf_put_cstr(&b, "::");
            i += n_zeros - 1;
            continue;
        }
        if (i > 0 && i != zeros + n_zeros)
            buf_put_byte(&b, ':');
        put_group(&b, group_of(a, i));
    }
    return b.len;
}

struct addr addr_subscriber(const struct addr *a)
{
    struct addr cut = *a;
    if (!addr_is_v4(a))
        memset(cut.b + ADDR_BYTES / 2, 0, ADDR_BYTES / 2);
    return cut;
}

/* "0" to max, without leading zeros. */
static bool parse_prefix_bits(struct str s, unsigned max, unsigned *out)
{
    unsigned n = 0;
    if (s.len == 0 || s.len > 3 || (s.len > 1 && s.p[0] == '0'))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!ascii_is_digit(s.p[i]))
            return false;
        n = n * 10 + (unsigned)(s.p[i] - '0');
    }
    *out = n;
    return n <= max;
}

bool addr_parse_cidr(struct str s, struct addr_range *out)
{
    size_t slash = str_find_byte(s, '/');
    struct str text = str_sub(s, 0, slash);
    struct addr_range r;
    if (!addr_parse(text, &r.first))
        return false;
    unsigned bits = ADDR_BITS;
    if (slash != SIZE_MAX) {
        bool dotted = str_find_byte(text, ':') == SIZE_MAX;
        if (!parse_prefix_bits(str_sub(s, slash + 1, s.len), dotted ? 32 : ADDR_BITS, &bits))
            return false;
        if (dotted)
            bits += V4_AT * 8;
    }
    r.last = r.first;
    for (unsigned i = bits; i < ADDR_BITS; i++) {
        uint8_t bit = (uint8_t)(0x80 >> i % 8);
        if ((r.first.b[i / 8] & bit) != 0)
            return false;
        r.last.b[i / 8] |= bit;
    }
    *out = r;
    return true;
}

static bool range_is_v4(const struct addr_range *r)
{
    return addr_is_v4(&r->first) && addr_is_v4(&r->last);
}

static int range_order(const void *x, const void *y)
{
    const struct addr_range *a = x, *b = y;
    if (range_is_v4(a) != range_is_v4(b))
        return range_is_v4(a) ? -1 : 1;
    int order = addr_cmp(&a->first, &b->first);
    return order != 0 ? order : addr_cmp(&a->last, &b->last);
}

/* Whether the range that begins at first adds to one that ends at last with no gap between. */
static bool touches(struct addr last, const struct addr *first)
{
    if (addr_cmp(first, &last) <= 0)
        return true;
    for (size_t i = ADDR_BYTES; i-- > 0;)
        if (++last.b[i] != 0)
            break;
    return addr_cmp(first, &last) == 0;
}

void addr_set_build(struct addr_set *set, struct addr_range *ranges, size_t n)
{
    if (n > 0)
        qsort(ranges, n, sizeof(*ranges), range_order);
    size_t n_out = 0, n_v4 = 0;
    for (size_t i = 0; i < n; i++) {
        struct addr_range r = ranges[i];
        struct addr_range *before = n_out > 0 ? &ranges[n_out - 1] : NULL;
        if (before != NULL && range_is_v4(before) == range_is_v4(&r) && touches(before->last, &r.first)) {
            if (addr_cmp(&r.last, &before->last) > 0)
                before->last = r.last;
            continue;
        }
        ranges[n_out++] = r;
        n_v4 += range_is_v4(&r) ? 1 : 0;
    }
    *set = (struct addr_set){.ranges = ranges, .n = n_out, .n_v4 = n_v4};
}

bool addr_set_has(const struct addr_set *set, const struct addr *a)
{
    bool v4 = addr_is_v4(a);
    size_t low = v4 ? 0 : set->n_v4, high = v4 ? set->n_v4 : set->n;
    /* The last range that does not begin behind a is the only one that can hold it. */
    size_t start = low;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (addr_cmp(&set->ranges[middle].first, a) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > start && addr_cmp(a, &set->ranges[low - 1].last) <= 0;
}
