/* Challenges of the doctor, and the request that redeems one. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "spoa/doctor/page.h"
#include "tests/unit/cases.h"
#include "tests/unit/notify.h"

#define NONCE "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffff"

static struct challenges challenges;
static struct notify_bench bench;

static bool redeem(const char *header, uint64_t now_ms)
{
    char proof[CHALLENGE_PROOF_HEX];
    return challenges_redeem(&challenges, str_of(header), now_ms, proof);
}

/* The header of nonce and name. */
static const char *header_of(const struct challenge *c)
{
    static char header[CHALLENGE_HEADER_MAX];
    snprintf(header, sizeof header, NONCE ",%.32s", c->name);
    return header;
}

/* NAME and KEY in text become the challenge's, OTHER and NONCE constants. */
static void fill_in(struct str text, const struct challenge *c, struct buf *out)
{
    const struct {
        struct str word, value;
    } words[] = {{STR("NONCE"), STR(NONCE)}, {STR("OTHER"), STR(OTHER)}, {STR("NAME"), {c->name, CHALLENGE_HEX}}, {STR("KEY"), {c->key, CHALLENGE_HEX}}};
    while (text.len > 0) {
        size_t i = 0;
        while (i < 4 && !str_starts(text, words[i].word))
            i++;
        buf_put(out, i < 4 ? words[i].value : str_sub(text, 0, 1));
        text = str_sub(text, i < 4 ? words[i].word.len : 1, text.len);
    }
}

static void only_a_header_that_names_the_challenge_redeems_it(void)
{
    json_t *rows = cases_load("tests/cases/doctor/headers.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        struct challenge c;
        char storage[1024], proof[CHALLENGE_PROOF_HEX], wanted[CHALLENGE_PROOF_HEX];
        struct buf header;
        challenges_init(&challenges);
        CU_ASSERT_FATAL(challenges_issue(&challenges, 1000, &c));
        buf_init(&header, storage, sizeof storage);
        fill_in(case_str(row, "header"), &c, &header);
        const bool ok = challenges_redeem(&challenges, buf_str(&header), 1000, proof);
        CASE_CHECK(row, ok == json_is_true(json_object_get(row, "ok")));
        if (ok)
            CASE_CHECK(row, challenge_prove(&c, NONCE, wanted) && memcmp(proof, wanted, sizeof wanted) == 0);
        CASE_CHECK(row, challenges_outstanding(&challenges) == !ok);
        challenges_release(&challenges);
    }
    json_decref(rows);
}

static void a_challenge_is_used_up_by_the_first_request(void)
{
    struct challenge c;
    challenges_init(&challenges);
    CU_ASSERT_FALSE(challenges_outstanding(&challenges));
    CU_ASSERT_FATAL(challenges_issue(&challenges, 1000, &c));
    CU_ASSERT_TRUE(challenges_outstanding(&challenges));
    CU_ASSERT_TRUE(redeem(header_of(&c), 1001));
    CU_ASSERT_FALSE(challenges_outstanding(&challenges));
    CU_ASSERT_FALSE(redeem(header_of(&c), 1002));
    challenges_release(&challenges);
}

static void a_challenge_expires_and_then_no_request_has_to_look(void)
{
    struct challenge c;
    challenges_init(&challenges);
    CU_ASSERT_FATAL(challenges_issue(&challenges, 1000, &c));
    CU_ASSERT_FALSE(redeem("", 1000 + CHALLENGE_VALID_MS - 1));
    CU_ASSERT_TRUE(challenges_outstanding(&challenges));
    CU_ASSERT_FALSE(redeem("", 1000 + CHALLENGE_VALID_MS));
    CU_ASSERT_FALSE(challenges_outstanding(&challenges));
    CU_ASSERT_FATAL(challenges_issue(&challenges, 1000, &c));
    CU_ASSERT_FALSE(redeem(header_of(&c), 1000 + CHALLENGE_VALID_MS));
    CU_ASSERT_FATAL(challenges_issue(&challenges, 1000, &c));
    CU_ASSERT_TRUE(redeem(header_of(&c), 1000 + CHALLENGE_VALID_MS - 1));
    challenges_release(&challenges);
}

static void beyond_the_most_that_are_kept_the_oldest_goes(void)
{
    struct challenge first, second, c;
    challenges_init(&challenges);
    CU_ASSERT_FATAL(challenges_issue(&challenges, 1, &first) && challenges_issue(&challenges, 2, &second));
    for (uint64_t i = 2; i < CHALLENGES_MAX + 1; i++)
        CU_ASSERT_FATAL(challenges_issue(&challenges, 1 + i, &c));
    CU_ASSERT_FALSE(redeem(header_of(&first), 100));
    CU_ASSERT_TRUE(redeem(header_of(&second), 100));
    CU_ASSERT_TRUE(redeem(header_of(&c), 100));
    challenges_release(&challenges);
}

