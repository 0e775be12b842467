/* Rows of data from tests/cases. */
#include "tests/unit/cases.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/codec.h"

json_t *cases_load(const char *file)
{
    json_error_t cause;
    json_t *rows = json_load_file(file, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &cause);

    if (json_array_size(rows) == 0) {
        char text[512];

        snprintf(text, sizeof(text), "%s:%d: %s", file, rows == NULL ? cause.line : 1,
                 rows == NULL ? cause.text : "no rows");
        CU_assertImplementation(CU_FALSE, __LINE__, text, __FILE__, "", CU_TRUE);
    }
    return rows;
}

struct str case_str(const json_t *row, const char *name)
{
    const json_t *value = json_object_get(row, name);

    return json_is_string(value) ? (struct str){json_string_value(value), json_string_length(value)} : STR_NONE;
}

struct str case_bytes(const json_t *row, const char *name, char *out, size_t cap)
{
    struct str hex = case_str(row, name);

    CU_ASSERT_FATAL(hex.len % 2 == 0 && hex.len / 2 <= cap);
    for (size_t i = 0; i < hex.len / 2; i++) {
        int high = codec_hex_digit(hex.p[2 * i]), low = codec_hex_digit(hex.p[2 * i + 1]);

        CU_ASSERT_FATAL(high >= 0 && low >= 0);
        out[i] = (char)(high << 4 | low);
    }
    return (struct str){out, hex.len / 2};
}

bool case_check(bool ok, const json_t *row, const char *what, struct str got, const char *file, unsigned line)
{
    char report[2048];

    if (!ok) {
        char *text = json_dumps(row, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

        snprintf(report, sizeof(report), "%s; row %.1000s%s%.*s", what, text == NULL ? "?" : text,
                 got.p == NULL ? "" : "; got ", STR_ARG(str_cut_utf8(got, 500)));
        free(text);
    }
    return CU_assertImplementation(ok ? CU_TRUE : CU_FALSE, line, ok ? what : report, file, "", CU_FALSE) == CU_TRUE;
}
