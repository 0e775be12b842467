/* The doctor: the page an agent shows, the proof, and what is concluded from what was seen. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "spoa/doctor/diagnose.h"
#include "tests/unit/cases.h"

#define NONCE "0123456789abcdef0123456789abcdef"
#define OTHER "ffffffffffffffffffffffffffffffff"

/* --- pages --- */

/* The page of an agent that is well, with row's members in place of its own. */
static json_t *page_json(const json_t *changes)
{
    json_t *page = json_pack("{s:i, s:s, s:s, s:i, s:s, s:i, s:i, s:i, s:i, s:{s:s, s:b, s:s, s:i}, s:{s:s, s:s}}", "agent", 0, "state", "ready", "reason", "",
                             "policy_version", 3, "policy_trouble", "", "healthchecks", 1000, "notifies", 100, "contract_mismatches", 0, "clock_ms", 1,
                             "store", "kind", "embedded", "connected", 1, "trouble", "", "clock_skew_ms", 0, "challenge", "name", OTHER, "key", NONCE);
    CU_ASSERT_PTR_NOT_NULL_FATAL(page);
    json_object_update(page, (json_t *) (uintptr_t) changes);
    return page;
}

static bool read_json(json_t *page, struct doctor_page *out, struct err *e)
{
    char *text = json_dumps(page, 0);
    err_clear(e);
    const bool ok = doctor_page_read(str_of(text), out, e);
    free(text);
    return ok;
}

static void what_an_agent_writes_is_what_the_doctor_reads(void)
{
    char storage[DOCTOR_PAGE_MAX], again_storage[DOCTOR_PAGE_MAX];
    struct buf body, again;
    struct err e;
    struct doctor_page read, page = {
        .agent = 1,
        .state = "no_policy",
        .reason = "no policy has been loaded",
        .policy_version = -3,
        .policy_trouble = "fault 1 of 2: /a\"b: is \\wrong",
        .n_healthchecks = INT64_MAX,
        .n_notifies = 4,
        .n_contract_mismatches = 5,
        .clock_ms = 1796022859033,
        .store = {.kind = "standalone", .trouble = "refused", .clock_skew_ms = -7},
    };
    memcpy(page.challenge.name, OTHER, CHALLENGE_HEX);
    memcpy(page.challenge.key, NONCE, CHALLENGE_HEX);
    err_clear(&e);
    buf_init(&body, storage, sizeof storage);
    buf_init(&again, again_storage, sizeof again_storage);
    doctor_page_put(&body, &page);
    CU_ASSERT_FATAL(!body.full && doctor_page_read(buf_str(&body), &read, &e));
    doctor_page_put(&again, &read);
    CU_ASSERT_TRUE(str_eq(buf_str(&body), buf_str(&again)));
    CU_ASSERT_EQUAL(read.store.clock_skew_ms, -7);
    CU_ASSERT_STRING_EQUAL(read.policy_trouble, page.policy_trouble);
}

static void the_longest_texts_fit_the_page(void)
{
    static struct doctor_page page;
    char *storage = malloc(DOCTOR_PAGE_MAX);
    struct buf body;
    memset(&page, 0xff, sizeof page);
    memset(page.state, 1, sizeof page.state - 1);
    memset(page.reason, 1, sizeof page.reason - 1);
    memset(page.policy_trouble, 1, sizeof page.policy_trouble - 1);
    memset(page.store.kind, 1, sizeof page.store.kind - 1);
    memset(page.store.trouble, 1, sizeof page.store.trouble - 1);
    memset(&page.challenge, 1, sizeof page.challenge);
    page.state[DOCTOR_WORD_MAX - 1] = page.store.kind[DOCTOR_WORD_MAX - 1] = '\0';
    page.reason[DOCTOR_TEXT_MAX - 1] = page.store.trouble[DOCTOR_TEXT_MAX - 1] = page.policy_trouble[DOCTOR_TROUBLE_MAX - 1] = '\0';
    page.store.connected = false;
    buf_init(&body, storage, DOCTOR_PAGE_MAX);
    doctor_page_put(&body, &page);
    CU_ASSERT_FALSE(body.full);
    free(storage);
}

