/* The agent's part of a record, as requests leave it: which rules it names and what they did, and that any request's part fits and reads back. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "spoa/record/counts.h"
#include "spoa/request/record_part.h"
#include "tests/unit/cases.h"
#include "tests/unit/notify.h"
#include "tests/unit/policy_cases.h"
#include "tests/unit/valkey_rig.h"

static struct notify_bench bench;

/* --- Requests, as the steps leave them --- */

static bool is(const json_t *want, struct str got)
{
    return want == NULL || str_eq(str_of(json_string_value(want)), got);
}

static bool is_number(const json_t *want, uint64_t got)
{
    return want == NULL || (uint64_t) json_integer_value(want) == got;
}

static void check_parts(const json_t *row, struct str text)
{
    const json_t *want = json_object_get(row, "parts");
    struct rec rec;

    if (!CASE_CHECK_GOT(row, rec_parse(text, &rec), text))
        return;
#define PART(name) json_object_get(want, #name)
    CASE_CHECK_GOT(row, is(PART(decision), str_of(decision_name(rec.decision))), text);
    CASE_CHECK_GOT(row, is(PART(limits), rec.limits) && is(PART(config_rules), rec.config_rules) && is(PART(header_rules), rec.header_rules), text);
    CASE_CHECK_GOT(row, is(PART(counted), rec.counted) && is(PART(subjects), rec.subjects), text);
    CASE_CHECK_GOT(row, is(PART(query_keys), rec.query_keys) && is_number(PART(dropped), rec.n_query_keys_dropped), text);
    CASE_CHECK_GOT(row, is(PART(host), rec.host) && is(PART(user_agent), rec.user_agent) && is(PART(path), rec.path), text);
    CASE_CHECK_GOT(row, is_number(PART(signals), rec.signals), text);
#undef PART
}

/* A worker whose store can't be reached: it has no connection before its loop runs. */
static void lose_store(const struct policy *p, struct rate_shares **shares)
{
    struct str ids[POLICY_RULES_MAX];
    struct err e;

    err_clear(&e);
    rig_begin("redis://127.0.0.1:1/");
    rig_connect();
    for (size_t i = 0; i < p->n_rate_rules; i++)
        ids[i] = p->rate_rules[i].id;
    CU_ASSERT_FATAL(rate_shares_new(shares, 100, &e) && rate_shares_set(*shares, ids, p->n_rate_rules, &e));
    bench.context.valkey = rig.v;
    bench.context.settings.shares = *shares;
    bench.context.settings.fleet_size = 1;
}

static void check_row(const json_t *row)
{
    struct rate_shares *shares = NULL;
    struct policy *p = policy_case_compile(json_object_get(row, "policy"));
    json_t *answer = NULL;

    CU_ASSERT_FATAL(notify_bench_init(&bench, NULL) && notify_bench_publish_policy(&bench, p));
    if (json_is_true(json_object_get(row, "valkey")))
        lose_store(p, &shares);
    for (json_int_t i = json_integer_value(json_object_get(row, "before")); i >= 0; i--) {
        json_decref(answer);
        answer = notify_send(&bench, row);
    }
    const json_t *variables = json_object_get(answer, "variables"), *status = json_object_get(row, "status");
    CASE_CHECK(row, status == NULL || json_equal(status, json_object_get(variables, "status")));
    check_parts(row, case_str(variables, "rec"));
    json_decref(answer);
    notify_bench_release(&bench);
    if (shares == NULL)
        return;
    rig_end();
    rate_shares_free(&shares);
}

