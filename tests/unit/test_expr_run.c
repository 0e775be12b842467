/* Expressions at work: what they decide about requests, three values, shared predicates, and that every cell of the
 * tables (field x operator) has rows. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "tests/unit/cases.h"
#include "tests/unit/expr_facts.h"
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
    ok = CASE_CHECK_GOT(row, expr_check(x, &(struct expr_context){EXPR_RATE, &expr_deployment_any, 2, ""}, &errors, &errors),
                        errors.n > 0 ? str_of(errors.items[0].text) : STR_NONE);
    errlist_release(&errors);
    return ok && CASE_CHECK(row, expr_set_add(set, x, program));
}

static enum match wanted(const json_t *row)
{
    const json_t *expect = json_object_get(row, "expect");

    if (json_is_string(expect))
        return MATCH_ERROR;
    CU_ASSERT_FATAL(json_is_boolean(expect));
    return json_is_true(expect) ? MATCH_YES : MATCH_NO;
}

static void check_decision(const json_t *row)
{
    struct expr_candidates candidates;
    struct expr_facts facts;
    struct expr_set *set;
    struct expr_run run;
    size_t program;

    expr_row_facts(json_object_get(row, "facts"), &expr_arena, &facts);
    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set));
    if (!add(set, case_str(row, "text"), row, &program) || !CASE_CHECK(row, expr_set_finish(set)))
        return;
    CU_ASSERT_FATAL(expr_run_init(&run, set, &facts, &expr_arena));
    CASE_CHECK(row, expr_run(&run, program) == wanted(row));
    /* From the memo now. */
    CASE_CHECK(row, expr_run(&run, program) == wanted(row));
    expr_run_candidates(&run, &candidates);
    CASE_CHECK(row, expr_is_candidate(&candidates, program) || wanted(row) == MATCH_NO);
}

static void decisions(void)
{
    expr_each_row("tests/cases/expr/eval.json", check_decision);
}

/* Rows [from, to) as one policy would hold them: what was found for one expression serves the others. */
static void check_together(const json_t *rows, size_t from, size_t to)
{
    struct expr_set *set;

    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set));
    for (size_t i = from; i < to; i++) {
        size_t program;

        CU_ASSERT_FATAL(add(set, case_str(json_array_get(rows, i), "text"), json_array_get(rows, i), &program));
        CU_ASSERT_FATAL(program == i - from);
    }
    CU_ASSERT_FATAL(expr_set_finish(set));
    for (size_t i = from; i < to; i++) {
        const json_t *facts_row = json_object_get(json_array_get(rows, i), "facts");
        struct expr_facts facts;
        struct expr_run run;

        expr_row_facts(facts_row, &expr_arena, &facts);
        CU_ASSERT_FATAL(expr_run_init(&run, set, &facts, &expr_arena));
        for (size_t j = from; j < to; j++) {
            const json_t *other = json_array_get(rows, j);

            if (json_equal(facts_row, json_object_get(other, "facts")))
                CASE_CHECK(other, expr_run(&run, j - from) == wanted(other));
            else
                expr_run(&run, j - from);
        }
    }
    expr_forget();
}

