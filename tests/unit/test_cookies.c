/* Cookies: what Cookie headers hold, one or several of them. */
#include <CUnit/CUnit.h>

#include "common/http/cookies.h"
#include "tests/unit/cases.h"
#include "tests/unit/pair_rows.h"

/* Between other headers, and with its name in another case now and then. */
static void check_cookies(const json_t *row, struct arena *a)
{
    const json_t *values = json_object_get(row, "headers"), *value;
    struct header items[16] = {{STR("accept"), STR("a=b")}};
    struct headers headers = {items, 1};
    struct pairs pairs;
    size_t i;

    json_array_foreach(values, i, value)
    {
        items[headers.n++] = (struct header){i % 2 ? STR("Cookie") : STR("cookie"),
                                             {json_string_value(value), json_string_length(value)}};
        items[headers.n++] = (struct header){STR("x-cookie"), STR("c=d")};
    }
    if (CASE_CHECK(row, cookies_parse(&headers, a, &pairs)))
        pair_rows_check(row, &pairs);
}

static void pairs_of_cookies(void)
{
    pair_rows_each("tests/cases/http/cookies.json", check_cookies);
}

static void no_memory(void)
{
    struct header item = {STR("cookie"), STR("a=1; b=2; c=3")};
    struct headers headers = {&item, 1};
    struct pairs pairs = {NULL, 7};
    struct arena small;

    arena_init(&small, 64, 64);
    CU_ASSERT(!cookies_parse(&headers, &small, &pairs));
    CU_ASSERT(pairs.n == 7);
    arena_release(&small);
}

/* A client must not make its cookies unreadable, and with them the rules on them, by signs that cost it one byte each. */
static void nothing_but_signs(void)
{
    static char text[60000];
    struct header items[] = {{STR("cookie"), {text, sizeof text}}, {STR("cookie"), STR("s=1")}};
    struct headers headers = {items, 2};
    struct pairs pairs;
    struct arena small;

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 3 == 0 ? ';' : '=';
    arena_init(&small, 1024, 1024);
    CU_ASSERT(cookies_parse(&headers, &small, &pairs));
    CU_ASSERT(pairs.n == 1 && str_eq(pairs.items[0].name, STR("s")) && str_eq(pairs.items[0].value, STR("1")));
    arena_release(&small);
}

void test_cookies_register(void)
{
    CU_pSuite s = CU_add_suite("cookies", NULL, NULL);

    CU_add_test(s, "Cookie headers are their pairs as sent, in order", pairs_of_cookies);
    CU_add_test(s, "cookies that run out of memory say so and give nothing", no_memory);
    CU_add_test(s, "security: however many = and ; a Cookie header has, they take no memory", nothing_but_signs);
}