static void each_request_leaves_the_parts_of_its_row(void)
{
    json_t *rows = cases_load("tests/cases/record/parts.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row) check_row(row);
    json_decref(rows);
}

static void one_in_sixteen_limited_requests_names_its_subjects(void)
{
    json_t *rows = cases_load("tests/cases/record/parts.json");
    const json_t *row = json_array_get(rows, 1);
    size_t n_limited = 0, n_named = 0;

    CU_ASSERT_FATAL(notify_bench_init(&bench, NULL));
    CU_ASSERT_FATAL(notify_bench_publish_policy(&bench, policy_case_compile(json_object_get(row, "policy"))));
    while (n_limited < (size_t) 2 * COUNTS_SAMPLED_LIMITS) {
        json_t *answer = notify_send(&bench, row);
        struct rec rec;
        CU_ASSERT_FATAL(rec_parse(case_str(json_object_get(answer, "variables"), "rec"), &rec));
        bool limited = rec.decision == DECISION_RATE_LIMITED;
        CU_ASSERT(limited || rec.subjects.len == 0);
        n_limited += limited;
        n_named += rec.subjects.len > 0;
        json_decref(answer);
    }
    CU_ASSERT_EQUAL(n_named, 2);
    notify_bench_release(&bench);
    json_decref(rows);
}

/* --- Any request --- */

enum { ID_LEN = 64, HOSTILE_MAX = 8192, PATH_LEAST = 256, N_RANDOM = 1000 };

static struct request request;
static struct request_context context;
static struct policy policy;
static struct config_rule config_rules[POLICY_RULES_MAX];
static struct header_rule header_rules[POLICY_RULES_MAX];
static struct rate_rule rate_rules[POLICY_RULES_MAX];
static struct rate_subject subject;
static char ids[POLICY_RULES_MAX][ID_LEN + 1];
static char path[HOSTILE_MAX], user_agent[HOSTILE_MAX], host[HOSTILE_MAX], query[HOSTILE_MAX], method[HOSTILE_MAX], request_id[128];
static struct arena arena;

/* As many and as long ids as a policy can have. */
static void make_policy(void)
{
    policy = (struct policy){.config_rules = config_rules, .header_rules = header_rules, .rate_rules = rate_rules};
    for (size_t i = 0; i < POLICY_RULES_MAX; i++) {
        memset(ids[i], 'r', ID_LEN);
        ids[i][0] = (char) ('0' + i / 100);
        ids[i][1] = (char) ('0' + i / 10 % 10);
        ids[i][2] = (char) ('0' + i % 10);
        config_rules[i].id = header_rules[i].id = rate_rules[i].id = (struct str){ids[i], ID_LEN};
        rate_rules[i].n_key = 1;
        rate_rules[i].key[0] = (struct key_part){.kind = KEY_PART_HOST};
    }
}

static void take_rules(size_t n)
{
    request.config_hits.n = request.header_hits.n = (uint16_t) n;
    for (size_t i = 0; i < n; i++)
        request.config_hits.index[i] = request.header_hits.index[i] = (uint16_t) i;
    request.settings.block_rule = n > 0 ? (int) n - 1 : -1;
    request.limits.sampled = true;
    request.limits.n_notes = n < LIMIT_NOTES_MAX ? n : LIMIT_NOTES_MAX;
    request.limits.n_not_noted = n - request.limits.n_notes;
    for (size_t i = 0; i < request.limits.n_notes; i++)
        request.limits.notes[i] = (struct limit_note){.rule = &rate_rules[i], .letters = "fcl", .n_letters = 3, .subject = &subject};
    request.limits.counts.n = n < POLICY_COUNTING_RULES_MAX ? (uint16_t) n : POLICY_COUNTING_RULES_MAX;
    request.verdict.rate_rule = request.limits.n_notes > 0 ? &rate_rules[request.limits.n_notes - 1] : NULL;
}

/* A request of these texts, its host and method as sent, too. */
static void request_of(struct str path_text, struct str agent, struct str host_text, struct str query_text, struct str method_text)
{
    static struct header items[2];

    request = (struct request){.context = &context, .policy = &policy, .has_settings = true};
    items[0] = (struct header){.name = STR("host"), .value = host_text};
    items[1] = (struct header){.name = STR("user-agent"), .value = agent};
    request.headers = (struct headers){.items = items, .n = 2};
    request.args.method = method_text;
    request.args.url = path_text;
    request.args.id = (struct str){request_id, sizeof request_id};
    CU_ASSERT_FATAL(expr_facts_begin(&request.view.facts, &arena));
    request.view.facts.headers = &request.headers;
    request.view.facts.host = host_text;
    request.view.facts.query = query_text;
    request.view.facts.viewer.country = STR("DE");
    request.view.facts.viewer.has_asnum = true;
    request.view.facts.viewer.asnum = UINT32_MAX;
    request.view.facts.viewer.ja4 = STR("t13d1516h2_8daaf6152771_02713d6af862");
}

/* Every list's items, those that have no room as their number, and with them all there were. */
static size_t n_items(struct str list, bool *decided)
{
    struct rec_item item;
    uint64_t n_left_out;
    size_t n = 0;

    *decided = false;
    for (; rec_next(&list, &item, &n_left_out); n++)
        *decided = *decided || item.decided;
    return n + n_left_out;
}

static void check_whole(size_t n_rules)
{
    static const char client[] = "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff";
    char storage[REC_MAX];
    struct buf b;
    struct rec rec;
    bool decided;

    buf_init(&b, storage, sizeof storage);
    record_part_put(&b, &request, STR(client));
    CU_ASSERT_FATAL(!b.full && b.len <= REC_MAX && rec_parse(buf_str(&b), &rec));
    CU_ASSERT(str_eq(rec.client_ip, STR(client)) && str_eq(rec.request_id, request.args.id) && str_eq(rec.asnum, STR("4294967295")));
    CU_ASSERT(n_items(rec.config_rules, &decided) == n_rules && decided == (n_rules > 0));
    CU_ASSERT(n_items(rec.limits, &decided) == n_rules && decided == (n_rules > 0));
    CU_ASSERT(n_items(rec.header_rules, &decided) == n_rules && !decided);
    CU_ASSERT(n_items(rec.subjects, &decided) == request.limits.n_notes && n_items(rec.counted, &decided) == request.limits.counts.n);
    CU_ASSERT(request.args.url.len < PATH_LEAST || rec.path.len >= PATH_LEAST);
    arena_reset(&arena);
}

static int set_up(void)
{
    arena_init(&arena, 65536, 0);
    make_policy();
    memset(request_id, 'i', sizeof request_id);
    return rig_set_up();
}

static int tear_down(void)
{
    arena_release(&arena);
    return rig_tear_down();
}

#define ALL(text) ((struct str){text, sizeof text})

static void the_longest_parts_leave_room_for_a_path(void)
{
    static const char fills[] = {1, '"', '\\', ' ', '-', 'x', (char) 0xff};
    size_t at = 0;

    for (size_t i = 0; i < REC_QUERY_KEYS; i++)
        at += (size_t) snprintf(query + at, sizeof query - at, "%02zu%062d=&", i, 0);
    for (size_t i = 0; i < sizeof fills; i++) {
        memset(path, fills[i], sizeof path);
        path[0] = '/';
        memset(user_agent, fills[i], sizeof user_agent);
        memset(host, fills[i], sizeof host);
        memset(method, fills[i], sizeof method);
        request_of(ALL(path), ALL(user_agent), ALL(host), (struct str){query, at}, ALL(method));
        take_rules(POLICY_RULES_MAX);
        check_whole(POLICY_RULES_MAX);
        request_of(ALL(path), STR_NONE, ALL(host), STR_NONE, ALL(method));
        take_rules(1);
        check_whole(1);
    }
}

static uint64_t random_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Runs of plain and of any bytes. */
static struct str random_text(char *text, uint64_t *seed)
{
    size_t len = random_next(seed) % 3 == 0 ? random_next(seed) % HOSTILE_MAX : random_next(seed) % 300;
    for (size_t i = 0; i < len; i++)
        text[i] = (char) (random_next(seed) % 4 == 0 ? random_next(seed) : 'a' + random_next(seed) % 26);
    return (struct str){text, len};
}

static void whatever_is_written_reads_back(void)
{
    uint64_t seed = 20260131;

    for (size_t i = 0; i < N_RANDOM; i++) {
        struct str target = random_text(path, &seed);
        path[0] = '/';
        if (target.len == 0)
            target.len = 1;
        size_t question = str_find_byte(target, '?');
        request_of(str_sub(target, 0, question), random_text(user_agent, &seed), random_text(host, &seed), random_text(query, &seed),
                   random_text(method, &seed));
        size_t n = random_next(&seed) % (POLICY_RULES_MAX + 1);
        take_rules(n);
        check_whole(n);
    }
}

void test_record_part_register(void)
{
    CU_pSuite s = CU_add_suite("record_part", set_up, tear_down);
    CU_add_test(s, "each request leaves the parts of its row", each_request_leaves_the_parts_of_its_row);
    CU_add_test(s, "one in sixteen limited requests names its subjects", one_in_sixteen_limited_requests_names_its_subjects);
    CU_add_test(s, "the longest parts leave room for a path", the_longest_parts_leave_room_for_a_path);
    CU_add_test(s, "whatever is written reads back, with the rule that decided", whatever_is_written_reads_back);
}
