/* A Valkey that has lost the script: the call is sent again with its source, once, within its deadline. */
#include <CUnit/CUnit.h>

#include "tests/unit/fake_valkey.h"
#include "tests/unit/valkey_rig.h"

static struct fake_valkey fake;
static struct rig_call many[60];

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

static void noscript_once(void)
{
    struct rig_call c = {0};

    begin();
    fake.n_noscript = 1;
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 2, 1), STORE_ANSWERED);
    CU_ASSERT_EQUAL(fake.n_eval, 1);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.n_noscript), 1);
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 2, 1), STORE_ANSWERED);
    CU_ASSERT_EQUAL(fake.n_load, 2); /* at first, and again: what EVAL has loaded may be evicted */
    CU_ASSERT_EQUAL(fake.n_eval, 1);
    CU_ASSERT_EQUAL(fake.n_charge, 2);
    rig_end();
}

static void noscript_of_many(void)
{
    begin();
    fake.n_noscript = 50;
    for (size_t i = 0; i < 60; i++)
        CU_ASSERT_TRUE(rig_charge(&many[i], 1, 1));
    run_until_n_done(60);
    CU_ASSERT_EQUAL(rig_count(STORE_ANSWERED), 60);
    CU_ASSERT_EQUAL(fake.n_eval, 50);
    CU_ASSERT_EQUAL(fake.n_load, 2);
    rig_end();
}

static void noscript_always(void)
{
    struct rig_call c = {0};

    begin();
    fake.n_noscript = 1;
    fake.eval = "-NOSCRIPT still not there\r\n";
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 2, 1), STORE_ERROR);
    CU_ASSERT_EQUAL(fake.n_eval, 1);
    CU_ASSERT_EQUAL(atomic_load(&rig.node.breaker.n_failures), 1);
    rig_end();
}

static void noscript_keeps_the_deadline(void)
{
    struct rig_call first = {0}, second = {0};

    begin();
    fake.n_noscript = 1;
    fake.eval = fake.load = "";
    CU_ASSERT_TRUE(rig_charge(&first, 1, 1));
    rig_pass_ms(60);
    CU_ASSERT_TRUE(rig_charge(&second, 1, 2));
    rig_run_until(rig_is_done, &second);
    CU_ASSERT_EQUAL(second.outcome, STORE_ANSWERED);
    CU_ASSERT_EQUAL(first.n_done, 0);
    rig_pass_ms(40);
    rig_run_until(rig_is_done, &first);
    CU_ASSERT_EQUAL(first.outcome, STORE_TIMEOUT);
    rig_end();
}

static void late_noscript_is_ignored(void)
{
    struct rig_call late = {0}, next = {0};

    begin();
    fake.charge = "";
    CU_ASSERT_TRUE(rig_charge(&late, 1, 1));
    rig_pass_ms(100);
    rig_run_until(rig_is_done, &late);
    fake.charge = NULL;
    fake_valkey_say(&fake, STR("-NOSCRIPT x\r\n"));
    CU_ASSERT_EQUAL(rig_charge_and_wait(&next, 1, 1), STORE_ANSWERED);
    CU_ASSERT_EQUAL(fake.n_eval, 0);
    rig_end();
}

void test_valkey_noscript_register(void)
{
    CU_pSuite s = CU_add_suite("valkey_noscript", rig_set_up, rig_tear_down);
    CU_add_test(s, "a script that is not there is sent with the call, and loaded again", noscript_once);
    CU_add_test(s, "calls that find no script at the same time load it once", noscript_of_many);
    CU_add_test(s, "a server that never finds the script is an error, not a loop", noscript_always);
    CU_add_test(s, "a call that is sent again as EVAL keeps its deadline", noscript_keeps_the_deadline);
    CU_add_test(s, "a call whose time is up is not sent again when the script was not there", late_noscript_is_ignored);
}
