/* Identification of requests, by rows: the facts that rules see, what goes to the upstream, what is refused. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "common/policy/identify.h"
#include "tests/unit/cases.h"
#include "tests/unit/refuse_memory.h"

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

static void headers_of(const json_t *row, struct headers *h)
{
    const json_t *list = json_object_get(row, "headers");

    for (h->n = 0; h->n < json_array_size(list); h->n++) {
        const json_t *pair = json_array_get(list, h->n);
        h->items[h->n].name = str_of(json_string_value(json_array_get(pair, 0)));
        h->items[h->n].value = str_of(json_string_value(json_array_get(pair, 1)));
    }
}

/* A member that the row leaves out is not compared. */
static bool is_text(const json_t *row, const char *name, struct str got)
{
    return !json_object_get(row, name) || str_eq(case_str(row, name), got);
}

static void check_row(const json_t *row)
{
    struct header items[8];
    struct headers h = {.items = items};
    struct identify_input in = {.method = case_str(row, "method"), .url = case_str(row, "url"), .headers = &h};
    struct identity id;
    const json_t *changed = json_object_get(row, "changed");

    headers_of(row, &h);
    if (json_object_get(row, "http_version"))
        in.http_version = case_str(row, "http_version");
    in.has_src = json_is_string(json_object_get(row, "src"));
    CU_ASSERT_FATAL(!in.has_src || addr_parse(case_str(row, "src"), &in.src));
    identify(&in, &arena, &id);
    bool ok = CASE_CHECK(row, is_text(row, "refused", str_of(decision_name(id.refused))));
    ok = CASE_CHECK(row, is_text(row, "path_verdict", str_of(path_verdict_name(id.path_verdict)))) && ok;
    ok = CASE_CHECK(row, is_text(row, "host", id.facts.host)) && ok;
    ok = CASE_CHECK(row, is_text(row, "path", id.facts.path)) && ok;
    ok = CASE_CHECK(row, is_text(row, "uri", id.facts.uri)) && ok;
    ok = CASE_CHECK(row, is_text(row, "query", id.facts.query)) && ok;
    ok = CASE_CHECK(row, is_text(row, "forward", id.forward_uri)) && ok;
    ok = CASE_CHECK(row, !changed || json_is_true(changed) == id.uri_changed) && ok;
    ok = CASE_CHECK(row, str_eq(id.facts.method, in.method)) && ok;
    ok = CASE_CHECK(row, id.facts.has_ip == in.has_src && addr_cmp(&id.facts.ip, &in.src) == 0) && ok;
    if (!ok)
        fprintf(stderr, "    refused %s, path verdict %s, host \"%.*s\", path \"%.*s\", forward \"%.*s\", changed %d\n", decision_name(id.refused),
                path_verdict_name(id.path_verdict), STR_ARG(id.facts.host), STR_ARG(id.facts.path), STR_ARG(id.forward_uri), id.uri_changed);
    arena_reset(&arena);
}

