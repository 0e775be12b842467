/* Any bytes as the text of an address or a prefix, and any 16 bytes as an address. */
#include "common/net/addr.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static void check_text(const struct addr *a)
{
    char text[ADDR_TEXT_MAX];
    size_t len = addr_render(a, text);
    struct addr again;
    struct addr_range whole;
    GUARANTEE(len > 0 && len < ADDR_TEXT_MAX);
    GUARANTEE(addr_parse((struct str){text, len}, &again) && addr_cmp(a, &again) == 0);
    GUARANTEE(addr_parse_cidr((struct str){text, len}, &whole));
    GUARANTEE(addr_cmp(&whole.first, a) == 0 && addr_cmp(&whole.last, a) == 0);
    GUARANTEE(addr_is_v4(a) == (memchr(text, ':', len) == NULL));
    struct addr unit = addr_subscriber(a), same = addr_subscriber(&unit);
    GUARANTEE(addr_cmp(&unit, &same) == 0 && (!addr_is_v4(a) || addr_cmp(&unit, a) == 0));
}

static void check_range(struct addr_range r)
{
    struct addr_set set;
    GUARANTEE(addr_cmp(&r.first, &r.last) <= 0);
    check_text(&r.first);
    check_text(&r.last);
    addr_set_build(&set, &r, 1);
    GUARANTEE(set.n == 1 && addr_set_has(&set, &r.first) == (addr_is_v4(&r.first) == (set.n_v4 == 1)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct addr a;
    struct addr_range r;
    if (addr_parse(text, &a))
        check_text(&a);
    if (addr_parse_cidr(text, &r))
        check_range(r);
    if (size >= 16) {
        a = addr_from_v6(data);
        check_text(&a);
        a = addr_from_v4(data);
        check_text(&a);
    }
    return 0;
}
