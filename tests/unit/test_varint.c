/* SPOE's variable-length integers. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "common/base/varint.h"
#include "tests/unit/cases.h"

static void the_table_of_encodings(void)
{
    json_t *rows = cases_load("tests/cases/base/varints.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        char bytes[64], storage[VARINT_MAX_LEN];
        struct str in, rest;
        uint64_t value = 4242, want;
        struct buf b;

        in = case_bytes(row, "bytes_hex", bytes, sizeof(bytes));
        rest = in;
        if (json_object_get(row, "refused") != NULL) {
            CASE_CHECK(row, !varint_get(&rest, &value) && value == 4242);
            CASE_CHECK(row, rest.p == in.p && rest.len == in.len);
            continue;
        }
        want = strtoull(case_str(row, "value").p, NULL, 10);
        CASE_CHECK(row, varint_get(&rest, &value) && value == want && rest.len == 0);
        CASE_CHECK(row, varint_len(want) == in.len);
        buf_init(&b, storage, sizeof(storage));
        varint_put(&b, want);
        CASE_CHECK(row, !b.full && str_eq(buf_str(&b), in));
        /* Each proper beginning is a cut one, the rest behind it is not consumed. */
        for (size_t len = 0; len < in.len; len++) {
            rest = str_sub(in, 0, len);
            CASE_CHECK(row, !varint_get(&rest, &value) && rest.len == len);
        }
        bytes[in.len] = (char)0xff;
        rest = (struct str){bytes, in.len + 1};
        CASE_CHECK(row, varint_get(&rest, &value) && value == want && rest.len == 1);
    }
    json_decref(rows);
}

static void values_around_every_power_of_two_survive(void)
{
    char storage[VARINT_MAX_LEN];

    for (unsigned bit = 0; bit < 64; bit++)
        for (uint64_t delta = 0; delta < 600; delta++) {
            uint64_t n = ((uint64_t)1 << bit) - 300 + delta, back = ~n;
            struct str in;
            struct buf b;

            buf_init(&b, storage, sizeof(storage));
            varint_put(&b, n);
            in = buf_str(&b);
            if (in.len != varint_len(n) || !varint_get(&in, &back) || back != n || in.len != 0)
                CU_FAIL("a value did not survive");
        }
}

static void a_value_that_does_not_fit_is_not_written(void)
{
    char storage[2];
    struct buf b;

    buf_init(&b, storage, sizeof(storage));
    varint_put(&b, 2288);
    CU_ASSERT(b.full && b.len == 0);
}

void test_varint_register(void)
{
    CU_pSuite s = CU_add_suite("varint", NULL, NULL);

    CU_add_test(s, "security: edge values have their one encoding; cut and over-wide ones are refused unread",
                the_table_of_encodings);
    CU_add_test(s, "values around every power of two survive", values_around_every_power_of_two_survive);
    CU_add_test(s, "a value that does not fit into the buffer is not written in part",
                a_value_that_does_not_fit_is_not_written);
}
