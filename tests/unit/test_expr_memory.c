/* Expressions when memory is refused: every place that takes some is made to fail, and the answer is the right one, an error, or none. */
#include <CUnit/CUnit.h>
#include <pthread.h>

#include "tests/unit/cases.h"
#include "tests/unit/expr_facts.h"
#include "tests/unit/expr_rows.h"
#include "tests/unit/refuse_memory.h"

struct subject {
    const json_t *row;
    struct str text;
    enum match wanted;
    json_t *explanation; /* as it is without refusals */
};

struct outcome {
    bool ended; /* as far as an answer */
    enum match match;
    json_t *explanation;
};

static void answer(const struct subject *s, const struct expr_facts *given, struct outcome *out)
{
    const struct expr_context context = {.phase = EXPR_HEADERS, .deployment = &expr_deployment_any, .schema = 6, .path = ""};
    struct expr_facts facts = {0};
    const struct expr *x = NULL;
    struct expr_set *set;
    struct expr_run run;
    struct err e = {0};
    size_t program;

    if (!expr_parse(s->text, &expr_arena, &x, &e)) {
        CASE_CHECK_GOT(s->row, e.code == ERR_NO_MEMORY, str_of(e.text));
        return;
    }
    if (!expr_check(x, &context, &expr_errors, &expr_warnings) || !expr_set_new(&expr_arena, &set) || !expr_set_add(set, x, &program) ||
        !expr_set_finish(set) || !expr_facts_begin(&facts, &expr_arena))
        return;
    struct expr_lazy *lazy = facts.lazy;
    facts = *given;
    facts.lazy = lazy;
    out->explanation = expr_explain(x, &facts);
    if (!expr_run_init(&run, set, &facts, &expr_arena))
        return;
    out->match = expr_run(&run, program);
    out->ended = true;
}

static bool attempt(void *arg, size_t n)
{
    struct subject *s = arg;
    struct outcome out = {.ended = false};
    struct expr_facts given;

    expr_row_facts(json_object_get(s->row, "facts"), &expr_arena, &given);
    refuse_memory(n);
    answer(s, &given, &out);
    bool refused = refuse_memory_end();
    for (size_t i = 0; i < expr_errors.n; i++)
        CASE_CHECK_GOT(s->row, expr_errors.items[i].code == ERR_NO_MEMORY, str_of(expr_errors.items[i].text));
    CASE_CHECK(s->row, refused || out.ended);
    CASE_CHECK(s->row, !out.ended || out.match == s->wanted || (refused && out.match == MATCH_ERROR));
    CASE_CHECK(s->row, refused || out.explanation);
    if (!s->explanation)
        s->explanation = json_incref(out.explanation);
    const json_t *told = json_object_get(out.explanation, "result"), *whole = json_object_get(s->explanation, "result");
    CASE_CHECK(s->row, told == NULL || told == whole || (refused && json_is_string(told)));
    json_decref(out.explanation);
    expr_forget();
    return refused;
}

static void check_row(const json_t *row)
{
    struct subject s = {.row = row, .text = case_str(row, "text"), .wanted = json_is_true(json_object_get(row, "expect")) ? MATCH_YES : MATCH_NO};

    CASE_CHECK(row, !attempt(&s, SIZE_MAX) && s.explanation != NULL);
    CASE_CHECK(row, refuse_memory_everywhere(attempt, &s) > 0);
    json_decref(s.explanation);
}

static void rows(void)
{
    expr_each_row("tests/cases/expr/memory.json", check_row);
}

/* A thread's first match takes memory that later ones share, so each attempt is a thread of its own. */
struct first_match {
    const struct expr_set *set;
    size_t n;
    bool refused;
    enum match match;
};

static void *match_first(void *arg)
{
    struct first_match *m = arg;
    struct header item = {STR("x"), STR("aa")};
    const struct headers headers = {&item, 1};
    struct expr_facts facts;
    struct expr_run run;
    struct arena a;

    arena_init(&a, 4096, 0);
    if (expr_facts_begin(&facts, &a) && (facts.headers = &headers) != NULL && expr_run_init(&run, m->set, &facts, &a)) {
        refuse_memory(m->n);
        m->match = expr_run(&run, 0);
        m->refused = refuse_memory_end();
    }
    arena_release(&a);
    return NULL;
}

static void first_matches(void)
{
    const struct expr *x = NULL;
    struct expr_set *set;
    struct err e = {0};
    size_t program, n = 0;
    struct first_match m;

    CU_ASSERT_FATAL(expr_parse(STR("http.request.headers[\"x\"] matches \"^a+$\""), &expr_arena, &x, &e));
    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set) && expr_set_add(set, x, &program) && expr_set_finish(set));
    do {
        pthread_t thread;

        m = (struct first_match){.set = set, .n = n++, .match = MATCH_NO};
        CU_ASSERT_FATAL(pthread_create(&thread, NULL, match_first, &m) == 0 && pthread_join(thread, NULL) == 0);
        CU_ASSERT_EQUAL(m.match, m.refused ? MATCH_ERROR : MATCH_YES);
    } while (m.refused);
    CU_ASSERT(n > 2);
    expr_forget();
}

void test_expr_memory_register(void)
{
    CU_pSuite s = CU_add_suite("expr memory", expr_set_up, expr_tear_down);
    CU_add_test(s, "an expression decides as ever, ends as an error or not at all, wherever memory is refused", rows);
    CU_add_test(s, "a thread's first regular expression that gets no memory is an error, not a no", first_matches);
}
