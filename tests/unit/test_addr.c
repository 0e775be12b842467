/* Addresses and sets: the rows of tests/cases/net, and sets held against a plain scan. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "common/net/addr.h"
#include "tests/unit/case_raw.h"

enum { TEXT_MAX = 64, RANGES_MAX = 8 };

static struct str render(const struct addr *a, char out[static ADDR_TEXT_MAX])
{
    return (struct str){out, addr_render(a, out)};
}

static bool renders_as(const struct addr *a, struct str want)
{
    char text[ADDR_TEXT_MAX];
    return str_eq(render(a, text), want);
}

static void addr_rows(void)
{
    json_t *rows = cases_load("tests/cases/net/addr.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char storage[TEXT_MAX];
        struct str canonical = case_str(row, "canonical");
        struct addr a = {{77}}, again;
        bool ok = addr_parse(case_raw(row, "text", storage, sizeof(storage)), &a);
        CASE_CHECK(row, ok == (canonical.p != NULL));
        if (!ok) {
            CASE_CHECK(row, a.b[0] == 77 && a.b[15] == 0);
            continue;
        }
        CASE_CHECK(row, renders_as(&a, canonical));
        CASE_CHECK(row, addr_parse(canonical, &again) && addr_cmp(&a, &again) == 0);
        CASE_CHECK(row, addr_is_v4(&a) == (str_find_byte(canonical, ':') == SIZE_MAX));
    }
    json_decref(rows);
}

static void cidr_rows(void)
{
    json_t *rows = cases_load("tests/cases/net/cidr.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char storage[TEXT_MAX];
        struct str first = case_str(row, "first");
        struct addr_range r = {{{77}}, {{78}}};
        bool ok = addr_parse_cidr(case_raw(row, "text", storage, sizeof(storage)), &r);
        CASE_CHECK(row, ok == (first.p != NULL));
        if (ok)
            CASE_CHECK(row, renders_as(&r.first, first) && renders_as(&r.last, case_str(row, "last")));
        else
            CASE_CHECK(row, r.first.b[0] == 77 && r.last.b[0] == 78);
    }
    json_decref(rows);
}

static void check_members(const json_t *row, const char *member, const struct addr_set *set, bool want)
{
    const json_t *list = json_object_get(row, member), *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        struct addr a;
        CASE_CHECK(row, addr_parse(str_of(json_string_value(item)), &a) && addr_set_has(set, &a) == want);
    }
}

static void set_rows(void)
{
    json_t *rows = cases_load("tests/cases/net/sets.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        struct addr_range ranges[RANGES_MAX];
        const json_t *texts = json_object_get(row, "ranges");
        struct addr_set set;
        CU_ASSERT_FATAL(json_array_size(texts) <= RANGES_MAX);
        for (size_t j = 0; j < json_array_size(texts); j++)
            CASE_CHECK(row, addr_parse_cidr(str_of(json_string_value(json_array_get(texts, j))), &ranges[j]));
        addr_set_build(&set, ranges, json_array_size(texts));
        CASE_CHECK(row, (json_int_t)set.n == json_integer_value(json_object_get(row, "merged")));
        check_members(row, "in", &set, true);
        check_members(row, "out", &set, false);
    }
    json_decref(rows);
}

static void subscriber_rows(void)
{
    json_t *rows = cases_load("tests/cases/net/subscriber.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        struct addr a;
        CASE_CHECK(row, addr_parse(case_str(row, "addr"), &a));
        a = addr_subscriber(&a);
        CASE_CHECK(row, renders_as(&a, case_str(row, "subscriber")));
    }
    json_decref(rows);
}

/* Addresses from a small world of both families, so that ranges meet, overlap and leave gaps. */
static struct addr small_world(unsigned short seed[static 3])
{
    uint8_t v6[16] = {[15] = (uint8_t)nrand48(seed)};
    uint8_t v4[4] = {10, 0, 0, (uint8_t)nrand48(seed)};
    return nrand48(seed) % 2 == 0 ? addr_from_v4(v4) : addr_from_v6(v6);
}

static bool plain_scan(const struct addr_range *ranges, size_t n, const struct addr *a)
{
    for (size_t i = 0; i < n; i++) {
        bool v4_range = addr_is_v4(&ranges[i].first) && addr_is_v4(&ranges[i].last);
        if (v4_range == addr_is_v4(a) && addr_cmp(&ranges[i].first, a) <= 0 && addr_cmp(a, &ranges[i].last) <= 0)
            return true;
    }
    return false;
}

static void sets_like_a_scan(void)
{
    unsigned short seed[3] = {1, 2, 3};
    for (int round = 0; round < 2000; round++) {
        struct addr_range ranges[RANGES_MAX], built[RANGES_MAX];
        size_t n = (size_t)nrand48(seed) % (RANGES_MAX + 1);
        for (size_t i = 0; i < n; i++) {
            struct addr x = small_world(seed), y = small_world(seed);
            bool ordered = addr_cmp(&x, &y) <= 0;
            ranges[i] = built[i] = (struct addr_range){ordered ? x : y, ordered ? y : x};
        }
        struct addr_set set;
        addr_set_build(&set, built, n);
        bool same = set.n <= n;
        for (int probe = 0; probe < 50; probe++) {
            struct addr a = small_world(seed);
            same = same && addr_set_has(&set, &a) == plain_scan(ranges, n, &a);
        }
        CU_ASSERT(same);
    }
}

void test_addr_register(void)
{
    CU_pSuite s = CU_add_suite("addr", NULL, NULL);
    CU_add_test(s, "an address has one strict text and one value, so no spelling counts as another client", addr_rows);
    CU_add_test(s, "a prefix with host bits or a loose length is refused, so none trusts more than is written",
                cidr_rows);
    CU_add_test(s, "a set holds exactly its ranges, and an IPv6 range never an IPv4 address", set_rows);
    CU_add_test(s, "IPv6 clients of one /64 are one subscriber, so a random suffix evades no limit", subscriber_rows);
    CU_add_test(s, "a set answers like a plain scan over its ranges (seed 1 2 3)", sets_like_a_scan);
}
