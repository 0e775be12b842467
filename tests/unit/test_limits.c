/* Which limits count a request, and the subject that each of them counts. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "tests/unit/cases.h"
#include "tests/unit/expr_facts.h"
#include "tests/unit/policy_cases.h"
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

static struct header header_items[HEADERS_MAX];
static struct headers headers;

static void take_headers(const json_t *object)
{
    const char *name;
    json_t *value;

    headers = (struct headers){.items = header_items};
    json_object_foreach((json_t *) (uintptr_t) object, name, value) header_items[headers.n++] =
        (struct header){.name = str_of(name), .value = str_of(json_string_value(value))};
}

static struct expr_claim claim;
static struct str claim_value;
static struct expr_claims claims;

/* One claim of one value. */
static const struct expr_claims *take_claims(const json_t *object)
{
    const char *name;
    json_t *value;

    claims = (struct expr_claims){.items = &claim};
    json_object_foreach((json_t *) (uintptr_t) object, name, value)
    {
        claim_value = str_of(json_string_value(value));
        claim = (struct expr_claim){.name = str_of(name), .values = &claim_value, .n_values = 1};
        claims.n = 1;
    }
    return claims.n > 0 ? &claims : NULL;
}

/* "request" of a row: host, method, ip, headers, query, country, asnum, ja4, locale, claims. */
static struct request_view view_of(const json_t *request)
{
    struct request_view view = {.headers = &headers};
    struct expr_facts *f = &view.facts;
    const json_t *asnum = json_object_get(request, "asnum");

    take_headers(json_object_get(request, "headers"));
    CU_ASSERT_FATAL(expr_facts_begin(f, &arena));
    f->host = json_object_get(request, "host") ? case_str(request, "host") : STR("a.example");
    f->method = json_object_get(request, "method") ? case_str(request, "method") : STR("GET");
    f->path = STR("/");
    f->query = case_str(request, "query");
    f->headers = &headers;
    f->has_ip = addr_parse(case_str(request, "ip"), &f->ip);
    f->viewer.country = case_str(request, "country");
    f->viewer.ja4 = case_str(request, "ja4");
    expr_facts_give_locale(f, case_str(request, "locale"), &arena);
    f->claims = take_claims(json_object_get(request, "claims"));
    f->viewer.has_asnum = asnum != NULL;
    f->viewer.asnum = json_integer_value(asnum);
    return view;
}

/* A policy of a row's "rules" and "kill_switch". */
static struct policy *policy_of(const json_t *row)
{
    json_t *document = json_pack("{s:s, s:{s:O}}", "base", "full", "set", "/rate_limit_rules", json_object_get(row, "rules"));

    if (json_is_true(json_object_get(row, "kill_switch")))
        json_object_set_new(json_object_get(document, "set"), "/kill_switch", json_pack("{s:b}", "rate_limit", 1));
    struct policy *p = policy_case_compile(document);
    json_decref(document);
    return p;
}

/* "chosen": the ids of the chosen rules in order, shadow ones with a "?" behind them. */
static bool is_choice(const struct policy *p, const struct limit_choice *got, const json_t *wanted)
{
    bool same = got->n == json_array_size(wanted);

    for (size_t i = 0; same && i < got->n; i++) {
        struct str want = str_of(json_string_value(json_array_get(wanted, i))), id = p->rate_rules[got->index[i]].id;
        bool shadow = str_ends(want, STR("?"));
        same = str_eq(id, str_sub(want, 0, want.len - (shadow ? 1 : 0))) && got->enforce[i] == !shadow;
    }
    return same;
}

static bool are_rules(const struct policy *p, const uint16_t *index, size_t n, const json_t *ids)
{
    bool same = n == json_array_size(ids);

    for (size_t i = 0; same && i < n; i++)
        same = str_eq(p->rate_rules[index[i]].id, str_of(json_string_value(json_array_get(ids, i))));
    return same;
}

/* The first of them are named. */
static bool is_passed(const struct policy *p, const struct limit_passed *got, const json_t *wanted)
{
    return are_rules(p, got->index, got->n < LIMIT_PASSED_NAMED_MAX ? got->n : LIMIT_PASSED_NAMED_MAX, wanted);
}

