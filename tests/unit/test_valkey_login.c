/* Logging in to a scripted Valkey, and every way of being refused. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "tests/unit/fake_valkey.h"
#include "tests/unit/valkey_rig.h"

static struct fake_valkey fake;

static void begin(void)
{
    rig_begin_at(&fake, false, "", "");
    rig_connect();
    rig_run_until_ready();
}

static bool is_down(void *ctx)
{
    (void)ctx;
    return atomic_load(&rig.counters.connected) == 0;
}

static bool has_failed(void *ctx)
{
    return atomic_load(&rig.counters.n_connect_failures) >= *(uint64_t *)ctx;
}

static void run_until_n_failures(uint64_t n)
{
    rig_run_until(has_failed, &n);
}

static void charge_is_answered(void)
{
    struct rig_call c = {0};

    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
}

static void check_login(const char *login, const char *rest, unsigned n_auth, const char *auth, const char *select)
{
    rig_begin_at(&fake, false, login, rest);
    rig_connect();
    CU_ASSERT_TRUE(rig_trouble_has("not connected yet"));
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.attempted), 0);
    rig_run_until_ready();
    CU_ASSERT_EQUAL(fake.n_auth, n_auth);
    CU_ASSERT_STRING_EQUAL(fake.last_auth, auth);
    CU_ASSERT_STRING_EQUAL(fake.last_select, select);
    CU_ASSERT_EQUAL(fake.n_load, 1);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.attempted), 1);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.n_connects), 1);
    CU_ASSERT_TRUE(rig_trouble_is_none());
    charge_is_answered();
    rig_end();
}

static void logins(void)
{
    check_login("", "", 0, "", "");
    check_login(":s3cret@", "", 1, "s3cret", "");
    check_login("edge:s3cret@", "?db=7", 1, "edge s3cret", "7");
    check_login("edge@", "?db=0", 1, "edge ", "");
    check_login("ed%20ge:s%3Acr%0D%0Aet@", "?db=7", 1, "ed ge s:cr\r\net", "7");
}

static void wrong_password_then_right(void)
{
    rig_begin_at(&fake, false, "edge:s3cret@", "");
    fake.auth = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    rig_connect();
    run_until_n_failures(2);
    CU_ASSERT_TRUE(rig_trouble_has("AUTH: WRONGPASS invalid username-password pair"));
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.attempted), 1);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.n_connects), 0);
    fake.auth = NULL;
    rig_run_until_ready();
    charge_is_answered();
    rig_end();
}

static void check_refused(const char *auth, const char *select, const char *load, const char *trouble)
{
    rig_begin_at(&fake, false, "edge:s3cret@", "?db=7");
    fake.auth = auth;
    fake.select = select;
    fake.load = load;
    rig_connect();
    run_until_n_failures(1);
    CU_ASSERT_TRUE(rig_trouble_has(trouble));
    CU_ASSERT_TRUE(rig_trouble_lacks("s3cret"));
    fake.auth = fake.select = fake.load = NULL;
    rig_run_until_ready();
    charge_is_answered();
    rig_end();
}

static void refusals(void)
{
    check_refused("+FINE\r\n", NULL, NULL, "AUTH was not answered with OK");
    check_refused("-ERR no user edge with s3cret\r\n", NULL, NULL, "AUTH: (a text that holds the password)");
    check_refused("-ERR \x1b[31m\xff\r\n", NULL, NULL, "AUTH: ERR ?[31m?");
    check_refused(NULL, "-ERR DB index is out of range\r\n", NULL, "SELECT: ERR DB index is out of range");
    check_refused(NULL, ":1\r\n", NULL, "SELECT was not answered with OK");
    check_refused(NULL, NULL, "-LOADING Valkey is loading the dataset in memory\r\n", "SCRIPT LOAD: LOADING");
    check_refused(NULL, NULL, "-ERR max number of clients reached\r\n", "SCRIPT LOAD: ERR max number");
    check_refused(NULL, NULL, "$40\r\n0123456789012345678901234567890123456789\r\n", "the script's SHA-1");
    check_refused(NULL, NULL, "*1\r\n:1\r\n", "unreadable");
    check_refused("?\r\n", NULL, NULL, "unreadable");
}

static void check_echo(const char *password, const char *echo)
{
    char login[640], answer[800];

    (void)snprintf(login, sizeof(login), "edge:%s@", password);
    (void)snprintf(answer, sizeof(answer), "-ERR unknown command 'AUTH', with args beginning with: 'edge' '%s' \r\n", echo);
    rig_begin_at(&fake, false, login, "");
    fake.auth = answer;
    rig_connect();
    run_until_n_failures(1);
    CU_ASSERT_TRUE(rig_trouble_has("AUTH: ERR unknown command 'AUTH'"));
    CU_ASSERT_TRUE(rig_trouble_lacks("s3cret"));
    rig_end();
}

/* As Valkey does it: at most 128 bytes of the arguments, line ends as blanks. */
static void repeated_words_are_not_shown(void)
{
    char password[201], echo[121];

    (void)snprintf(password, sizeof(password), "s3cret-word%0189d", 0);
    (void)snprintf(echo, sizeof(echo), "%.120s", password);
    check_echo(password, echo);
    check_echo("s3cret-word%0D%0Aand%20more", "s3cret-word  and more");
}