static void no_two_challenges_share_a_name_or_key(void)
{
    struct challenge a, b;
    challenges_init(&challenges);
    CU_ASSERT_FATAL(challenges_issue(&challenges, 1, &a) && challenges_issue(&challenges, 1, &b));
    CU_ASSERT_NOT_EQUAL(memcmp(a.name, b.name, CHALLENGE_HEX), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(a.key, b.key, CHALLENGE_HEX), 0);
    CU_ASSERT_NOT_EQUAL(memcmp(a.name, a.key, CHALLENGE_HEX), 0);
    challenges_release(&challenges);
}

/* --- the step --- */

static json_t *ask(const char *header)
{
    json_t *row = json_pack("{s:{s:s, s:{s:[[s,s],[s,s]]}}}", "args", "url", "/admin", "headers", "headers", "host", "a.example", "edge-doctor", header);
    json_t *answer = notify_send(&bench, row);
    json_decref(row);
    CU_ASSERT_PTR_NOT_NULL_FATAL(answer);
    return answer;
}

static json_int_t status_of(const char *header)
{
    json_t *answer = ask(header);
    const json_int_t status = json_integer_value(json_object_get(json_object_get(answer, "variables"), "status"));
    json_decref(answer);
    return status;
}

static void a_request_with_a_live_challenge_is_answered(const char *policy_file)
{
    struct challenge c;
    const struct challenge *all[] = {NULL, &c};
    unsigned by = 9;
    challenges_init(&challenges);
    CU_ASSERT_FATAL(notify_bench_init(&bench, policy_file));
    bench.context.settings.challenges = &challenges;
    bench.context.settings.agent_index = 1;
    CU_ASSERT_FATAL(challenges_issue(&challenges, bench.now_us / 1000, &c));
    json_t *answer = ask(header_of(&c)), *variables = json_object_get(answer, "variables");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(variables, "status")), 400);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(variables, "ctype")), "application/json");
    CU_ASSERT_EQUAL(doctor_proof_read(case_str(variables, "body"), all, 2, NONCE, &by), DOCTOR_PROOF_GOOD);
    CU_ASSERT_EQUAL(by, 1);
    json_decref(answer);
    CU_ASSERT_NOT_EQUAL(status_of(header_of(&c)), 400);
    notify_bench_release(&bench);
    challenges_release(&challenges);
}

static void the_agent_answers_a_live_challenge_itself_whatever_the_policy(void)
{
    a_request_with_a_live_challenge_is_answered("tests/cases/request/policy.json");
}

static void the_agent_answers_a_live_challenge_without_any_policy(void)
{
    a_request_with_a_live_challenge_is_answered(NULL);
}

static void a_request_without_a_live_challenge_goes_its_ordinary_way(void)
{
    struct challenge c;
    challenges_init(&challenges);
    CU_ASSERT_FATAL(notify_bench_init(&bench, "tests/cases/request/policy.json"));
    CU_ASSERT_EQUAL(status_of(NONCE "," OTHER), 403);
    bench.context.settings.challenges = &challenges;
    CU_ASSERT_EQUAL(status_of(NONCE "," OTHER), 403);
    CU_ASSERT_FATAL(challenges_issue(&challenges, bench.now_us / 1000, &c));
    CU_ASSERT_EQUAL(status_of(NONCE "," OTHER), 403);
    bench.now_us += CHALLENGE_VALID_MS * 1000;
    CU_ASSERT_EQUAL(status_of(header_of(&c)), 403);
    CU_ASSERT_FALSE(challenges_outstanding(&challenges));
    notify_bench_release(&bench);
    challenges_release(&challenges);
}

void test_challenge_register(void)
{
    CU_pSuite s = CU_add_suite("challenge", NULL, NULL);
    CU_add_test(s, "only a header that names the challenge redeems it", only_a_header_that_names_the_challenge_redeems_it);
    CU_add_test(s, "security: a challenge is used up by the first request", a_challenge_is_used_up_by_the_first_request);
    CU_add_test(s, "a challenge expires, and then no request has to look", a_challenge_expires_and_then_no_request_has_to_look);
    CU_add_test(s, "beyond the most that are kept the oldest goes", beyond_the_most_that_are_kept_the_oldest_goes);
    CU_add_test(s, "security: no two challenges share a name or key", no_two_challenges_share_a_name_or_key);
    CU_add_test(s, "the agent answers a live challenge itself, whatever the policy", the_agent_answers_a_live_challenge_itself_whatever_the_policy);
    CU_add_test(s, "the agent answers a live challenge without any policy", the_agent_answers_a_live_challenge_without_any_policy);
    CU_add_test(s, "security: a request without a live challenge goes its ordinary way", a_request_without_a_live_challenge_goes_its_ordinary_way);
}
