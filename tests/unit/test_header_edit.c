/* Header rules at work: filters, operations and placeholders, the lists that HAProxy applies, and the headers after them. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "common/base/codec.h"
#include "common/base/varint.h"
#include "tests/unit/cases.h"
#include "tests/unit/expr_facts.h"
#include "tests/unit/policy_cases.h"

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

/* A text, or what text can't hold: {"hex"} or {"repeat": [text, n]}. */
static struct str bytes_of(const json_t *value)
{
    const json_t *repeat = json_object_get(value, "repeat");
    char *storage = arena_take_bytes(&arena, 64 * 1024);
    struct buf b;

    CU_ASSERT_PTR_NOT_NULL_FATAL(storage);
    if (json_is_string(value))
        return (struct str){json_string_value(value), json_string_length(value)};
    if (!repeat)
        return case_bytes(value, "hex", storage, 64 * 1024);
    buf_init(&b, storage, 64 * 1024);
    for (json_int_t i = 0; i < json_integer_value(json_array_get(repeat, 1)); i++)
        buf_put_cstr(&b, json_string_value(json_array_get(repeat, 0)));
    CU_ASSERT_FATAL(!b.full);
    return buf_str(&b);
}

static struct headers headers_of(const json_t *list)
{
    struct headers h = {.items = ARENA_NEW_N(&arena, json_array_size(list), struct header)};

    CU_ASSERT_PTR_NOT_NULL_FATAL(h.items);
    for (; h.n < json_array_size(list); h.n++) {
        h.items[h.n].name = bytes_of(json_array_get(json_array_get(list, h.n), 0));
        h.items[h.n].value = bytes_of(json_array_get(json_array_get(list, h.n), 1));
    }
    return h;
}

static bool same_headers(const struct headers *a, const struct headers *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++)
        same = str_eq(a->items[i].name, b->items[i].name) && str_eq(a->items[i].value, b->items[i].value);
    return same;
}

/* The names of a deletion list, against a list of texts. */
static bool deletes(struct str list, const json_t *wanted)
{
    for (size_t i = 0; i <= json_array_size(wanted); i++) {
        uint64_t len;
        if (!varint_get(&list, &len) || len > list.len)
            return false;
        if (i == json_array_size(wanted))
            return len == 0 && list.len == 0;
        if (!str_eq(str_sub(list, 0, (size_t) len), str_of(json_string_value(json_array_get(wanted, i)))))
            return false;
        list = str_sub(list, (size_t) len, list.len);
    }
    return false;
}

static const struct expr_claims *claims_of(const json_t *object)
{
    struct expr_claims *claims = ARENA_NEW(&arena, struct expr_claims);
    struct expr_claim *items = ARENA_NEW_N(&arena, json_object_size(object), struct expr_claim);
    const char *name;
    json_t *value;

    CU_ASSERT_FATAL(claims && items);
    json_object_foreach((json_t *) (uintptr_t) object, name, value)
    {
        struct str *text = ARENA_NEW(&arena, struct str);
        CU_ASSERT_PTR_NOT_NULL_FATAL(text);
        *text = bytes_of(value);
        items[claims->n++] = (struct expr_claim){.name = str_of(name), .values = text, .n_values = 1};
    }
    claims->items = items;
    return object ? claims : NULL;
}

static struct str fact(const json_t *facts, const char *name)
{
    const json_t *value = json_object_get(facts, name);
    return value ? bytes_of(value) : STR_NONE;
}

/* "facts" of a row: members of expr_facts by their names; host, method and path have defaults. */
static struct request_view view_of(const json_t *row, const struct headers *sent)
{
    const json_t *facts = json_object_get(row, "facts"), *asnum = json_object_get(facts, "asnum");
    struct request_view view = {.headers = sent};
    struct expr_facts *f = &view.facts;

    CU_ASSERT_FATAL(expr_facts_begin(f, &arena));
    f->host = json_object_get(facts, "host") ? fact(facts, "host") : STR("a.example");
    f->method = STR("GET");
    f->path = json_object_get(facts, "path") ? fact(facts, "path") : STR("/");
    f->query = fact(facts, "query");
    f->headers = sent;
    f->has_ip = addr_parse(fact(facts, "ip"), &f->ip);
    f->viewer.country = fact(facts, "country");
    f->viewer.continent = fact(facts, "continent");
    f->viewer.ja3 = fact(facts, "ja3");
    f->viewer.ja4 = fact(facts, "ja4");
    f->viewer.has_asnum = asnum != NULL;
    f->viewer.asnum = json_integer_value(asnum);
    expr_facts_give_locale(f, fact(facts, "locale"), &arena);
    f->claims = claims_of(json_object_get(facts, "claims"));
    return view;
}

