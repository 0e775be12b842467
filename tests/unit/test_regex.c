/* Regular expressions through the language: what matches, what ends as an error instead of burning time, what is refused. */
#include <CUnit/CUnit.h>
#include <pthread.h>

#include "tests/unit/case_raw.h"
#include "tests/unit/expr_rows.h"

enum { SUBJECT_MAX = 16384 };

/* The pattern as a condition on a header, which may hold any bytes. */
static bool parse(struct str pattern, const struct expr **x, struct err *e)
{
    char text[EXPR_TEXT_MAX];
    struct buf b;

    buf_init(&b, text, sizeof(text));
    buf_put_cstr(&b, "http.request.headers[\"x\"] matches \"");
    for (size_t i = 0; i < pattern.len; i++) {
        if (pattern.p[i] == '\\' || pattern.p[i] == '"')
            buf_put_byte(&b, '\\');
        buf_put_byte(&b, pattern.p[i]);
    }
    buf_put_cstr(&b, "\"");
    CU_ASSERT_FATAL(!b.full);
    return expr_parse(buf_str(&b), &expr_arena, x, e);
}

static enum match match(const struct expr_set *set, struct str subject, struct arena *a)
{
    struct header item = {STR("x"), subject};
    struct headers headers = {&item, 1};
    struct expr_facts facts;
    struct expr_run run;

    CU_ASSERT_FATAL(expr_facts_begin(&facts, a));
    facts.headers = &headers;
    CU_ASSERT_FATAL(expr_run_init(&run, set, &facts, a));
    return expr_run(&run, 0);
}

static struct expr_set *compile(struct str pattern)
{
    const struct expr *x = NULL;
    struct err e = {0};
    struct expr_set *set;
    size_t program;

    CU_ASSERT_FATAL(parse(pattern, &x, &e));
    CU_ASSERT_FATAL(expr_set_new(&expr_arena, &set) && expr_set_add(set, x, &program) && expr_set_finish(set));
    return set;
}

static void check_refused(const json_t *row)
{
    struct errlist *errors = &expr_errors;
    const struct expr *x = NULL;
    struct err e = {0};
    bool parsed = parse(case_str(row, "pattern"), &x, &e);

    if (parsed) {
        CASE_CHECK(row, !expr_check(x, &(struct expr_context){EXPR_CONFIG, &expr_deployment_any, 2, ""}, errors, errors));
        e = errors->items[0];
    }
    CASE_CHECK_GOT(row, e.code == ERR_EXPR_REGEX && expr_row_says(&e, json_object_get(row, "says")), str_of(e.text));
}

static void check_row(const json_t *row)
{
    static const char *const names[] = {[MATCH_NO] = "no", [MATCH_YES] = "yes", [MATCH_ERROR] = "error"};
    static char raw[SUBJECT_MAX];
    enum match m;

    if (json_object_get(row, "says") != NULL) {
        check_refused(row);
        return;
    }
    m = match(compile(case_str(row, "pattern")), case_raw(row, "subject", raw, sizeof(raw)), &expr_arena);
    CASE_CHECK_GOT(row, str_eq(case_str(row, "expect"), str_of(names[m])), str_of(names[m]));
}

static void rows(void)
{
    expr_each_row("tests/cases/expr/regex.json", check_row);
}

struct job {
    const struct expr_set *set;
    size_t n_right;
    pthread_t id;
};

static void *match_often(void *arg)
{
    static const char *const subjects[] = {"abab", "abax", ""};
    struct job *job = arg;
    struct arena a;

    arena_init(&a, 4096, 0);
    for (size_t i = 0; i < 300; i++) {
        job->n_right += match(job->set, str_of(subjects[i % 3]), &a) == (i % 3 == 0 ? MATCH_YES : MATCH_NO);
        arena_reset(&a);
    }
    arena_release(&a);
    return NULL;
}

static void threads(void)
{
    const struct expr_set *set = compile(STR("^(?:ab)+$"));
    struct job jobs[4];

    for (size_t i = 0; i < 4; i++) {
        jobs[i] = (struct job){.set = set};
        CU_ASSERT_FATAL(pthread_create(&jobs[i].id, NULL, match_often, &jobs[i]) == 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(jobs[i].id, NULL);
        CU_ASSERT_EQUAL(jobs[i].n_right, 300);
    }
    expr_forget();
}

void test_regex_register(void)
{
    CU_pSuite s = CU_add_suite("regex", expr_set_up, expr_tear_down);

    CU_add_test(s, "a pattern matches, ends as an error where it would burn time, or is refused, as its row says", rows);
    CU_add_test(s, "one compiled pattern serves several threads", threads);
}
