/* Response templates: the template rows of tests/cases/http, the maxima, and rendering. */
#include <CUnit/CUnit.h>

#include "common/http/template.h"
#include "tests/unit/case_raw.h"

enum { BODY_MAX = 64 };

static struct arena arena;

static int set_up(void)
{
    arena_init(&arena, 4096, 0);
    return 0;
}

static int tear_down(void)
{
    arena_release(&arena);
    return 0;
}

static const struct template_values values = {.retry_after_s = 30, .request_id = {"req-1.A_z", 9}};

static bool renders_as(const struct template *t, const struct template_values *v, struct str want)
{
    static char storage[TEMPLATE_RENDERED_MAX];
    struct buf b;
    buf_init(&b, storage, sizeof(storage));
    template_render(t, v, &b);
    return !b.full && b.len <= t->rendered_max && str_eq(buf_str(&b), want);
}

static void check_row(const json_t *row)
{
    char storage[BODY_MAX];
    struct template t = {.name = STR("kept")};
    struct str rendered = case_str(row, "rendered"), content_type = case_str(row, "content_type");
    int status = (int)json_integer_value(json_object_get(row, "status"));
    struct err e;
    err_clear(&e);
    bool ok = template_compile(case_raw(row, "body", storage, sizeof(storage)), status, content_type, &arena, &t,
                               "/body", &e);
    CASE_CHECK(row, ok == (rendered.p != NULL));
    CASE_CHECK(row, str_eq(t.name, STR("kept")));
    if (!ok) {
        CASE_CHECK(row, str_eq(str_of(err_code_name(e.code)), case_str(row, "error")));
        CASE_CHECK(row, strcmp(e.path, "/body") == 0 && str_find(str_of(e.text), case_str(row, "says")) != SIZE_MAX);
        CASE_CHECK(row, strpbrk(e.text, "\r\n") == NULL);
        CASE_CHECK(row, t.parts == NULL && t.status == 0);
        return;
    }
    CASE_CHECK(row, t.status == status && str_eq(t.content_type, content_type));
    CASE_CHECK(row, renders_as(&t, &values, rendered));
}

static void template_rows(void)
{
    json_t *rows = cases_load("tests/cases/http/template.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        check_row(row);
        arena_reset(&arena);
    }
    json_decref(rows);
}

static void content_type_rows(void)
{
    json_t *rows = cases_load("tests/cases/http/template_content_type.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        CASE_CHECK(row,
                   template_content_type_ok(case_str(row, "content_type")) == json_is_true(json_object_get(row, "ok")));
    }
    json_decref(rows);
}

static bool compiles(struct str body, struct template *t, struct err *e)
{
    err_clear(e);
    return template_compile(body, 429, STR("text/plain"), &arena, t, "/body", e);
}

static void rendered_maximum(void)
{
    static char body[TEMPLATE_RENDERED_MAX + 1];
    struct template t;
    struct err e;
    memset(body, 'a', sizeof(body));
    CU_ASSERT(compiles((struct str){body, TEMPLATE_RENDERED_MAX}, &t, &e));
    CU_ASSERT_EQUAL(t.rendered_max, TEMPLATE_RENDERED_MAX);
    CU_ASSERT(!compiles((struct str){body, TEMPLATE_RENDERED_MAX + 1}, &t, &e));
    CU_ASSERT_EQUAL(e.code, ERR_LIMIT_EXCEEDED);
    /* {{request_id}} is 14 bytes long and renders to at most 128. */
    memcpy(body, "{{request_id}}", 14);
    CU_ASSERT(compiles((struct str){body, TEMPLATE_RENDERED_MAX - TEMPLATE_REQUEST_ID_MAX + 14}, &t, &e));
    CU_ASSERT_EQUAL(t.rendered_max, TEMPLATE_RENDERED_MAX);
    CU_ASSERT(!compiles((struct str){body, TEMPLATE_RENDERED_MAX - TEMPLATE_REQUEST_ID_MAX + 15}, &t, &e));
    CU_ASSERT_EQUAL(e.code, ERR_LIMIT_EXCEEDED);
    arena_reset(&arena);
}

