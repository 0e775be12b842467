/* Hex, base64url and percent-decoding. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "common/base/codec.h"
#include "tests/unit/cases.h"

static void hex_is_lower_case(void)
{
    const uint8_t in[] = {0x00, 0x0f, 0xf0, 0xab, 0xff};
    char out[2 * sizeof(in)];

    codec_hex(in, sizeof(in), out);
    CU_ASSERT(str_eq((struct str){out, sizeof(out)}, STR("000ff0abff")));
}

static void only_hex_digits_have_a_value(void)
{
    static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";

    for (int c = 0; c < 256; c++) {
        const char *in_lower = memchr(lower, c, 16), *in_upper = memchr(upper, c, 16);
        int want = in_lower != NULL ? (int)(in_lower - lower) : in_upper != NULL ? (int)(in_upper - upper) : -1;

        CU_ASSERT(codec_hex_digit((char)c) == want);
    }
}

static void base64url(void)
{
    json_t *rows = cases_load("tests/cases/base/base64url.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct str text = case_str(row, "text"), want;
        char bytes[64], encoded[100];
        /* As large as promised and not larger: a write one byte too far is seen by AddressSanitizer. */
        uint8_t *out = malloc(text.len * 3 / 4 + (text.len < 2));
        size_t len = 4242;
        bool ok;

        CU_ASSERT_FATAL(out != NULL);
        ok = codec_base64url_decode(text, out, &len);
        if (json_object_get(row, "refused") != NULL) {
            CASE_CHECK(row, !ok && len == 4242);
        } else {
            want = case_bytes(row, "bytes_hex", bytes, sizeof(bytes));
            CASE_CHECK(row, ok && str_eq((struct str){(const char *)out, len}, want));
            CASE_CHECK(row, text.len == CODEC_BASE64URL_LEN(want.len));
            codec_base64url((const uint8_t *)want.p, want.len, encoded);
            CASE_CHECK(row, str_eq((struct str){encoded, text.len}, text));
        }
        free(out);
    }
    json_decref(rows);
}

static void every_byte_survives_base64url(void)
{
    uint8_t in[256], out[256];
    char text[CODEC_BASE64URL_LEN(256)];

    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i * 167 + 13);
    for (size_t len = 0; len <= sizeof(in); len++) {
        size_t out_len = SIZE_MAX;

        codec_base64url(in, len, text);
        CU_ASSERT(codec_base64url_decode((struct str){text, CODEC_BASE64URL_LEN(len)}, out, &out_len));
        CU_ASSERT(out_len == len && memcmp(in, out, len) == 0);
    }
}

static void percent_sequences(void)
{
    json_t *rows = cases_load("tests/cases/base/percent.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct str text = case_str(row, "text");
        char *out = malloc(text.len > 0 ? text.len : 1);
        size_t len = 4242;
        bool ok;

        CU_ASSERT_FATAL(out != NULL);
        ok = codec_percent_decode(text, json_is_true(json_object_get(row, "plus")), out, &len);
        if (json_object_get(row, "refused") != NULL)
            CASE_CHECK(row, !ok && len == 4242);
        else
            CASE_CHECK(row, ok && str_eq((struct str){out, len}, case_str(row, "decoded")));
        free(out);
    }
    json_decref(rows);
}

static void every_escape_decodes_to_its_byte(void)
{
    for (int c = 0; c < 256; c++) {
        uint8_t byte = (uint8_t)c;
        char text[3] = {'%', 0, 0}, out[3];
        size_t len = 0;

        codec_hex(&byte, 1, text + 1);
        CU_ASSERT(codec_percent_decode((struct str){text, 3}, false, out, &len) && len == 1 && (uint8_t)out[0] == byte);
    }
}

void test_codec_register(void)
{
    CU_pSuite s = CU_add_suite("codec", NULL, NULL);

    CU_add_test(s, "hex is lower case", hex_is_lower_case);
    CU_add_test(s, "only the hex digits have a value", only_hex_digits_have_a_value);
    CU_add_test(s, "security: base64url has exactly one text for each byte string", base64url);
    CU_add_test(s, "every byte survives base64url at every length", every_byte_survives_base64url);
    CU_add_test(s, "security: percent sequences are decoded once, malformed ones refused", percent_sequences);
    CU_add_test(s, "every escape decodes to its byte", every_escape_decodes_to_its_byte);
}
