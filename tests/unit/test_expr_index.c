/* Which programs of a set are left out for a request, and the explanation of an answer. */
#include <CUnit/CUnit.h>

#include "tests/unit/cases.h"
#include "tests/unit/expr_facts.h"
#include "tests/unit/expr_rows.h"

static const struct expr *parse(struct str text, const json_t *row)
{
    const struct expr *x = NULL;
    struct err e = {0};

    CASE_CHECK_GOT(row, expr_parse(text, &expr_arena, &x, &e), str_of(e.text));
    CU_ASSERT_FATAL(x != NULL);
    return x;
}

static bool is_listed(const json_t *list, size_t i)
{
    const json_t *item;
    size_t at;

    json_array_foreach(list, at, item) if ((size_t)json_integer_value(item) == i) return true;
    return false;
}

static void check_candidates(const json_t *row)
{
    const json_t *texts = json_object_get(row, "texts"), *text;
    struct expr_candidates candidates;
    struct expr_facts facts;
    struct expr_set *set;
    struct expr_run run;
    size_t i, program;

    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set));
    json_array_foreach(texts, i, text) CU_ASSERT_FATAL(
        expr_set_add(set, parse((struct str){json_string_value(text), json_string_length(text)}, row), &program));
    expr_row_facts(json_object_get(row, "facts"), &expr_arena, &facts);
    CU_ASSERT_FATAL(expr_set_finish(set) && expr_run_init(&run, set, &facts, &expr_arena));
    expr_run_candidates(&run, &candidates);
    for (size_t p = 0; p < EXPR_PROGRAMS_MAX; p++)
        CASE_CHECK(row, expr_is_candidate(&candidates, p) == is_listed(json_object_get(row, "candidates"), p));
}

static void candidates(void)
{
    expr_each_row("tests/cases/expr/index.json", check_candidates);
}

static void check_explanation(const json_t *row)
{
    struct expr_facts facts;
    json_t *got;
    char *text;

    expr_row_facts(json_object_get(row, "facts"), &expr_arena, &facts);
    got = expr_explain(parse(case_str(row, "text"), row), &facts);
    text = json_dumps(got, JSON_COMPACT);
    CASE_CHECK_GOT(row, json_equal(got, json_object_get(row, "expect")) == 1, text == NULL ? STR("NULL") : str_of(text));
    free(text);
    json_decref(got);
}

static void explanations(void)
{
    expr_each_row("tests/cases/expr/explain.json", check_explanation);
}

/* The decisions' own rows: an explanation never says another thing than the policy does. */
static void check_same_answer(const json_t *row)
{
    const json_t *expect = json_object_get(row, "expect");
    struct expr_facts facts;
    json_t *got;

    expr_row_facts(json_object_get(row, "facts"), &expr_arena, &facts);
    got = expr_explain(parse(case_str(row, "text"), row), &facts);
    CASE_CHECK(row, got != NULL && json_equal(json_object_get(got, "result"), expect) == 1);
    json_decref(got);
}

static void same_answers(void)
{
    expr_each_row("tests/cases/expr/eval.json", check_same_answer);
}

/* Allocations of the JSON library that are still granted. */
static size_t n_granted;

static void *counted_malloc(size_t size_bytes)
{
    if (n_granted == 0)
        return NULL;
    n_granted--;
    return malloc(size_bytes);
}

static void explanation_without_memory(void)
{
    const struct expr *x = parse(STR("http.request.headers[\"a\"] eq \"b\" and not (ssl eq true or ip.src.asnum eq 5) and "
                                     "client.signals eq \"no_accept\" and http.host eq \"\""),
                                 NULL);
    struct header items[] = {{STR("a"), STR("b")}};
    const struct headers headers = {items, 1};
    struct expr_facts facts;
    json_malloc_t old_malloc;
    json_free_t old_free;
    json_t *got = NULL;
    size_t n = 0;

    CU_ASSERT_FATAL(expr_facts_begin(&facts, &expr_arena));
    facts.headers = &headers;
    json_get_alloc_funcs(&old_malloc, &old_free);
    for (; got == NULL && n < 1000; n++) {
        n_granted = n;
        json_set_alloc_funcs(counted_malloc, free);
        got = expr_explain(x, &facts);
        json_set_alloc_funcs(old_malloc, old_free);
    }
    CU_ASSERT(got != NULL && n > 20);
    json_decref(got);
    expr_forget();
}

static void too_many(void)
{
    const struct expr *x = parse(STR("http.host eq \"a\""), NULL);
    struct expr_set *set;
    size_t program;

    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set));
    for (size_t i = 0; i < EXPR_PROGRAMS_MAX; i++)
        CU_ASSERT_FATAL(expr_set_add(set, x, &program) && program == i);
    CU_ASSERT(!expr_set_add(set, x, &program));
    expr_forget();
}

void test_expr_index_register(void)
{
    CU_pSuite s = CU_add_suite("expr_index", expr_set_up, expr_tear_down);

    CU_add_test(s, "programs whose host, method or path can't be are left out, and no others", candidates);
    CU_add_test(s, "an explanation has each part's answer and what the request has there", explanations);
    CU_add_test(s, "an explanation's answer is the program's", same_answers);
    CU_add_test(s, "an explanation that runs out of memory is none, and leaves nothing behind", explanation_without_memory);
    CU_add_test(s, "a set takes no more programs than its candidates have bits", too_many);
}