static void rows_of_data(void)
{
    json_t *rows = cases_load("tests/cases/policy/identify.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row) check_row(row);
    json_decref(rows);
}

/* What a row's Host, or a value, comes to in a request that is fine but for that. */
static enum decision decision_on(struct str host, struct str value)
{
    struct header items[] = {{STR("host"), host}, {STR("x"), value}};
    struct headers h = {.items = items, .n = 2};
    struct identify_input in = {.method = STR("GET"), .url = STR("/"), .headers = &h, .has_src = true, .http_version = STR("1.1")};
    struct identity id;

    identify(&in, &arena, &id);
    arena_reset(&arena);
    return id.refused;
}

static void hosts(void)
{
    json_t *rows = cases_load("tests/cases/policy/hosts.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        enum decision want = json_is_true(json_object_get(row, "passes")) ? DECISION_ALLOW : DECISION_BAD_REQUEST;
        CASE_CHECK(row, decision_on(case_str(row, "host"), STR("y")) == want);
    }
    json_decref(rows);
}

/* Each byte at each place of values of every length up to 20, one of eight of which is looked at as a word. */
static void bytes_of_values(void)
{
    json_t *rows = cases_load("tests/cases/policy/header_bytes.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        enum decision want = json_is_true(json_object_get(row, "passes")) ? DECISION_ALLOW : DECISION_BAD_REQUEST;
        struct str byte = case_str(row, "byte");
        for (size_t len = 1; len <= 20; len++)
            for (size_t at = 0; at < len; at++) {
                char value[24];
                memset(value, '\xff', sizeof value);
                memset(value, 'v', len);
                value[at] = (char) (byte.len == 1 ? byte.p[0] : (byte.p[0] & 3) << 6 | (byte.p[1] & 0x3f)); /* Latin-1 */
                if (!CASE_CHECK(row, decision_on(STR("a"), (struct str){value, len}) == want))
                    break;
            }
    }
    json_decref(rows);
}

static struct identity identify_url(struct str url, struct str host, struct arena *a)
{
    struct header items[] = {{STR("host"), host}};
    struct headers h = {.items = items, .n = 1};
    struct identify_input in = {.method = STR("GET"), .url = url, .headers = &h, .has_src = true};
    struct identity id;

    identify(&in, a, &id);
    return id;
}

/* What the facts of any request take. */
static size_t facts_bytes(void)
{
    struct expr_facts facts;

    CU_ASSERT_FATAL(expr_facts_begin(&facts, &arena));
    size_t used = arena.used_bytes;
    arena_reset(&arena);
    return used;
}

static void plain_is_borrowed(void)
{
    const size_t for_facts = facts_bytes();
    struct str url = STR("https://shop.example/a/b?c=d");
    struct identity id = identify_url(url, STR("shop.example"), &arena);

    CU_ASSERT_PTR_EQUAL(id.forward_uri.p, url.p + 20);
    CU_ASSERT_EQUAL(arena.used_bytes, for_facts);
    arena_reset(&arena);
}

/* Each place that takes memory, with no memory left. */
static void no_memory(void)
{
    static const struct {
        struct str url, host;
        bool has_facts; /* there is memory for the facts, and no more */
    } rows[] = {{{"/%61", 4}, {"a", 1}, true}, {{"/", 1}, {"A", 1}, true}, {{"/a?%", 4}, {"a", 1}, true}, {{"/", 1}, {"a", 1}, false}};
    const size_t for_facts = facts_bytes();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena none;
        arena_init(&none, 4096, rows[i].has_facts ? for_facts : 1);
        struct identity id = identify_url(rows[i].url, rows[i].host, &none);
        CU_ASSERT_EQUAL(id.refused, DECISION_UNAVAILABLE);
        CU_ASSERT_EQUAL(id.forward_uri.len, 0);
        arena_release(&none);
    }
}

/* Whose url and host are identified; what comes of it without refusals. */
static bool identify_refused(void *arg, size_t n)
{
    const struct str *request = arg;

    refuse_memory(n);
    struct identity id = identify_url(request[0], request[1], &arena);
    bool refused = refuse_memory_end();
    CU_ASSERT_EQUAL(id.refused, refused ? DECISION_UNAVAILABLE : DECISION_ALLOW);
    CU_ASSERT(!refused || id.forward_uri.len == 0);
    arena_reset(&arena);
    return refused;
}

static void refused_anywhere(void)
{
    struct str rows[][2] = {{STR("http://A.example/%61|b?c|d"), STR("a.Example")}, {STR("/a|b"), STR("a")}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CU_ASSERT(refuse_memory_everywhere(identify_refused, rows[i]) > 1);
}

void test_identify_register(void)
{
    CU_pSuite s = CU_add_suite("identify", set_up, tear_down);
    CU_add_test(s, "a request has one reading, over HTTP/1 and HTTP/2, or is refused", rows_of_data);
    CU_add_test(s, "security: a Host is a host with or without a port, or the request is refused", hosts);
    CU_add_test(s, "security: no value with a control character but the tab passes, wherever it stands", bytes_of_values);
    CU_add_test(s, "a plain request takes no memory but for its facts", plain_is_borrowed);
    CU_add_test(s, "a request that finds no memory is not let through", no_memory);
    CU_add_test(s, "a request is not let through wherever memory is refused", refused_anywhere);
}