static void pages_with_a_fault_are_refused_at_its_place(void)
{
    json_t *rows = cases_load("tests/cases/doctor/pages.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const json_t *changes = json_object_get(row, "page");
        struct doctor_page page;
        struct err e;
        json_t *whole = changes != NULL ? page_json(changes) : NULL;
        err_clear(&e);
        CASE_CHECK(row, !(whole != NULL ? read_json(whole, &page, &e) : doctor_page_read(case_str(row, "body"), &page, &e)));
        if (whole != NULL)
            CASE_CHECK_GOT(row, str_eq(str_of(e.path), case_str(row, "path")), str_of(e.path));
        else
            CASE_CHECK_GOT(row, e.code != ERR_NONE && str_find(str_of(e.text), case_str(row, "error")) != SIZE_MAX, str_of(e.text));
        json_decref(whole);
    }
    json_decref(rows);
}

static void members_of_newer_agents_are_skipped_and_texts_become_printable(void)
{
    struct doctor_page page;
    struct err e;
    json_t *whole = json_pack("{s:s, s:s, s:s}", "reason", "a\x1b[2J\r\n\xc3\xa4z", "future", "x", "state", "a state of a name that is longer than any of today");
    json_t *document = page_json(whole);
    CU_ASSERT_TRUE(read_json(document, &page, &e));
    CU_ASSERT_STRING_EQUAL(page.reason, "a?[2J????z");
    CU_ASSERT_STRING_EQUAL(page.state, "a state of a name that ");
    json_decref(document);
    json_decref(whole);
}

/* --- diagnoses --- */

/* "refused" and the like, or [status, text] of an answer. */
static void answer_of(const json_t *from, const char *at, struct doctor_answer *out)
{
    static const char *const words[] = {"answered", "refused", "silent", "closed", "no_http", "failed"};
    *out = (struct doctor_answer){.reach = DOCTOR_ANSWERED};
    snprintf(out->at, sizeof out->at, "%s", at);
    snprintf(out->trouble, sizeof out->trouble, "no such name");
    for (size_t i = 0; i < sizeof words / sizeof words[0] && json_is_string(from); i++)
        if (strcmp(words[i], json_string_value(from)) == 0)
            out->reach = (enum doctor_reach) i;
    if (json_is_array(from)) {
        out->status = (unsigned) json_integer_value(json_array_get(from, 0));
        snprintf(out->text, sizeof out->text, "%s", json_string_value(json_array_get(from, 1)));
    }
}

static void agent_of(const json_t *row, const json_t *from, size_t i, struct doctor_agent *out)
{
    char at[32];
    struct err e;
    snprintf(at, sizeof at, "127.0.0.1:%zu", 9090 + i);
    *out = (struct doctor_agent){.clock_off_ms = json_integer_value(json_object_get(from, "clock_off_ms"))};
    answer_of(from, at, &out->answer);
    if (!json_is_object(from))
        return;
    json_t *page = page_json(NULL);
    json_object_set_new(page, "agent", json_integer((json_int_t) i));
    json_object_update(page, (json_t *) (uintptr_t) from);
    out->has_page = CASE_CHECK_GOT(row, read_json(page, &out->before, &e), str_of(e.text));
    json_object_update(page, json_object_get(from, "after"));
    CASE_CHECK_GOT(row, read_json(page, &out->after, &e), str_of(e.text));
    json_decref(page);
}