static void beginning_of_the_password_is_not_shown(void)
{
    rig_begin_at(&fake, false, ":s3cret-word-and-more@", "");
    fake.auth = "-ERR what is s3cret-word-and\r\n";
    rig_connect();
    run_until_n_failures(1);
    CU_ASSERT_TRUE(rig_trouble_has("AUTH: (a text that holds the password)"));
    rig_end();
}

static void long_refusal_is_cut(void)
{
    static char text[1200];
    char trouble[2048];

    rig_begin_at(&fake, false, ":s3cret@", "");
    snprintf(text, sizeof(text), "-ERR %01100d\r\n", 0);
    fake.auth = text;
    rig_connect();
    run_until_n_failures(1);
    valkey_trouble(rig.v, trouble, sizeof(trouble));
    CU_ASSERT_TRUE(strlen(trouble) < 300);
    rig_end();
}

static void check_load_forbidden(const char *answer)
{
    struct rig_call c = {0};

    rig_begin_at(&fake, false, "", "");
    fake.load = answer;
    rig_connect();
    rig_run_until_ready();
    fake.n_noscript = 1;
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    CU_ASSERT_EQUAL(fake.n_eval, 1);
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    CU_ASSERT_EQUAL(fake.n_load, 1);
    CU_ASSERT_EQUAL(atomic_load(&rig.node.breaker.n_failures), 0);
    rig_end();
}

static void load_forbidden(void)
{
    check_load_forbidden("-NOPERM User edge has no permissions to run the 'script|load' command\r\n");
    check_load_forbidden("-ERR unknown command 'SCRIPT', with args beginning with: 'LOAD'\r\n");
}

static void load_forbidden_later(void)
{
    struct rig_call c = {0};

    begin();
    fake.load = "-NOPERM no\r\n";
    for (int i = 0; i < 3; i++) {
        fake.n_noscript = 1;
        CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    }
    CU_ASSERT_EQUAL(fake.n_load, 2);
    CU_ASSERT_EQUAL(fake.n_eval, 3);
    CU_ASSERT_EQUAL(atomic_load(&rig.node.breaker.n_failures), 0);
    rig_end();
}

static void lost_while_loading_again(void)
{
    struct rig_call c = {0};

    begin();
    fake.n_noscript = 1;
    fake.load = "";
    fake.n_charges_max = 2;
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    rig_run_until(is_down, NULL);
    fake.load = NULL;
    rig_run_until_ready();
    fake.n_noscript = 1;
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    charge_is_answered();
    CU_ASSERT_EQUAL(fake.n_load, 3); /* the one that the end has swallowed was not seen */
    rig_end();
}

void test_valkey_login_register(void)
{
    CU_pSuite s = CU_add_suite("valkey_login", rig_set_up, rig_tear_down);
    CU_add_test(s, "user, password and database are told as they are in the URL, and only where they are", logins);
    CU_add_test(s, "a refused password is tried again until it is right", wrong_password_then_right);
    CU_add_test(s, "each refusal in the handshake is told with the server's text, never with the password", refusals);
    CU_add_test(s, "a server that repeats a part of the login does not get it into any text", repeated_words_are_not_shown);
    CU_add_test(s, "a text with the beginning of the password is not shown", beginning_of_the_password_is_not_shown);
    CU_add_test(s, "a server's long text is cut", long_refusal_is_cut);
    CU_add_test(s, "a user who may not load scripts is served by EVAL", load_forbidden);
    CU_add_test(s, "a right to load that is taken away later harms no call", load_forbidden_later);
    CU_add_test(s, "a connection that ends during a second load leaves nothing behind for the next",
                lost_while_loading_again);
}