static void body_maximum(void)
{
    static char body[TEMPLATE_RENDERED_MAX + 15];
    static const char placeholder[] = "{{retry_after}}";
    struct template t;
    struct err e;
    size_t len = 0;
    while (len <= TEMPLATE_RENDERED_MAX) {
        memcpy(body + len, placeholder, sizeof(placeholder) - 1);
        len += sizeof(placeholder) - 1;
    }
    CU_ASSERT(!compiles((struct str){body, len}, &t, &e));
    CU_ASSERT_EQUAL(e.code, ERR_LIMIT_EXCEEDED);
    CU_ASSERT(compiles((struct str){body, len - (sizeof(placeholder) - 1)}, &t, &e));
    arena_reset(&arena);
}

static void longest_values_fit(void)
{
    char id[TEMPLATE_REQUEST_ID_MAX + 50], want[2 + 10 + TEMPLATE_REQUEST_ID_MAX];
    struct template t;
    struct err e;
    memset(id, 'i', sizeof(id));
    memcpy(want, "[4294967295", 11);
    memset(want + 11, 'i', TEMPLATE_REQUEST_ID_MAX);
    want[sizeof(want) - 1] = ']';
    CU_ASSERT(compiles(STR("[{{retry_after}}{{request_id}}]"), &t, &e));
    CU_ASSERT_EQUAL(t.n_parts, 4);
    CU_ASSERT_EQUAL(t.rendered_max, sizeof(want));
    CU_ASSERT(
        renders_as(&t, &(struct template_values){UINT32_MAX, {id, sizeof(id)}}, (struct str){want, sizeof(want)}));
    CU_ASSERT(renders_as(&t, &(struct template_values){0, STR_NONE}, STR("[0]")));
    arena_reset(&arena);
}

static bool page_is(struct str body, uint32_t retry_after_s, struct str want)
{
    struct template t;
    struct str page;
    struct err e;
    bool same = compiles(body, &t, &e) && template_page(&t, retry_after_s, &arena, &page) && page.len <= t.rendered_max && str_eq(page, want);
    arena_reset(&arena);
    return same;
}

static void pages(void)
{
    static char body[TEMPLATE_RENDERED_MAX];
    memset(body, 'a', sizeof(body));
    CU_ASSERT(page_is(STR("{{status}} {{retry_after}} {{request_id}}"), 1, STR("429 1 {{request_id}}")));
    CU_ASSERT(page_is(STR("{{request_id}}}{}{{request_id}}"), 0, STR("{{request_id}}}{}{{request_id}}")));
    CU_ASSERT(page_is(STR("nothing"), 0, STR("nothing")));
    CU_ASSERT(page_is((struct str){body, sizeof(body)}, 0, (struct str){body, sizeof(body)}));
}

static void page_without_memory(void)
{
    struct arena tight;
    struct template t;
    struct str page = STR("untouched");
    struct err e;
    CU_ASSERT_FATAL(compiles(STR("a{{status}}"), &t, &e));
    arena_init(&tight, 64, 1);
    CU_ASSERT(!template_page(&t, 0, &tight, &page));
    CU_ASSERT(str_eq(page, STR("untouched")));
    arena_release(&tight);
    arena_reset(&arena);
}

static void no_memory(void)
{
    struct arena tight;
    struct template t = {.n_parts = 77};
    struct err e;
    err_clear(&e);
    arena_init(&tight, 64, 8);
    CU_ASSERT(!template_compile(STR("a{{status}}"), 429, STR("text/plain"), &tight, &t, "/body", &e));
    CU_ASSERT_EQUAL(e.code, ERR_NO_MEMORY);
    CU_ASSERT_EQUAL(t.n_parts, 77);
    arena_release(&tight);
}

void test_template_register(void)
{
    CU_pSuite s = CU_add_suite("template", set_up, tear_down);
    CU_add_test(s, "a template renders as written, or is refused with what is wrong and where", template_rows);
    CU_add_test(s, "only the listed content types are allowed, so no answer is run as a script", content_type_rows);
    CU_add_test(s, "a template whose longest rendering passes the maximum is refused", rendered_maximum);
    CU_add_test(s, "a body over the maximum is refused although it renders to less", body_maximum);
    CU_add_test(s, "the longest values fit the rendered maximum, and an over-long id is cut", longest_values_fit);
    CU_add_test(s, "a page has everything filled in but the request id", pages);
    CU_add_test(s, "a page that finds no memory fails and leaves the output alone", page_without_memory);
    CU_add_test(s, "a template that finds no memory is refused and leaves the output alone", no_memory);
}