static void check_row(const json_t *row, const struct policy *p)
{
    struct headers sent = headers_of(json_object_get(row, "headers")), result = headers_of(json_object_get(row, "result"));
    struct headers added = headers_of(json_object_get(row, "add")), got_added;
    struct request_view view = view_of(row, &sent);
    struct header_edit edit = {.del = STR("untouched")};
    struct rule_hits hits;

    bool ok = policy_headers(p, &view, &arena, &edit, &hits);
    if (json_is_true(json_object_get(row, "fails"))) {
        CASE_CHECK(row, !ok && str_eq(edit.del, STR("untouched")));
        return;
    }
    if (!CASE_CHECK(row, ok))
        return;
    CASE_CHECK(row, same_headers(&edit.result, &result));
    if (json_is_null(json_object_get(row, "del"))) {
        CASE_CHECK(row, edit.del.len == 0 && edit.add.len == 0);
        return;
    }
    CASE_CHECK(row, deletes(edit.del, json_object_get(row, "del")));
    CASE_CHECK(row, headers_decode(edit.add, &arena, &got_added) && same_headers(&got_added, &added));
}

/* forward: the policy's filter; NULL: none. */
static json_t *row_of_rules(json_t *rules, json_t *forward)
{
    json_t *row = json_pack("{s:s, s:{s:O}}", "base", "minimal", "set", "/request_header_rules", rules);

    if (forward)
        json_object_set_new(json_object_get(row, "set"), "/global/request_headers", json_pack("{s:O}", "forward", forward));
    return row;
}

static void rows_of_data(void)
{
    json_t *rows = cases_load("tests/cases/policy/header_edits.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        json_t *document = row_of_rules(json_object_get(row, "rules"), json_object_get(row, "forward"));
        struct policy *p = policy_case_compile(document);
        check_row(row, p);
        policy_free(&p);
        json_decref(document);
        arena_reset(&arena);
    }
    json_decref(rows);
}

/* As many and as long headers as compile allows: what compiles always fits. */
static void largest(void)
{
    json_t *row = json_loads("{\"base\":\"minimal\",\"fill\":{\"/request_header_rules\":[48,{\"id\":\"r#\",\"expression\":\"true\",\"ops\":["
                             "{\"op\":\"set\",\"name\":\"x-#\",\"value\":\"\"},{\"op\":\"set\",\"name\":\"X-#\",\"value\":\"\"}]}]}}",
                             0, NULL);
    struct headers none = {0};
    struct request_view view = {.facts = {.host = STR("a"), .method = STR("GET"), .path = STR("/")}, .headers = &none};
    static char value[1008];
    struct header_edit edit;
    struct rule_hits hits;

    memset(value, 'v', sizeof value);
    json_t *item = json_array_get(json_object_get(json_object_get(row, "fill"), "/request_header_rules"), 1);
    for (size_t i = 0; i < 2; i++)
        json_object_set_new(json_array_get(json_object_get(item, "ops"), i), "value", json_stringn(value, sizeof value));
    struct policy *p = policy_case_compile(row);
    CU_ASSERT_FATAL(policy_headers(p, &view, &arena, &edit, &hits));
    CU_ASSERT_EQUAL(hits.n, 48);
    CU_ASSERT_EQUAL(edit.result.n, 48);
    CU_ASSERT(edit.add.len > 48000 && edit.add.len <= 49152);
    policy_free(&p);
    json_decref(row);
    arena_reset(&arena);
}

/* Every kind of operation takes its memory from the arena, and only from there. */
static void no_memory(void)
{
    json_t *rules = json_loads("[{\"id\":\"r\",\"expression\":\"true\",\"ops\":[{\"op\":\"set\",\"name\":\"x-a\",\"value\":\"{{host}}\"},"
                               "{\"op\":\"copy\",\"from\":\"x-c\",\"to\":\"x-d\"},{\"op\":\"add\",\"name\":\"x-c\",\"value\":\"1\"}]}]",
                               0, NULL);
    json_t *row = row_of_rules(rules, NULL);
    struct policy *p = policy_case_compile(row);
    struct header items[] = {{STR("x-c"), STR("a\001b")}};
    struct headers sent = {.items = items, .n = 1};
    struct request_view view = view_of(row, &sent);
    bool done = false;

    for (size_t limit = 1; !done && limit < 32768; limit++) {
        struct arena tight;
        struct header_edit edit = {.del = STR("untouched")};
        struct rule_hits hits = {.n = 7};
        arena_init(&tight, 64, limit);
        done = policy_headers(p, &view, &tight, &edit, &hits);
        CU_ASSERT(done ? hits.n == 1 : hits.n == 7 && str_eq(edit.del, STR("untouched")));
        arena_release(&tight);
    }
    CU_ASSERT(done);
    policy_free(&p);
    json_decref(row);
    json_decref(rules);
    arena_reset(&arena);
}

void test_header_edit_register(void)
{
    CU_pSuite s = CU_add_suite("header_edit", set_up, tear_down);
    CU_add_test(s, "the lists for HAProxy hold the difference that header rules make, and nothing the client sent under those names", rows_of_data);
    CU_add_test(s, "the most that header rules may write fits into the lists", largest);
    CU_add_test(s, "header rules that find no memory fail and leave the outputs alone", no_memory);
}
