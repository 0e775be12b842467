/* Calls to a scripted Valkey: each ends exactly once and in time, whatever the server says or leaves unsaid. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "tests/unit/cases.h"
#include "tests/unit/fake_valkey.h"
#include "tests/unit/valkey_rig.h"

#define OK_VERDICT "$31\r\n1700000000000 1 3 0 12000000000\r\n"

enum { MANY = VALKEY_CALLS_MAX };

static struct fake_valkey fake;
static struct rig_call many[MANY];

static void begin(void)
{
    rig_begin_at(&fake, false, "", "");
    rig_connect();
    rig_run_until_ready();
}

static bool all_done(void *ctx)
{
    return rig.n_done >= *(size_t *)ctx;
}

static void run_until_n_done(size_t n)
{
    rig_run_until(all_done, &n);
}

static void verdicts_come_back(void)
{
    struct rig_call c = {0};

    begin();
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 3, 1), STORE_ANSWERED);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_TRUE(c.calls[i].verdict.allowed);
        CU_ASSERT_EQUAL(c.calls[i].verdict.remaining, 4);
    }
    CU_ASSERT_EQUAL(rig_count(STORE_ANSWERED), 1);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.skew_ms), 250);
    rig_end();
}

static void answers_in_pieces(void)
{
    begin();
    fake.piece = 1;
    for (size_t i = 0; i < 20; i++)
        CU_ASSERT_TRUE(rig_charge(&many[i], 1 + i % RATE_CALLS_MAX, (uint8_t)i));
    run_until_n_done(20);
    CU_ASSERT_EQUAL(rig_count(STORE_ANSWERED), 20);
    for (size_t i = 0; i < 20; i++)
        CU_ASSERT_TRUE(many[i].calls[i % RATE_CALLS_MAX].verdict.allowed);
    rig_end();
}

static bool fake_saw_ten(void *ctx)
{
    (void)ctx;
    return fake.n_charge == 10;
}

static void a_turn_is_one_write(void)
{
    unsigned before;

    rig_begin_at(&fake, true, "", "");
    rig_connect();
    rig_run_until_ready();
    before = fake_valkey_segments(&fake);
    for (size_t i = 0; i < 10; i++)
        CU_ASSERT_TRUE(rig_charge(&many[i], 2, 1));
    rig_run_until(fake_saw_ten, NULL);
    CU_ASSERT_EQUAL(fake_valkey_segments(&fake), before + 1);
    run_until_n_done(10);
    rig_end();
}

/* More than the kernel's buffer takes at once. */
static void full_pool_is_served(void)
{
    struct rig_call one_more = {0};

    begin();
    for (size_t i = 0; i < MANY; i++)
        CU_ASSERT_TRUE_FATAL(rig_charge(&many[i], RATE_CALLS_MAX, (uint8_t)i));
    CU_ASSERT_FALSE(rig_charge(&one_more, 1, 1));
    CU_ASSERT_EQUAL(one_more.outcome, STORE_BUSY);
    run_until_n_done(MANY);
    CU_ASSERT_EQUAL(rig_count(STORE_ANSWERED), MANY);
    CU_ASSERT_EQUAL(one_more.n_done, 0);
    CU_ASSERT_EQUAL(rig_charge_and_wait(&one_more, 1, 1), STORE_ANSWERED);
    CU_ASSERT_FALSE(breaker_is_open(&rig.node.breaker));
    rig_end();
}

static void check_answer(const json_t *row)
{
    struct rig_call c = {0};
    const char *outcome = json_string_value(json_object_get(row, "outcome"));
    const bool connected = json_is_true(json_object_get(row, "connected"));

    begin();
    fake.charge = json_string_value(json_object_get(row, "answer"));
    c.calls[0].verdict.remaining = 77;
    CASE_CHECK(row, rig_charge_and_wait(&c, 1, 1) != STORE_ANSWERED);
    CASE_CHECK_GOT(row, strcmp(store_outcome_name(c.outcome), outcome) == 0, str_of(store_outcome_name(c.outcome)));
    CASE_CHECK(row, c.calls[0].verdict.remaining == 0); /* as rig_charge has left it */
    CASE_CHECK(row, (atomic_load(&rig.node.breaker.n_failures) == 1) == json_is_true(json_object_get(row, "failure")));
    CASE_CHECK(row, (atomic_load(&rig.counters.connected) == 1) == connected);
    if (!connected)
        CASE_CHECK(row, rig_trouble_has("unreadable"));
    fake.charge = NULL;
    rig_run_until_ready();
    CASE_CHECK(row, rig_charge_and_wait(&c, 2, 1) == STORE_ANSWERED);
    CASE_CHECK(row, atomic_load(&rig.node.breaker.n_failures) == 0);
    rig_end();
}

