/* Expressions at work: what they decide about requests, three values, shared predicates, and that every cell of the
 * tables (field x operator) has rows. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "tests/unit/cases.h"
#include "tests/unit/expr_rows.h"

/* Parses, checks and adds; false with a failed assertion when one of these refuses. */
static bool add(struct expr_set *set, struct str text, const json_t *row, size_t *program)
{
    const struct expr *x = NULL;
    struct err e = {0};
    struct errlist errors;
    bool ok;

    if (!CASE_CHECK_GOT(row, expr_parse(text, &expr_arena, &x, &e), str_of(e.text)))
        return false;
    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    ok = CASE_CHECK_GOT(row, expr_check(x, &(struct expr_context){EXPR_CONFIG, &expr_deployment_any, 2, ""}, &errors, &errors),
                        errors.n > 0 ? str_of(errors.items[0].text) : STR_NONE);
    errlist_release(&errors);
    return ok && CASE_CHECK(row, expr_set_add(set, x, program));
}

static struct expr_facts facts_of(const json_t *row)
{
    const json_t *facts = json_object_get(row, "facts");
    struct expr_facts out = {
        .host = case_str(facts, "host"), .method = case_str(facts, "method"), .path = case_str(facts, "path")};
    struct str ip = case_str(facts, "ip");

    out.has_ip = ip.p != NULL;
    if (out.has_ip)
        CASE_CHECK(row, addr_parse(ip, &out.ip));
    return out;
}

static void check_decision(const json_t *row)
{
    struct expr_facts facts = facts_of(row);
    enum match wanted = json_is_true(json_object_get(row, "expect")) ? MATCH_YES : MATCH_NO;
    struct expr_set *set;
    struct expr_run run;
    size_t program;

    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set));
    if (!add(set, case_str(row, "text"), row, &program))
        return;
    CU_ASSERT_FATAL(expr_run_init(&run, set, &facts, &expr_arena));
    CASE_CHECK(row, expr_run(&run, program) == wanted);
    /* From the memo now. */
    CASE_CHECK(row, expr_run(&run, program) == wanted);
}

static void decisions(void)
{
    expr_each_row("tests/cases/expr/eval.json", check_decision);
}

/* All rows as one policy would hold them: what was found for one expression serves the others. */
static void decisions_in_one_set(void)
{
    json_t *rows = cases_load("tests/cases/expr/eval.json"), *row;
    struct expr_set *set;
    size_t i, first = 0;

    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set));
    json_array_foreach(rows, i, row)
    {
        size_t program;

        CU_ASSERT_FATAL(add(set, case_str(row, "text"), row, &program));
        CU_ASSERT_FATAL(program == first + i);
    }
    CU_ASSERT(expr_set_n_predicates(set) < i);
    json_array_foreach(rows, i, row)
    {
        struct expr_facts facts = facts_of(row);
        struct expr_run run;
        json_t *other;
        size_t j;

        CU_ASSERT_FATAL(expr_run_init(&run, set, &facts, &expr_arena));
        json_array_foreach(rows, j, other)
        {
            enum match m = expr_run(&run, j);

            if (json_equal(json_object_get(row, "facts"), json_object_get(other, "facts")))
                CASE_CHECK(other, m == (json_is_true(json_object_get(other, "expect")) ? MATCH_YES : MATCH_NO));
        }
    }
    json_decref(rows);
    expr_forget();
}

static enum match match_of(struct str name)
{
    if (str_eq(name, STR("yes")))
        return MATCH_YES;
    CU_ASSERT(str_eq(name, STR("no")) || str_eq(name, STR("error")));
    return str_eq(name, STR("no")) ? MATCH_NO : MATCH_ERROR;
}

/* The letters A, B, C become conditions, numbered in that order because they are added first. */
static void check_three_values(const json_t *row)
{
    static const char *const conditions[] = {"http.host eq \"A\"", "http.host eq \"B\"", "http.host eq \"C\""};
    static const char *const letters[] = {"A", "B", "C"};
    struct str text = case_str(row, "text");
    const struct expr *x = NULL;
    char storage[512];
    struct expr_facts facts = {0};
    struct expr_set *set;
    struct expr_run run;
    struct err e = {0};
    size_t program;
    struct buf b;

    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set));
    buf_init(&b, storage, sizeof(storage));
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] >= 'A' && text.p[i] <= 'C')
            buf_put_cstr(&b, conditions[text.p[i] - 'A']);
        else
            buf_put_byte(&b, text.p[i]);
    }
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_FATAL(expr_parse(str_of(conditions[i]), &expr_arena, &x, &e) && expr_set_add(set, x, &program));
    CU_ASSERT_FATAL(expr_parse(buf_str(&b), &expr_arena, &x, &e) && expr_set_add(set, x, &program));
    CU_ASSERT_FATAL(expr_run_init(&run, set, &facts, &expr_arena));
    for (size_t i = 0; i < 3; i++)
        if (case_str(row, letters[i]).p != NULL)
            run.memo[i] = (uint8_t)(1 + match_of(case_str(row, letters[i])));
    CASE_CHECK(row, expr_run(&run, program) == match_of(case_str(row, "expect")));
}

static void three_values(void)
{
    expr_each_row("tests/cases/expr/three_values.json", check_three_values);
}

static void check_shared(const json_t *row)
{
    const json_t *texts = json_object_get(row, "texts"), *text;
    struct expr_set *set;
    size_t i, program;

    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set));
    json_array_foreach(texts, i, text)
        add(set, (struct str){json_string_value(text), json_string_length(text)}, row, &program);
    CASE_CHECK(row, expr_set_n_predicates(set) == (size_t)json_integer_value(json_object_get(row, "n_predicates")));
}

