/* What a policy's config rules make of a request's settings. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "tests/unit/cases.h"
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

static json_t *text(struct str s)
{
    return json_stringn(s.p, s.len);
}

static json_t *accepted_json(const struct policy *p, uint32_t accepted)
{
    json_t *ids = json_array();

    for (size_t i = 0; i < p->n_issuers; i++)
        if (accepted >> i & 1)
            json_array_append_new(ids, text(p->issuers[i].id));
    return ids;
}

static json_t *settings_json(const struct policy *p, const struct settings *s)
{
    static const char *const auth[] = {[AUTH_UNSET] = "unset", [AUTH_NONE] = "none", [AUTH_OPTIONAL] = "optional", [AUTH_REQUIRED] = "required"};
    static const char *const block[] = {[BLOCK_UNSET] = "unset", [BLOCK_NONE] = "none", [BLOCK_LOG] = "log", [BLOCK_BLOCK] = "block"};

    return json_pack("{s:s, s:o, s:o, s:b, s:I, s:I, s:I, s:b, s:s, s:o}", "auth_mode", auth[s->auth], "auth_accepted", accepted_json(p, s->accepted),
                     "cors_policy", s->cors ? text(s->cors->name) : json_null(), "locale", s->locale, "body_limit", (json_int_t) s->body_limit,
                     "upstream_timeout_ms", (json_int_t) s->upstream_timeout_ms, "body_read_timeout_ms", (json_int_t) s->body_read_timeout_ms,
                     "ratelimit_headers", s->ratelimit_headers, "block", block[s->block], "forbidden", text(s->responses[KIND_FORBIDDEN]->name));
}

static json_t *responses_json(const struct settings *s)
{
    json_t *names = json_object();

    for (int k = 0; k < KIND_N; k++)
        json_object_set_new(names, kind_name((enum kind) k), text(s->responses[k]->name));
    return names;
}

static void check(const json_t *row, const char *member, json_t *got)
{
    char *dumped = json_dumps(got, JSON_COMPACT);

    CASE_CHECK_GOT(row, json_equal(json_object_get(row, member), got), dumped ? str_of(dumped) : STR_NONE);
    free(dumped);
    json_decref(got);
}

/* Longer than what regular expressions look at: a condition on it can't be judged. */
static struct str path_of(const json_t *row)
{
    static char path[9000];

    if (!json_is_true(json_object_get(row, "long_path")))
        return STR("/");
    memset(path, 'a', sizeof path);
    path[0] = '/';
    return (struct str){path, sizeof path};
}

static void rows_of_data(void)
{
    json_t *rows = cases_load("tests/cases/policy/settings.json"), *row;
    struct headers none = {0};
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct policy *p = policy_case_compile(row);
        struct request_view view = {.facts = {.host = STR("a.example"), .method = STR("GET"), .path = path_of(row)}, .headers = &none};
        struct settings settings;
        struct rule_hits hits;
        json_t *ids = json_array();
        CU_ASSERT_FATAL(policy_config(p, &view, &arena, &settings, &hits));
        check(row, "settings", settings_json(p, &settings));
        for (size_t k = 0; k < hits.n; k++)
            json_array_append_new(ids, text(p->config_rules[hits.index[k]].id));
        check(row, "hits", ids);
        if (json_object_get(row, "responses"))
            check(row, "responses", responses_json(&settings));
        const json_t *block_rule = json_object_get(row, "block_rule");
        CASE_CHECK(row, (block_rule != NULL) == (settings.block_rule >= 0) && (settings.block_rule >= 0) == (settings.block != BLOCK_NONE));
        CASE_CHECK(row, block_rule == NULL || str_eq(case_str(row, "block_rule"), p->config_rules[settings.block_rule].id));
        policy_free(&p);
        arena_reset(&arena);
    }
    json_decref(rows);
}

void test_policy_settings_register(void)
{
    CU_pSuite s = CU_add_suite("policy_settings", set_up, tear_down);
    CU_add_test(s, "matching rules set what they name, in order, over the document's defaults and under its kill switches; what can't be judged only protects", rows_of_data);
}