static void answer_rows(void)
{
    json_t *rows = cases_load("tests/cases/store/answers.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row) check_answer(row);
    json_decref(rows);
}

static void long_text_is_malformed(void)
{
    static char answer[2100];
    struct rig_call c = {0};

    begin();
    snprintf(answer, sizeof(answer), "$2000\r\n%-2000s\r\n", "1700000000250 1 4 0 1000");
    fake.charge = answer;
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_MALFORMED);
    fake.charge = NULL;
    rig_run_until_ready();
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    rig_end();
}

static void endless_answer_is_cut_off(void)
{
    static char answer[60000];
    struct rig_call c = {0};

    begin();
    snprintf(answer, sizeof(answer), "$1000000000\r\n%58000s", "");
    fake.charge = answer;
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_LOST);
    CU_ASSERT_TRUE(rig_trouble_has("over 16384 bytes"));
    fake.charge = NULL;
    rig_run_until_ready();
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    rig_end();
}

static bool is_down(void *ctx)
{
    (void)ctx;
    return atomic_load(&rig.counters.connected) == 0;
}

static void check_unasked(const char *said, const char *trouble)
{
    struct rig_call c = {0};

    begin();
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    fake_valkey_say(&fake, str_of(said));
    rig_run_until(is_down, NULL);
    CU_ASSERT_TRUE(rig_trouble_has(trouble));
    rig_run_until_ready();
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    rig_end();
}

static void unasked_answers(void)
{
    check_unasked("+OK\r\n", "unreadable");
    check_unasked(":1\r\n", "unreadable");
    check_unasked("$-1\r\n", "unreadable");
    check_unasked("$2\r\nhi\r\n", "unreadable");
    check_unasked("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", "unreadable");
    check_unasked("-ERR max number of clients reached\r\n", "max number of clients");
}

static void answer_and_one_more(void)
{
    struct rig_call c = {0};

    begin();
    fake.charge = OK_VERDICT OK_VERDICT;
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    rig_run_until(is_down, NULL);
    CU_ASSERT_TRUE(rig_trouble_has("unreadable"));
    rig_end();
}

static void late_answer_is_ignored(void)
{
    struct rig_call late = {0}, next = {0};

    begin();
    fake.charge = "";
    CU_ASSERT_TRUE(rig_charge(&late, 1, 1));
    rig_pass_ms(99);
    rig_run_for_ms(150);
    CU_ASSERT_EQUAL(late.n_done, 0);
    rig_pass_ms(1);
    rig_run_until(rig_is_done, &late);
    CU_ASSERT_EQUAL(late.outcome, STORE_TIMEOUT);
    fake.charge = NULL;
    CU_ASSERT_TRUE(rig_charge(&next, 1, 2));
    fake_valkey_say(&fake, STR("$25\r\n1700000000000 0 0 9000 60\r\n"));
    rig_run_until(rig_is_done, &next);
    CU_ASSERT_EQUAL(next.outcome, STORE_ANSWERED);
    CU_ASSERT_TRUE(next.calls[0].verdict.allowed);
    CU_ASSERT_EQUAL(late.n_done, 1);
    CU_ASSERT_EQUAL(late.calls[0].verdict.retry_after_ms, 0);
    CU_ASSERT_EQUAL(rig_count(STORE_TIMEOUT), 1);
    rig_end();
}

static void lost_in_mid_answer(void)
{
    begin();
    fake.charge = "$31\r\n17000";
    fake.n_charges_max = 1;
    for (size_t i = 0; i < 4; i++)
        CU_ASSERT_TRUE(rig_charge(&many[i], 1, 1));
    many[0].again = many[3].again = true;
    run_until_n_done(4);
    for (size_t i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(many[i].n_done, 1);
        CU_ASSERT_EQUAL(many[i].outcome, STORE_LOST);
    }
    CU_ASSERT_EQUAL(many[0].again_outcome, STORE_NOT_CONNECTED);
    CU_ASSERT_EQUAL(many[3].again_outcome, STORE_NOT_CONNECTED);
    CU_ASSERT_EQUAL(rig_count(STORE_LOST), 4);
    CU_ASSERT_EQUAL(atomic_load(&rig.node.breaker.n_failures), 4);
    rig_end();
}

static void freed_with_calls_in_flight(void)
{
    begin();
    fake.charge = "";
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_TRUE(rig_charge(&many[i], 1, 1));
    many[0].again = true;
    valkey_free(&rig.v);
    CU_ASSERT_PTR_NULL(rig.v);
    CU_ASSERT_EQUAL(rig_count(STORE_LOST), 3);
    CU_ASSERT_EQUAL(many[0].n_done + many[1].n_done + many[2].n_done, 3);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.connected), 0);
    rig_end();
}

