/* Rows with pairs. */
#include "tests/unit/pair_rows.h"

#include "common/base/codec.h"
#include "tests/unit/cases.h"

void pair_rows_each(const char *file, void (*check)(const json_t *row, struct arena *a))
{
    json_t *rows = cases_load(file), *row;
    struct arena a;
    size_t i;

    arena_init(&a, 4096, 0);
    json_array_foreach(rows, i, row)
    {
        check(row, &a);
        arena_reset(&a);
    }
    arena_release(&a);
    json_decref(rows);
}

static bool is_text(const json_t *wanted, bool hex, struct str got)
{
    char digits[512];

    if (!hex)
        return str_eq(got, (struct str){json_string_value(wanted), json_string_length(wanted)});
    if (got.len > sizeof(digits) / 2)
        return false;
    codec_hex((const uint8_t *)got.p, got.len, digits);
    return str_eq((struct str){digits, 2 * got.len}, (struct str){json_string_value(wanted), json_string_length(wanted)});
}

void pair_rows_check(const json_t *row, const struct pairs *pairs)
{
    bool hex = json_object_get(row, "pairs_hex") != NULL;
    const json_t *wanted = json_object_get(row, hex ? "pairs_hex" : "pairs"), *pair;
    size_t i;

    if (!CASE_CHECK(row, pairs->n == json_array_size(wanted)))
        return;
    json_array_foreach(wanted, i, pair)
    {
        CASE_CHECK_GOT(row, is_text(json_array_get(pair, 0), hex, pairs->items[i].name), pairs->items[i].name);
        CASE_CHECK_GOT(row, is_text(json_array_get(pair, 1), hex, pairs->items[i].value), pairs->items[i].value);
    }
}
