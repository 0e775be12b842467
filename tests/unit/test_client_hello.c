/* Fingerprints of TLS hellos: the rows of tests/cases/net/client_hello.json. */
#include <CUnit/CUnit.h>

#include "common/net/client_hello.h"
#include "tests/unit/cases.h"

static void rows(void)
{
    static struct client_hello h;
    json_t *rows = cases_load("tests/cases/net/client_hello.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const struct str want3 = case_str(row, "ja3"), want4 = case_str(row, "ja4");
        char ja3[JA3_LEN] = {0}, ja4[JA4_LEN] = {0};
        const bool ok = client_hello_read(case_str(row, "hello"), &h);
        const bool has3 = ok && client_hello_ja3(&h, ja3), has4 = ok && client_hello_ja4(&h, ja4);

        CASE_CHECK(row, has3 == (want3.p != NULL) && has4 == (want4.p != NULL));
        CASE_CHECK_GOT(row, !has3 || str_eq((struct str){ja3, JA3_LEN}, want3), ((struct str){ja3, JA3_LEN}));
        CASE_CHECK_GOT(row, !has4 || str_eq((struct str){ja4, JA4_LEN}, want4), ((struct str){ja4, JA4_LEN}));
    }
    json_decref(rows);
}

void test_client_hello_register(void)
{
    CU_pSuite s = CU_add_suite("client_hello", NULL, NULL);
    CU_add_test(s, "JA3 and JA4 are those of their descriptions, and absent where part of the hello is not known", rows);
}