static void choices(void)
{
    json_t *rows = cases_load("tests/cases/policy/limit_choices.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct policy *p = policy_of(row);
        struct request_view view = view_of(json_object_get(row, "request"));
        struct limit_choice got;
        CASE_CHECK(row, policy_select_limits(p, &view, &arena, json_integer_value(json_object_get(row, "now")), &got));
        CASE_CHECK(row, is_choice(p, &got, json_object_get(row, "chosen")));
        CASE_CHECK(row, got.capped.n == json_integer_value(json_object_get(row, "capped")));
        CASE_CHECK(row, got.capped.n == 0 || is_passed(p, &got.capped, json_object_get(row, "left_out")));
        CASE_CHECK(row, is_passed(p, &got.expired, json_object_get(row, "expired")));
        CASE_CHECK(row, !json_object_get(row, "rejecting") || str_eq(p->rate_rules[got.rejecting].id, case_str(row, "rejecting")));
        CASE_CHECK(row, got.reject_missing_key == json_is_true(json_object_get(row, "reject")));
        policy_free(&p);
        arena_reset(&arena);
    }
    json_decref(rows);
}

/* Each with the subject that a limit of the same key would count. */
static void check_counting(const json_t *row, const struct policy *p, const struct request_view *view)
{
    struct count_choice got;

    if (!CASE_CHECK(row, policy_select_counts(p, view, &arena, json_integer_value(json_object_get(row, "now")), &got)))
        return;
    CASE_CHECK(row, are_rules(p, got.index, got.n, json_object_get(row, "counting")));
    for (size_t i = 0; i < got.n; i++) {
        char storage[RATE_SUBJECT_MAX];
        struct buf b;
        struct rate_subject wanted;
        buf_init(&b, storage, sizeof storage);
        policy_limit_subject(&p->rate_rules[got.index[i]], view, &b);
        CASE_CHECK(row, rate_subject_hash(buf_str(&b), &wanted) && memcmp(wanted.b, got.subject[i].b, sizeof wanted.b) == 0);
    }
}

static void counting(void)
{
    json_t *rows = cases_load("tests/cases/policy/limit_counts.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct policy *p = policy_of(row);
        struct request_view view = view_of(json_object_get(row, "request"));
        CASE_CHECK(row, p->counts_answers);
        check_counting(row, p, &view);
        policy_free(&p);
        arena_reset(&arena);
    }
    json_decref(rows);
}

/* --- Subjects --- */

enum { N_REQUESTS_MAX = 8 };

/* Rows are a rule's "key" and requests in groups: those of one group are one subject, those of different groups are not. */
static size_t subjects_of_group(const json_t *group, const struct rate_rule *rule, struct rate_subject *out)
{
    size_t n = json_array_size(group);
    char storage[RATE_SUBJECT_MAX];
    struct buf b;

    CU_ASSERT_FATAL(n <= N_REQUESTS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct request_view view = view_of(json_array_get(group, i));
        buf_init(&b, storage, sizeof storage);
        policy_limit_subject(rule, &view, &b);
        CU_ASSERT(!b.full && rate_subject_hash(buf_str(&b), &out[i]));
    }
    return n;
}

static bool same_subject(const struct rate_subject *a, const struct rate_subject *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

static void check_subjects(const json_t *row, const struct rate_rule *rule)
{
    const json_t *groups = json_object_get(row, "groups");
    struct rate_subject first[N_REQUESTS_MAX], of_group[N_REQUESTS_MAX];

    CU_ASSERT_FATAL(json_array_size(groups) <= N_REQUESTS_MAX);
    for (size_t i = 0; i < json_array_size(groups); i++) {
        size_t n = subjects_of_group(json_array_get(groups, i), rule, of_group);
        first[i] = of_group[0];
        for (size_t k = 1; k < n; k++)
            CASE_CHECK(row, same_subject(&of_group[k], &first[i]));
        for (size_t k = 0; k < i; k++)
            CASE_CHECK(row, !same_subject(&first[k], &first[i]));
    }
}

static void check_display(const json_t *row, const struct rate_rule *rule)
{
    char storage[2 * LIMIT_DISPLAY_MAX] = "";
    struct request_view view = view_of(json_object_get(row, "request"));
    struct buf b;

    buf_init(&b, storage, sizeof storage);
    policy_limit_display(rule, &view, &b);
    CASE_CHECK_GOT(row, str_eq(buf_str(&b), case_str(row, "want")), buf_str(&b));
    CASE_CHECK(row, !b.full && b.len <= LIMIT_DISPLAY_MAX && storage[b.len] == '\0');
}

/* A rule of each row's "key", with a partner that lets it have any. */
static void each_key(const char *file, void (*check)(const json_t *row, const struct rate_rule *rule))
{
    json_t *rows = cases_load(file), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        json_t *rules = json_pack("{s:[{s:s, s:s, s:s, s:i, s:s, s:O}, {s:s, s:s, s:s, s:i, s:s, s:[s]}]}", "rules", "id", "r", "expression",
                                  "http.host ne \"\"", "algorithm", "token_bucket", "limit", 1, "period", "1s", "key", json_object_get(row, "key"), "id",
                                  "all", "expression", "true", "algorithm", "token_bucket", "limit", 1, "period", "1s", "key", "ip");
        struct policy *p = policy_of(rules);
        check(row, &p->rate_rules[0]);
        policy_free(&p);
        json_decref(rules);
        arena_reset(&arena);
    }
    json_decref(rows);
}

