/* When a connection to a scripted Valkey is not to be trusted any more: an answer in the wrong place, and silence. */
#include <CUnit/CUnit.h>

#include "tests/unit/fake_valkey.h"
#include "tests/unit/valkey_rig.h"

#define OK_VERDICT "$31\r\n1700000000000 1 3 0 12000000000\r\n"

static struct fake_valkey fake;
static struct rig_call calls[2 * BREAKER_FAILURES];

static void begin(void)
{
    memset(calls, 0, sizeof(calls));
    rig_begin_at(&fake, false, "", "");
    rig_connect();
    rig_run_until_ready();
}

static bool fake_saw_three(void *ctx)
{
    (void)ctx;
    return fake.n_charge == 3;
}

static void answer_that_shifts_the_others(void)
{
    begin();
    fake.charge = "";
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_TRUE(rig_charge(&calls[i], 1, (uint8_t)i));
    rig_run_until(fake_saw_three, NULL);
    fake_valkey_say(&fake, STR("+OK\r\n$30\r\n1700000000000 0 0 9000 600000\r\n" OK_VERDICT));
    rig_run_until(rig_is_done, &calls[2]);
    CU_ASSERT_EQUAL(calls[0].outcome, STORE_MALFORMED);
    CU_ASSERT_EQUAL(calls[1].outcome, STORE_LOST);
    CU_ASSERT_EQUAL(calls[2].outcome, STORE_LOST);
    CU_ASSERT_TRUE(rig_trouble_has("unreadable"));
    rig_end();
}

static void another_worker_keeps_the_breaker_closed(void)
{
    begin();
    fake.charge = "";
    for (size_t i = 0; i < BREAKER_FAILURES; i++) {
        CU_ASSERT_EQUAL(fake.n_accepted, 1);
        CU_ASSERT_TRUE(rig_charge(&calls[i], 1, 1));
        breaker_success(&rig.node.breaker);
        rig_pass_ms(100);
        rig_run_until(rig_is_done, &calls[i]);
        CU_ASSERT_EQUAL(calls[i].outcome, STORE_TIMEOUT);
    }
    CU_ASSERT_FALSE(breaker_is_open(&rig.node.breaker));
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.connected), 0);
    CU_ASSERT_TRUE(rig_trouble_has("no answer within 100 ms"));
    fake.charge = NULL;
    rig_run_until_ready();
    CU_ASSERT_EQUAL(fake.n_accepted, 2);
    CU_ASSERT_EQUAL(rig_charge_and_wait(&calls[0], 1, 1), STORE_ANSWERED);
    rig_end();
}

/* Each answer is late, but there is one: another connection would not be quicker. */
static void late_answers_keep_the_connection(void)
{
    begin();
    fake.charge = "";
    for (size_t i = 0; i < 2 * BREAKER_FAILURES; i++) {
        struct rig_call *c = &calls[i];
        CU_ASSERT_TRUE(rig_charge(c, 1, 1));
        rig_pass_ms(100);
        rig_run_until(rig_is_done, c);
        fake_valkey_say(&fake, STR(OK_VERDICT));
        rig_run_for_ms(20);
        breaker_success(&rig.node.breaker);
    }
    CU_ASSERT_EQUAL(rig_count(STORE_TIMEOUT), 2 * BREAKER_FAILURES);
    CU_ASSERT_EQUAL(fake.n_accepted, 1);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.connected), 1);
    rig_end();
}

void test_valkey_trust_register(void)
{
    CU_pSuite s = CU_add_suite("valkey_trust", rig_set_up, rig_tear_down);
    CU_add_test(s, "after an answer of another shape no call gets what may be another's", answer_that_shifts_the_others);
    CU_add_test(s, "a silent connection is replaced also while other workers' answers keep the breaker closed",
                another_worker_keeps_the_breaker_closed);
    CU_add_test(s, "a connection whose answers are only late is kept", late_answers_keep_the_connection);
}