static void evidence_of(const json_t *row, struct doctor_evidence *out)
{
    const struct str proof = case_str(row, "proof");
    json_t *agents = json_object_get(row, "agents"), *ready = json_pack("[i,s]", 200, "ready"), *health = json_object_get(row, "health"), *agent;
    size_t i;
    *out = (struct doctor_evidence){.n_agents = json_array_size(agents), .fails_open = json_is_true(json_object_get(row, "open")),
                                     .behind_balancers = json_is_true(json_object_get(row, "balancers"))};
    CU_ASSERT_FATAL(out->n_agents <= DOCTOR_AGENTS_MAX);
    json_array_foreach(agents, i, agent)
        agent_of(row, agent, i, &out->agents[i]);
    answer_of(health != NULL ? health : ready, "127.0.0.1:8081", &out->health);
    answer_of(json_object_get(row, "front"), "127.0.0.1:8080", &out->front);
    out->proof = str_eq(proof, STR("good")) ? DOCTOR_PROOF_GOOD : str_eq(proof, STR("false")) ? DOCTOR_PROOF_FALSE : DOCTOR_PROOF_NONE;
    out->proven_by = (unsigned) json_integer_value(json_object_get(row, "by"));
    json_decref(ready);
}

static void each_state_of_an_edge_gets_the_words_of_its_row(void)
{
    json_t *rows = cases_load("tests/cases/doctor/diagnoses.json"), *row, *part;
    size_t i, j;
    json_array_foreach(rows, i, row)
    {
        static struct doctor_evidence evidence;
        static struct doctor_report report;
        const json_t *wrong = json_object_get(row, "wrong");
        evidence_of(row, &evidence);
        doctor_diagnose(&evidence, &report);
        CASE_CHECK(row, report.n <= DOCTOR_CHECKS_MAX && report.n_wrong == json_object_size(wrong));
        for (size_t k = 0; k < report.n; k++) {
            const struct doctor_check *check = &report.checks[k];
            const json_t *parts = json_object_get(wrong, check->name);
            CASE_CHECK_GOT(row, check->ok == (parts == NULL) && strlen(check->text) < sizeof check->text - 1, str_of(check->text));
            json_array_foreach(parts, j, part)
                CASE_CHECK_GOT(row, strstr(check->text, json_string_value(part)) != NULL, str_of(check->text));
        }
    }
    json_decref(rows);
}

static void a_proof_is_good_only_from_the_agent_whose_challenge_it_answers(void)
{
    const struct challenge a = {.name = {1}, .key = {2}}, b = {.name = {3}, .key = {4}}, *all[] = {&a, &b, NULL};
    char proof[CHALLENGE_PROOF_HEX], storage[DOCTOR_PROOF_PAGE_MAX];
    CU_ASSERT_FATAL(challenge_prove(&b, NONCE, proof));
    for (unsigned i = 0; i < 4; i++) {
        struct buf body;
        unsigned by = 9;
        buf_init(&body, storage, sizeof storage);
        doctor_proof_put(&body, proof, i);
        CU_ASSERT_EQUAL(doctor_proof_read(buf_str(&body), all, 3, NONCE, &by), i == 1 ? DOCTOR_PROOF_GOOD : DOCTOR_PROOF_FALSE);
        CU_ASSERT_EQUAL(by, i == 1 ? 1 : 9);
        CU_ASSERT_NOT_EQUAL(doctor_proof_read(buf_str(&body), all, 3, OTHER, &by), DOCTOR_PROOF_GOOD);
    }
}

void test_doctor_register(void)
{
    CU_pSuite s = CU_add_suite("doctor", NULL, NULL);
    CU_add_test(s, "what an agent writes is what the doctor reads", what_an_agent_writes_is_what_the_doctor_reads);
    CU_add_test(s, "the longest texts fit the page", the_longest_texts_fit_the_page);
    CU_add_test(s, "pages with a fault are refused at its place", pages_with_a_fault_are_refused_at_its_place);
    CU_add_test(s, "members of newer agents are skipped, and texts become printable", members_of_newer_agents_are_skipped_and_texts_become_printable);
    CU_add_test(s, "each state of an edge gets the words of its row", each_state_of_an_edge_gets_the_words_of_its_row);
    CU_add_test(s, "security: a proof is good only from the agent whose challenge it answers",
                a_proof_is_good_only_from_the_agent_whose_challenge_it_answers);
}