static void shared(void)
{
    expr_each_row("tests/cases/expr/shared.json", check_shared);
}

static void short_circuit(void)
{
    struct expr_facts facts = {.host = STR("a")};
    struct expr_set *set;
    struct expr_run run;
    size_t first, second, both, either;

    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set));
    CU_ASSERT_FATAL(add(set, STR("http.host eq \"a\""), NULL, &first) &&
                    add(set, STR("http.host eq \"b\""), NULL, &second));
    CU_ASSERT_FATAL(add(set, STR("http.host eq \"b\" and http.host eq \"a\""), NULL, &both));
    CU_ASSERT_FATAL(add(set, STR("http.host eq \"a\" or http.host eq \"b\""), NULL, &either));
    CU_ASSERT_FATAL(expr_run_init(&run, set, &facts, &expr_arena));
    CU_ASSERT(expr_run(&run, both) == MATCH_NO);
    CU_ASSERT(run.memo[0] == 0 && run.memo[1] == 1 + MATCH_NO);
    run.memo[1] = 0;
    CU_ASSERT(expr_run(&run, either) == MATCH_YES);
    CU_ASSERT(run.memo[0] == 1 + MATCH_YES && run.memo[1] == 0);
    expr_forget();
}

static void no_memory(void)
{
    struct str text = STR("http.host in {\"a\" \"b\"} or not (ip.src in {10.0.0.0/8 ::1} and http.host eq \"c\")");
    const struct expr *x = NULL;
    struct err e = {0};
    size_t n_refused = 0;
    bool ok = false;

    CU_ASSERT_FATAL(expr_parse(text, &expr_arena, &x, &e));
    for (size_t limit = 1; !ok; limit += 8) {
        struct expr_set *set;
        struct arena small;
        size_t program;

        arena_init(&small, 64, limit);
        ok = expr_set_new(&small, &set) && expr_set_add(set, x, &program);
        arena_release(&small);
        n_refused += ok ? 0 : 1;
    }
    CU_ASSERT(n_refused > 5);
    expr_forget();
}

/* ---- every cell of the tables has its rows ---- */

enum { T_STRING = 1, T_INT = 2, T_IP = 4, T_BOOL = 8, T_SIGNAL = 16 };

struct cell {
    const char *name;
    unsigned types;
};

static const struct cell fields[] = {
#define FIELD_ROW(id, name, type, list, key, phases, source, client, absent, meaning) {name, T_##type},
#include "schemas/fields.def"
#undef FIELD_ROW
};

static const struct cell operators[] = {
#define OPERATOR_ROW(id, name, call, set, negated, types, label) {name, types},
#include "schemas/operators.def"
#undef OPERATOR_ROW
};

enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]), N_OPERATORS = sizeof(operators) / sizeof(operators[0]) };

/* Whether text is one condition of that field and operator, in either syntax. */
static bool is_cell(struct str text, size_t f, size_t op)
{
    char infix[128], call[128];

    snprintf(infix, sizeof(infix), "%s %s ", fields[f].name, operators[op].name);
    snprintf(call, sizeof(call), "%s(%s,", operators[op].name, fields[f].name);
    return (str_starts(text, str_of(infix)) || str_starts(text, str_of(call))) &&
           str_find(text, STR(" and ")) == SIZE_MAX && str_find(text, STR(" or ")) == SIZE_MAX;
}

static size_t count_decisions(const json_t *rows, size_t f, size_t op, bool expect)
{
    const json_t *row;
    size_t i, n = 0;

    json_array_foreach(rows, i, row) n +=
        is_cell(case_str(row, "text"), f, op) && json_is_true(json_object_get(row, "expect")) == expect;
    return n;
}

static size_t count_type_errors(const json_t *rows, size_t f, size_t op)
{
    const json_t *row;
    size_t i, n = 0;

    json_array_foreach(rows, i, row) n +=
        is_cell(case_str(row, "text"), f, op) && str_eq(case_str(row, "code"), STR("expr_type"));
    return n;
}

static void every_cell_has_rows(void)
{
    json_t *eval = cases_load("tests/cases/expr/eval.json"),
           *refused = cases_load("tests/cases/expr/text_refused.json");

    for (size_t f = 0; f < N_FIELDS; f++) {
        for (size_t op = 0; op < N_OPERATORS; op++) {
            json_t *cell = json_pack("[s,s]", fields[f].name, operators[op].name);

            if ((fields[f].types & operators[op].types) != 0) {
                CASE_CHECK(cell, count_decisions(eval, f, op, true) > 0);
                CASE_CHECK(cell, count_decisions(eval, f, op, false) > 0);
            } else {
                CASE_CHECK(cell, count_type_errors(refused, f, op) > 0);
            }
            json_decref(cell);
        }
    }
    json_decref(eval);
    json_decref(refused);
}

void test_expr_run_register(void)
{
    CU_pSuite s = CU_add_suite("expr_run", expr_set_up, expr_tear_down);

    CU_add_test(s, "an expression decides about a request as its row says", decisions);
    CU_add_test(s, "expressions of one set decide as they do alone", decisions_in_one_set);
    CU_add_test(s, "an error goes through and, or and not unless the other parts decide", three_values);
    CU_add_test(s, "conditions that mean the same are one predicate of a set", shared);
    CU_add_test(s, "what cannot change the answer is not asked", short_circuit);
    CU_add_test(s, "a set that runs out of memory says so", no_memory);
    CU_add_test(s, "every field with every operator has rows: yes and no where the type fits, a refusal where not",
                every_cell_has_rows);
}
