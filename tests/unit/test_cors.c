/* CORS: which requests are preflights, and what a policy adds to a response, row by row. */
#include <CUnit/CUnit.h>

#include "common/http/cors.h"
#include "tests/unit/cases.h"

enum { NAMES_MAX = 8, REQUEST_HEADERS_MAX = 8, VALUES_MAX = 65536, JOINED_MAX = 256 };

/* A policy and what its lists point into. */
struct row_policy {
    struct cors_policy policy;
    struct str names[4][NAMES_MAX];
    char joined[3][JOINED_MAX];
    char age[16];
};

static struct str text_of(const json_t *value)
{
    return (struct str){json_string_value(value), json_string_length(value)};
}

static struct str_list list_of(const json_t *row, const char *name, struct str *storage)
{
    const json_t *list = json_object_get(row, name), *item;
    size_t i;

    CU_ASSERT_FATAL(json_array_size(list) <= NAMES_MAX);
    json_array_foreach(list, i, item)
        storage[i] = text_of(item);
    return (struct str_list){storage, json_array_size(list)};
}

static struct str joined_of(const struct str_list *names, char *storage)
{
    struct buf b;

    buf_init(&b, storage, JOINED_MAX);
    for (size_t i = 0; i < names->n; i++) {
        buf_put_cstr(&b, i == 0 ? "" : ", ");
        buf_put(&b, names->items[i]);
    }
    CU_ASSERT_FATAL(!b.full);
    return buf_str(&b);
}

static void policy_make(const json_t *row, struct row_policy *out)
{
    struct cors_policy *p = &out->policy;
    const json_t *age = json_object_get(row, "max_age_s");
    struct buf b;

    *p = (struct cors_policy){.name = STR("web")};
    p->origins = list_of(row, "origins", out->names[0]);
    p->methods = list_of(row, "methods", out->names[1]);
    p->request_headers = list_of(row, "request_headers", out->names[2]);
    p->exposed_headers = list_of(row, "exposed_headers", out->names[3]);
    p->any_origin = p->origins.n == 1 && str_eq(p->origins.items[0], STR("*"));
    p->credentials = json_is_true(json_object_get(row, "credentials"));
    p->allow_methods = joined_of(&p->methods, out->joined[0]);
    p->allow_headers = joined_of(&p->request_headers, out->joined[1]);
    p->expose_headers = joined_of(&p->exposed_headers, out->joined[2]);
    if (age != NULL) {
        buf_init(&b, out->age, sizeof out->age);
        buf_put_i64(&b, json_integer_value(age));
        p->max_age = buf_str(&b);
    }
}

/* [name, value] or [name, value, how often the value stands there one behind the other]. */
static void headers_make(const json_t *row, struct header *items, struct buf *values, struct headers *out)
{
    const json_t *list = json_object_get(row, "headers"), *pair;
    size_t i;

    CU_ASSERT_FATAL(json_array_size(list) <= REQUEST_HEADERS_MAX);
    json_array_foreach(list, i, pair)
    {
        json_int_t times = json_array_size(pair) == 3 ? json_integer_value(json_array_get(pair, 2)) : 1;
        size_t from = values->len;

        for (json_int_t n = 0; n < times; n++)
            buf_put(values, text_of(json_array_get(pair, 1)));
        items[i] = (struct header){text_of(json_array_get(pair, 0)), {values->p + from, values->len - from}};
    }
    CU_ASSERT_FATAL(!values->full);
    *out = (struct headers){items, json_array_size(list)};
}

static bool has_added(const struct response_edit *e, struct str name, struct str value)
{
    for (size_t i = 0; i < e->n_added; i++)
        if (str_eq(e->added[i].name, name) && str_eq(e->added[i].value, value))
            return true;
    return false;
}

/* Names of a row are distinct, so as many as wanted and each of them are exactly these. */
static void check_added(const json_t *row, const struct response_edit *e)
{
    const json_t *wanted = json_object_get(row, "added"), *pair;
    size_t i;

    CASE_CHECK(row, e->cors);
    CASE_CHECK(row, !e->full && e->n_deleted == 0);
    CASE_CHECK(row, e->n_added == json_array_size(wanted));
    json_array_foreach(wanted, i, pair)
    {
        struct str name = text_of(json_array_get(pair, 0));

        CASE_CHECK_GOT(row, has_added(e, name, text_of(json_array_get(pair, 1))), name);
    }
}

