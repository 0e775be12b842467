/* The client's address out of proxies' headers, by rows: one address with or without a port, and the walk along X-Forwarded-For. */
#include <CUnit/CUnit.h>

#include "common/base/arena.h"
#include "common/net/client_ip.h"
#include "tests/unit/case_raw.h"

enum { TEXT_MAX = 128, VALUES_MAX = 128, RANGES_MAX = 8 };

static struct arena arena;

static int set_up(void)
{
    arena_init(&arena, 4096, 0);
    return 0;
}

static int tear_down(void)
{
    arena_release(&arena);
    return 0;
}

static bool is_addr(const struct addr *a, struct str want)
{
    char text[ADDR_TEXT_MAX];

    return str_eq((struct str){text, addr_render(a, text)}, want);
}

/* The member of the form's name is the address in canonical text; a row without it wants the text refused. */
static void check_form(const json_t *row, struct str text, enum client_ip_form form, const char *member)
{
    const struct str want = case_str(row, member);
    struct addr got = {{77}};
    const bool ok = client_ip_parse(text, form, &got);

    CASE_CHECK_GOT(row, ok == (want.p != NULL), str_of(member));
    CASE_CHECK_GOT(row, ok ? is_addr(&got, want) : got.b[0] == 77 && got.b[15] == 0, str_of(member));
}

static void forms(void)
{
    json_t *rows = cases_load("tests/cases/net/client_ip.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        char storage[TEXT_MAX];
        const struct str text = case_raw(row, "text", storage, sizeof storage);

        check_form(row, text, CLIENT_IP_ADDRESS, "address");
        check_form(row, text, CLIENT_IP_ADDRESS_PORT, "address_port");
    }
    json_decref(rows);
}

static void trusted_of(const json_t *row, struct addr_range ranges[static RANGES_MAX], struct addr_set *set)
{
    const json_t *list = json_object_get(row, "trusted");
    const size_t n = json_array_size(list);

    CU_ASSERT_FATAL(n <= RANGES_MAX);
    for (size_t i = 0; i < n; i++)
        CU_ASSERT_FATAL(addr_parse_cidr(str_of(json_string_value(json_array_get(list, i))), &ranges[i]));
    addr_set_build(set, ranges, n);
}

/* "hops": n proxies behind what "values" say, each a trusted 10.0.0.1 in the last line; "lines": n of them in lines of their own. */
static size_t values_of(const json_t *row, struct str values[static VALUES_MAX])
{
    const json_t *list = json_object_get(row, "values");
    const size_t n_hops = (size_t) json_integer_value(json_object_get(row, "hops"));
    const size_t n_lines = (size_t) json_integer_value(json_object_get(row, "lines"));
    size_t n = 0;

    for (; n < json_array_size(list); n++)
        values[n] = str_of(json_string_value(json_array_get(list, n)));
    if (n_hops > 0) {
        const struct str hop = STR(", 10.0.0.1");
        const size_t cap = values[n - 1].len + n_hops * hop.len;
        struct buf b;
        char *p = arena_take_bytes(&arena, cap);

        CU_ASSERT_FATAL(p != NULL);
        buf_init(&b, p, cap);
        buf_put(&b, values[n - 1]);
        for (size_t i = 0; i < n_hops; i++)
            buf_put(&b, hop);
        CU_ASSERT(!b.full);
        values[n - 1] = buf_str(&b);
    }
    for (size_t i = 0; i < n_lines; i++)
        values[n++] = STR("10.0.0.1");
    return n;
}

static void walks(void)
{
    static const char *const results[] = {"found", "missing", "malformed"};
    json_t *rows = cases_load("tests/cases/net/client_ip_walk.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct addr_range ranges[RANGES_MAX];
        struct str values[VALUES_MAX];
        struct addr_set trusted;
        struct addr got = {{77}};

        trusted_of(row, ranges, &trusted);
        const size_t n = values_of(row, values);
        const enum client_ip_walk result = client_ip_walk(values, n, &trusted, &got);
        const struct str want = case_str(row, "ip");
        CASE_CHECK_GOT(row, str_eq(str_of(results[result]), want.p != NULL ? STR("found") : case_str(row, "result")), str_of(results[result]));
        CASE_CHECK(row, want.p != NULL ? is_addr(&got, want) : got.b[0] == 77 && got.b[15] == 0);
        arena_reset(&arena);
    }
    json_decref(rows);
}

void test_client_ip_register(void)
{
    CU_pSuite s = CU_add_suite("client_ip", set_up, tear_down);
    CU_add_test(s, "an address has one reading in either form, so that no part of it is taken for a port or a port for a part", forms);
    CU_add_test(s, "of X-Forwarded-For only what trusted proxies wrote is believed, whatever a client puts before it", walks);
}