static void subject_rows(void)
{
    each_key("tests/cases/policy/limit_subjects.json", check_subjects);
}

static void display_rows(void)
{
    each_key("tests/cases/policy/limit_displays.json", check_display);
}

static bool subject_fits(char *name, size_t value_len, const struct rate_rule *rule, struct rate_subject *out)
{
    static char value[16 * 1024], storage[RATE_SUBJECT_MAX];
    struct header item = {.name = str_of(name), .value = {value, value_len}};
    struct headers sent = {.items = &item, .n = 1};
    struct request_view view = {.headers = &sent};
    struct buf b;

    memset(value, 'v', sizeof value);
    CU_ASSERT_FATAL(expr_facts_begin(&view.facts, &arena));
    view.facts.headers = &sent;
    buf_init(&b, storage, sizeof storage);
    policy_limit_subject(rule, &view, &b);
    return !b.full && rate_subject_hash(buf_str(&b), out);
}

/* Half a subject would be another one's. */
static void long_value_without_digest(void)
{
    const struct rate_rule rule = {.n_key = 1, .key = {{.kind = KEY_PART_HOST}}};
    static char value[1024], storage[RATE_SUBJECT_MAX];
    struct request_view view = {.facts = {.host = {value, sizeof value}}};
    struct buf b;

    memset(value, 'v', sizeof value);
    buf_init(&b, storage, sizeof storage);
    refuse_memory(0);
    policy_limit_subject(&rule, &view, &b);
    CU_ASSERT(refuse_memory_end() && b.full);
}

/* No value that a client sends is too long to be counted, and no two of them are one subject. */
static void long_values(void)
{
    struct rate_rule rule = {.n_key = POLICY_KEY_PARTS_MAX};
    static const size_t lens[] = {1, 511, 512, 513, 529, 530, 8192, 16384};
    struct rate_subject seen[sizeof lens / sizeof lens[0]];
    char name[] = "x-a";

    for (size_t i = 0; i < rule.n_key; i++)
        rule.key[i] = (struct key_part){.kind = KEY_PART_HEADER, .name = STR("x-a")};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        CU_ASSERT(subject_fits(name, lens[i], &rule, &seen[i]));
        for (size_t k = 0; k < i; k++)
            CU_ASSERT_FALSE(same_subject(&seen[k], &seen[i]));
    }
    arena_reset(&arena);
}

/* Limits in Valkey go on counting across versions of the edge: a subject's bytes stay as they are. */
static void subject_bytes(void)
{
    struct rate_rule rule = {.n_key = 2, .key = {{.kind = KEY_PART_HOST}, {.kind = KEY_PART_IP}}};
    struct request_view view = {0};
    char storage[64];
    struct buf b;

    CU_ASSERT_FATAL(expr_facts_begin(&view.facts, &arena));
    view.facts.host = STR("a.b");
    view.facts.has_ip = addr_parse(STR("192.0.2.1"), &view.facts.ip);
    buf_init(&b, storage, sizeof storage);
    policy_limit_subject(&rule, &view, &b);
    CU_ASSERT(str_eq(buf_str(&b), STR("\x01\0\0\0\x03"
                                      "a.b\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x01")));
    view.facts.host = STR_NONE;
    buf_init(&b, storage, sizeof storage);
    policy_limit_subject(&rule, &view, &b);
    CU_ASSERT(str_eq(buf_str(&b), STR("\x02\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x01")));
    arena_reset(&arena);
}

void test_limits_register(void)
{
    CU_pSuite s = CU_add_suite("limits", set_up, tear_down);
    CU_add_test(s, "blocking limits take the slots first, and those without a key take none", choices);
    CU_add_test(s, "rules that count answers are chosen apart, with whom they count", counting);
    CU_add_test(s, "security: a subject is shown so that it can be recognised, and no secret so that it could be used", display_rows);
    CU_add_test(s, "a limit tells clients apart by all parts of its key, and nothing a client sends is another one's subject", subject_rows);
    CU_add_test(s, "a value of any length is counted, each as its own", long_values);
    CU_add_test(s, "a subject is a domain byte and values behind their lengths", subject_bytes);
    CU_add_test(s, "a long value whose digest fails gives no subject", long_value_without_digest);
}