static void decisions_in_one_set(void)
{
    json_t *rows = cases_load("tests/cases/expr/eval.json");
    size_t n = json_array_size(rows);

    for (size_t from = 0; from < n; from += EXPR_PROGRAMS_MAX)
        check_together(rows, from, from + EXPR_PROGRAMS_MAX < n ? from + EXPR_PROGRAMS_MAX : n);
    json_decref(rows);
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
    static const size_t places[] = {[MATCH_YES] = 0, [MATCH_NO] = 1, [MATCH_ERROR] = 2};
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
    CU_ASSERT_FATAL(expr_set_finish(set) && expr_run_init(&run, set, &facts, &expr_arena));
    for (size_t i = 0; i < 3; i++)
        if (case_str(row, letters[i]).p != NULL)
            run.memo[places[match_of(case_str(row, letters[i]))]] |= UINT64_C(1) << i;
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

/* What the memo knows about a predicate of a set of at most 64. */
static bool is_known(const struct expr_run *run, size_t predicate)
{
    return ((run->memo[0] | run->memo[1] | run->memo[2]) >> predicate & 1) != 0;
}

static void short_circuit(void)
{
    struct expr_facts facts = {.host = STR("a")};
    struct expr_set *set;
    struct expr_run run;
    size_t both, either;

    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set));
    CU_ASSERT_FATAL(add(set, STR("http.host eq \"b\" and http.host eq \"c\""), NULL, &both));
    CU_ASSERT_FATAL(add(set, STR("http.host eq \"a\" or http.host eq \"d\""), NULL, &either));
    CU_ASSERT_FATAL(expr_set_finish(set) && expr_run_init(&run, set, &facts, &expr_arena));
    CU_ASSERT(!is_known(&run, 0) && !is_known(&run, 1));
    CU_ASSERT(expr_run(&run, both) == MATCH_NO);
    CU_ASSERT(is_known(&run, 0) && !is_known(&run, 1));
    CU_ASSERT(expr_run(&run, either) == MATCH_YES);
    CU_ASSERT(is_known(&run, 2) && !is_known(&run, 3));
    expr_forget();
}

static void no_memory(void)
{
    struct str text = STR("http.host in {\"a\" \"b\" \"c\" \"d\" \"e\" \"f\" \"g\" \"h\"} or not (ip.src in {10.0.0.0/8 ::1} and "
                          "ip.src.asnum lt 5 and http.user_agent wildcard \"*a*B*\" and http.referer matches \"a\" and "
                          "http.request.uri.path in {\"/a\" \"/b\" \"/c\" \"/d\"} and client.signals eq \"no_accept\")");
    const struct expr *x = NULL;
    struct err e = {0};
    size_t n_refused = 0;
    bool ok = false;

    CU_ASSERT_FATAL(expr_parse(text, &expr_arena, &x, &e));
    for (size_t limit = 1; !ok; limit += 16) {
        struct expr_set *set;
        struct arena small;
        size_t program;

        arena_init(&small, 64, limit);
        ok = expr_set_new(&small, &set) && expr_set_add(set, x, &program) && expr_set_finish(set);
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

/* Moves *text behind prefix. */
static bool skip(struct str *text, const char *prefix)
{
    if (!str_starts(*text, str_of(prefix)))
        return false;
    str_skip(text, strlen(prefix));
    return true;
}

/* Whether text is one condition of that field, with or without key, and operator, in either syntax. */
static bool is_cell(struct str text, size_t f, size_t op)
{
    char behind[64];
    bool call = skip(&text, operators[op].name) && skip(&text, "(");

    snprintf(behind, sizeof(behind), call ? ", " : " %s ", operators[op].name);
    if (str_find(text, STR(" and ")) != SIZE_MAX || str_find(text, STR(" or ")) != SIZE_MAX || !skip(&text, fields[f].name))
        return false;
    if (str_starts(text, STR("[\"")))
        text = str_sub(text, str_find(text, STR("\"]")) + 2, text.len);
    return skip(&text, behind);
}

static size_t count_decisions(const json_t *rows, size_t f, size_t op, enum match m)
{
    const json_t *row;
    size_t i, n = 0;

    json_array_foreach(rows, i, row) n += is_cell(case_str(row, "text"), f, op) && wanted(row) == m;
    return n;
}

static void every_cell_has_rows(void)
{
    json_t *eval = cases_load("tests/cases/expr/eval.json");

    for (size_t f = 0; f < N_FIELDS; f++) {
        for (size_t op = 0; op < N_OPERATORS; op++) {
            json_t *cell = json_pack("[s,s]", fields[f].name, operators[op].name);
            bool fits = (fields[f].types & operators[op].types) != 0;

            CASE_CHECK(cell, !fits || count_decisions(eval, f, op, MATCH_YES) > 0);
            CASE_CHECK(cell, !fits || count_decisions(eval, f, op, MATCH_NO) > 0);
            json_decref(cell);
        }
    }
    json_decref(eval);
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
    CU_add_test(s, "every field has rows for yes and no with every operator that takes its type",
                every_cell_has_rows);
}
