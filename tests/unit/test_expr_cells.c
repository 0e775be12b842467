/* Every field with every operator: taken and written back where the types fit, refused by name where they do not. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "tests/unit/cases.h"
#include "tests/unit/expr_rows.h"

enum { T_STRING = 1, T_INT = 2, T_IP = 4, T_BOOL = 8, T_SIGNAL = 16 };
enum { KEY_NONE, KEY_HEADER, KEY_COOKIE, KEY_PARAMETER, KEY_CLAIM };

static const struct {
    const char *name;
    unsigned type;
    int key;
} fields[] = {
#define FIELD_ROW(id, name, type, list, key, phases, source, client, absent, meaning) {name, T_##type, KEY_##key},
#include "schemas/fields.def"
#undef FIELD_ROW
};

static const struct {
    const char *name;
    bool call, set;
    unsigned types;
} operators[] = {
#define OPERATOR_ROW(id, name, call, set, negated, types, label) {name, call, set, types},
#include "schemas/operators.def"
#undef OPERATOR_ROW
};

enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]), N_OPERATORS = sizeof(operators) / sizeof(operators[0]) };

static const char *literal(unsigned type, bool set)
{
    switch (type) {
    case T_INT:
        return set ? "{5 6..9}" : "5";
    case T_IP:
        return set ? "{192.0.2.1 10.0.0.0/8 ::1..::5}" : "192.0.2.1";
    case T_BOOL:
        return "true";
    case T_SIGNAL:
        return set ? "{\"no_accept\" \"http_1_0\"}" : "\"no_accept\"";
    default:
        return set ? "{\"a\" \"b\\\"\"}" : "\"a*\\\\*\\\\\\\\\"";
    }
}

static struct str cell_text(size_t f, size_t op, char *out, size_t cap)
{
    const char *key = fields[f].key == KEY_NONE ? "" : "[\"k\"]", *value = literal(fields[f].type, operators[op].set);
    struct buf b;

    buf_init(&b, out, cap);
    if (operators[op].call)
        buf_printf(&b, "%s(%s%s, %s)", operators[op].name, fields[f].name, key, value);
    else
        buf_printf(&b, "%s%s %s %s", fields[f].name, key, operators[op].name, value);
    CU_ASSERT_FATAL(!b.full);
    return buf_str(&b);
}

static void check_taken(const json_t *cell, struct str text)
{
    char storage[EXPR_TEXT_MAX];
    const struct expr *x = NULL, *again;
    struct err e = {0};
    struct buf b;
    json_t *json;

    if (!CASE_CHECK_GOT(cell, expr_parse(text, &expr_arena, &x, &e), str_of(e.text)))
        return;
    buf_init(&b, storage, sizeof(storage));
    expr_render(x, &b);
    CASE_CHECK_GOT(cell, str_eq(buf_str(&b), text), buf_str(&b));
    json = expr_to_json(x);
    again = expr_row_decode(json);
    CASE_CHECK(cell, again != NULL && expr_equal(x, again));
    json_decref(json);
}

static void check_refused(const json_t *cell, struct str text, const char *field, const char *op)
{
    const struct expr *x = NULL;
    struct err e = {0};

    CASE_CHECK(cell, !expr_parse(text, &expr_arena, &x, &e) && e.code == ERR_EXPR_TYPE);
    CASE_CHECK_GOT(cell, strstr(e.text, field) != NULL && strstr(e.text, op) != NULL, str_of(e.text));
}

static void each_cell(bool taken)
{
    for (size_t f = 0; f < N_FIELDS; f++) {
        for (size_t op = 0; op < N_OPERATORS; op++) {
            char storage[256];
            struct str text = cell_text(f, op, storage, sizeof(storage));
            json_t *cell = json_pack("[s,s]", fields[f].name, operators[op].name);

            if (taken && (fields[f].type & operators[op].types) != 0)
                check_taken(cell, text);
            else if (!taken && (fields[f].type & operators[op].types) == 0)
                check_refused(cell, text, fields[f].name, operators[op].name);
            json_decref(cell);
            expr_forget();
        }
    }
}

static void taken_cells(void)
{
    each_cell(true);
}

static void refused_cells(void)
{
    each_cell(false);
}

static void signal_names(void)
{
    static const char *const names[] = {
#define SIGNAL_ROW(id, name, source, meaning) name,
#include "schemas/signals.def"
#undef SIGNAL_ROW
    };

    CU_ASSERT_FATAL(expr_n_signals() == sizeof(names) / sizeof(names[0]));
    for (size_t i = 0; i < expr_n_signals(); i++)
        CU_ASSERT_STRING_EQUAL(expr_signal_name(i), names[i]);
}

void test_expr_cells_register(void)
{
    CU_pSuite s = CU_add_suite("expr_cells", expr_set_up, expr_tear_down);

    CU_add_test(s, "every operator that a field takes is read, and its text and its AST are written back", taken_cells);
    CU_add_test(s, "every operator that a field does not take is refused by name", refused_cells);
    CU_add_test(s, "signals are counted and named in the order of their table", signal_names);
}
