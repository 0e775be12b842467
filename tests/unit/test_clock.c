/* Clocks and RFC 3339 texts. */
#include <CUnit/CUnit.h>
#include <time.h>

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

/* Of 400 years, after which the calendar repeats itself, and the last of those that have four digits. */
static void every_day_is_the_c_librarys(void)
{
    const time_t day_s = 24 * 60 * 60, last_s = 253402300799;
    size_t n_wrong = 0;

    for (time_t day = 0; day <= 400 * 366; day++) {
        for (int end = 0; end < 2; end++) {
            const time_t s = end == 0 ? day * day_s : last_s - day * day_s;
            char want[25], got[25];
            struct tm tm;

            gmtime_r(&s, &tm);
            strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S.000Z", &tm);
            clock_format_utc((uint64_t)s * 1000, got);
            n_wrong += strcmp(got, want) != 0;
        }
    }
    CU_ASSERT_EQUAL(n_wrong, 0);
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
    CU_add_test(s, "every day has the date that the C library gives it", every_day_is_the_c_librarys);
    CU_add_test(s, "the monotonic clock never runs backwards and the real one counts from 1970", the_system_clocks_run);
}