static void check_row(const json_t *row)
{
    static char values[VALUES_MAX];
    static struct row_policy made;
    const json_t *policy = json_object_get(row, "policy");
    bool preflight = json_is_true(json_object_get(row, "preflight"));
    struct header items[REQUEST_HEADERS_MAX];
    struct response_edit e;
    struct headers h;
    struct buf b;

    buf_init(&b, values, sizeof values);
    headers_make(row, items, &b, &h);
    CASE_CHECK(row, cors_is_preflight(case_str(row, "method"), &h) == preflight);
    if (policy == NULL)
        return;
    policy_make(policy, &made);
    response_edit_clear(&e);
    cors_respond(&made.policy, &h, preflight, &e);
    check_added(row, &e);
}

static void rows_of_responses(void)
{
    json_t *rows = cases_load("tests/cases/http/cors.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
        check_row(row);
    json_decref(rows);
}

/* A policy of which a preflight is told all that there is. */
static const struct str origins[] = {{"https://a.example", 17}, {"https://b.example", 17}};
static const struct str methods[] = {{"PUT", 3}};
static const struct str names[] = {{"x-a", 3}};
static const struct cors_policy everything = {
    .origins = {origins, 2},
    .methods = {methods, 1},
    .request_headers = {names, 1},
    .exposed_headers = {names, 1},
    .credentials = true,
    .allow_methods = {"PUT", 3},
    .allow_headers = {"x-a", 3},
    .expose_headers = {"x-a", 3},
    .max_age = {"5", 1},
};

static void respond_beside_others(bool preflight, struct response_edit *e)
{
    struct header items[] = {{STR("origin"), STR("https://a.example")}, {STR("access-control-request-method"), STR("PUT")}};
    struct headers h = {items, 2};

    response_edit_clear(e);
    response_edit_delete(e, STR("ratelimit"));
    response_edit_delete(e, STR("ratelimit-policy"));
    response_edit_add(e, STR("ratelimit"), STR("\"a\";r=1;t=1"));
    response_edit_add(e, STR("ratelimit-policy"), STR("\"a\";q=1;w=1"));
    response_edit_add(e, STR("www-authenticate"), STR("Bearer"));
    cors_respond(&everything, &h, preflight, e);
}

static void beside_others(void)
{
    struct response_edit e;

    respond_beside_others(true, &e);
    CU_ASSERT(e.cors && !e.full && e.n_deleted == 2);
    CU_ASSERT_EQUAL(e.n_added, 3 + 6);
    respond_beside_others(false, &e);
    CU_ASSERT(e.cors && !e.full && e.n_deleted == 2);
    CU_ASSERT_EQUAL(e.n_added, 3 + 4);
    CU_ASSERT(has_added(&e, STR("ratelimit"), STR("\"a\";r=1;t=1")));
    CU_ASSERT(has_added(&e, STR("ratelimit-policy"), STR("\"a\";q=1;w=1")));
    CU_ASSERT(has_added(&e, STR("www-authenticate"), STR("Bearer")));
}

/* An origin in the request's own bytes would be gone, or another, by the time that the response is made of it. */
static void values_of_the_policy(void)
{
    char sent[] = "https://b.example";
    struct header item = {STR("origin"), {sent, sizeof sent - 1}};
    struct headers h = {&item, 1};
    struct response_edit e;

    response_edit_clear(&e);
    cors_respond(&everything, &h, false, &e);
    memset(sent, 'x', sizeof sent);
    CU_ASSERT(has_added(&e, STR("access-control-allow-origin"), STR("https://b.example")));
}

void test_cors_register(void)
{
    CU_pSuite s = CU_add_suite("cors", NULL, NULL);

    CU_add_test(s, "security: a response says of CORS what its policy allows this request, and nothing else", rows_of_responses);
    CU_add_test(s, "CORS has room beside all else that changes a response, and leaves it as it is", beside_others);
    CU_add_test(s, "security: the allowed origin is the policy's text, none of the request's", values_of_the_policy);
}
