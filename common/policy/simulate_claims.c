/* Claims of a token that counts as verified, from JSON to the values that rules compare. */
#include "common/policy/compile_priv.h"
#include "common/policy/simulate_priv.h"

enum { NUMBER_MAX = 32, DIGITS_MIN = 15, DIGITS_MAX = 17 };

/* The shortest text that reads back as the same number, so that 1.1 is "1.1"; whole numbers are as sent. */
static size_t number_text(const json_t *number, char out[NUMBER_MAX])
{
    size_t len = 0;

    if (json_is_integer(number))
        return (size_t) snprintf(out, NUMBER_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
    for (size_t digits = DIGITS_MIN; digits <= DIGITS_MAX; digits++) {
        len = json_dumpb(number, out, NUMBER_MAX - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        json_t *back = json_loadb(out, len, JSON_DECODE_ANY, NULL);
        bool same = json_equal(back, (json_t *) (uintptr_t) number) != 0; /* only compared */
        json_decref(back);
        if (same)
            break;
    }
    return len;
}

/* False: no memory. A value that is no text, boolean or number gives none. */
static bool add_value(const json_t *value, struct arena *a, struct str *values, size_t *n)
{
    char number[NUMBER_MAX];
    struct str text;

    if (json_is_string(value))
        text = (struct str){json_string_value(value), json_string_length(value)};
    else if (json_is_boolean(value))
        text = json_is_true(value) ? STR("true") : STR("false");
    else if (json_is_number(value))
        text = (struct str){number, number_text(value, number)};
    else
        return true;
    if (!arena_copy_str(a, text, &values[*n]))
        return false;
    (*n)++;
    return true;
}

static bool take_claim(const json_t *value, struct arena *a, struct expr_claim *out)
{
    size_t n_items = json_is_array(value) ? json_array_size(value) : 1;
    struct str *values = ARENA_NEW_N(a, n_items, struct str);
    bool ok = values != NULL;

    if (json_is_array(value))
        for (size_t i = 0; ok && i < n_items; i++)
            ok = add_value(json_array_get(value, i), a, values, &out->n_values);
    else
        ok = ok && add_value(value, a, values, &out->n_values);
    out->values = values;
    return ok;
}

void simulate_claims(const struct jx *claims, struct arena *a, struct expr_claims *out)
{
    void *iter = NULL;
    struct jx member;
    size_t n = 0;

    if (!claims->value || !jx_is_object(claims))
        return;
    struct expr_claim *items = ARENA_NEW_N(a, json_object_size(claims->value), struct expr_claim);
    bool ok = items != NULL;
    while (ok && compile_next_member(claims, &iter, &member)) {
        struct expr_claim claim = {0};
        ok = arena_copy_str(a, member.key, &claim.name) && take_claim(member.value, a, &claim);
        if (claim.n_values > 0)
            items[n++] = claim;
    }
    if (!ok)
        compile_no_memory(claims);
    *out = (struct expr_claims){.items = items, .n = ok ? n : 0};
}