static void not_connected_is_no_failure(void)
{
    struct rig_call c = {0};

    rig_begin_at(&fake, false, "", "");
    rig_connect();
    for (int i = 0; i < 2 * BREAKER_FAILURES; i++) {
        CU_ASSERT_FALSE(rig_charge(&c, 1, 1));
        CU_ASSERT_EQUAL(c.outcome, STORE_NOT_CONNECTED);
    }
    CU_ASSERT_EQUAL(atomic_load(&rig.node.breaker.n_failures), 0);
    rig_run_until_ready();
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    CU_ASSERT_EQUAL(c.n_done, 1);
    rig_end();
}

static void time_outs_replace_the_connection(void)
{
    struct rig_call c = {0};

    begin();
    fake.charge = "";
    for (size_t i = 0; i < BREAKER_FAILURES; i++)
        CU_ASSERT_TRUE(rig_charge(&many[i], 1, 1));
    rig_pass_ms(100);
    run_until_n_done(BREAKER_FAILURES);
    CU_ASSERT_EQUAL(rig_count(STORE_TIMEOUT), BREAKER_FAILURES);
    CU_ASSERT_TRUE(rig_trouble_has("no answer within 100 ms"));
    fake.charge = NULL;
    rig_run_until_ready();
    CU_ASSERT_EQUAL(fake.n_accepted, 2);
    CU_ASSERT_FALSE(rig_charge(&c, 1, 1));
    CU_ASSERT_EQUAL(c.outcome, STORE_BREAKER_OPEN);
    rig_pass_ms(1000);
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    CU_ASSERT_FALSE(breaker_is_open(&rig.node.breaker));
    rig_end();
}

static void another_worker_opens_the_breaker(void)
{
    struct rig_call c = {0};

    begin();
    fake.charge = "";
    CU_ASSERT_TRUE(rig_charge(&c, 1, 1));
    rig_pass_ms(100);
    rig_run_until(rig_is_done, &c);
    CU_ASSERT_EQUAL(fake.n_accepted, 1);
    for (int i = 0; i < BREAKER_FAILURES; i++)
        breaker_failure(&rig.node.breaker, rig.now_us);
    CU_ASSERT_FALSE(rig_charge(&c, 1, 1));
    CU_ASSERT_EQUAL(c.outcome, STORE_BREAKER_OPEN);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.connected), 0);
    rig_run_until_ready();
    CU_ASSERT_EQUAL(fake.n_accepted, 2);
    rig_end();
}

/* As after a fail-over: the name may lead to the new primary. */
static void demoted_primary_is_left(void)
{
    struct rig_call c = {0};

    begin();
    fake.charge = "-READONLY You can't write against a read only replica.\r\n";
    for (int i = 0; i < BREAKER_FAILURES; i++) {
        CU_ASSERT_EQUAL(fake.n_accepted, 1);
        CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ERROR);
    }
    CU_ASSERT_TRUE(rig_trouble_has("read-only replica"));
    fake.charge = NULL;
    rig_run_until_ready();
    CU_ASSERT_EQUAL(fake.n_accepted, 2);
    rig_pass_ms(1000);
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    rig_end();
}

void test_valkey_register(void)
{
    CU_pSuite s = CU_add_suite("valkey", rig_set_up, rig_tear_down);
    CU_add_test(s, "a charge comes back with its verdicts, and with the distance of the clocks", verdicts_come_back);
    CU_add_test(s, "answers that come byte by byte reach the calls they belong to", answers_in_pieces);
    CU_add_test(s, "the commands of one turn of the loop leave in one write", a_turn_is_one_write);
    CU_add_test(s, "a full pool of calls is answered though the kernel takes it in parts; one more is refused",
                full_pool_is_served);
    CU_add_test(s, "each wrong answer has its outcome, counts as it should, and writes no verdict", answer_rows);
    CU_add_test(s, "a text that is longer than any answer is malformed", long_text_is_malformed);
    CU_add_test(s, "an answer without end is cut off, so that a server cannot fill the memory",
                endless_answer_is_cut_off);
    CU_add_test(s, "an answer that nothing asked for ends the connection, not the process", unasked_answers);
    CU_add_test(s, "an answer too many in one read ends the connection after the right one was used",
                answer_and_one_more);
    CU_add_test(s, "an answer after the deadline is ignored and shifts nobody else's", late_answer_is_ignored);
    CU_add_test(s, "calls in flight are lost once each when the connection ends in mid-answer", lost_in_mid_answer);
    CU_add_test(s, "freeing the client tells the calls in flight", freed_with_calls_in_flight);
    CU_add_test(s, "a call without a connection fails at once and says nothing about the node",
                not_connected_is_no_failure);
    CU_add_test(s, "time-outs that open the breaker replace the connection", time_outs_replace_the_connection);
    CU_add_test(s, "a silent connection is replaced also when another worker has opened the breaker",
                another_worker_opens_the_breaker);
    CU_add_test(s, "a primary that has become a replica is left, so that the name can lead elsewhere",
                demoted_primary_is_left);
}
