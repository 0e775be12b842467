/* Clocks and RFC 3339 texts. */
#include <CUnit/CUnit.h>

#include "common/base/clock.h"

static void texts_are_rfc_3339(void)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1, "1970-01-01T00:00:00.001Z"},
        {951782400123, "2000-02-29T00:00:00.123Z"},
        {1769860800999, "2026-01-31T12:00:00.999Z"},
        {4102444799999, "2099-12-31T23:59:59.999Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
        {253402300800000, "9999-12-31T23:59:59.999Z"},
        {UINT64_MAX, "9999-12-31T23:59:59.999Z"},
    };
    char out[25];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        clock_format_utc(rows[i].ms, out);
        CU_ASSERT_STRING_EQUAL(out, rows[i].text);
    }
}

static void the_system_clocks_run(void)
{
    uint64_t mono_us = clock_mono_us(&clock_system);

    CU_ASSERT(clock_mono_us(&clock_system) >= mono_us);
    /* 2020: a clock that counts other units, or from another year, is far from it. */
    CU_ASSERT(clock_real_ms(&clock_system) > 1577836800000 && clock_real_ms(&clock_system) < 253402300800000);
}

void test_clock_register(void)
{
    CU_pSuite s = CU_add_suite("clock", NULL, NULL);

    CU_add_test(s, "times are RFC 3339 texts of constant length", texts_are_rfc_3339);
    CU_add_test(s, "the monotonic clock never runs backwards and the real one counts from 1970", the_system_clocks_run);
}
