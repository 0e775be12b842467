/* The connection to a scripted Valkey: failing, ending, coming back; and what is said and left unsaid about it. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/log.h"
#include "tests/unit/fake_valkey.h"
#include "tests/unit/valkey_rig.h"

static struct fake_valkey fake;

static void begin(void)
{
    rig_begin_at(&fake, false, "", "");
    rig_connect();
    rig_run_until_ready();
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

static void refused_connections_end_in_return(void)
{
    rig_begin_at(&fake, false, "", "");
    fake_valkey_leave(&fake);
    rig_connect();
    run_until_n_failures(2);
    CU_ASSERT_TRUE(rig_trouble_has("cannot connect to /tmp/"));
    CU_ASSERT_TRUE(rig_trouble_has("No such file"));
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.attempted), 1);
    fake_valkey_return(&fake);
    rig_run_until_ready();
    charge_is_answered();
    rig_end();
}

static void refused_tcp_connections_end_in_return(void)
{
    rig_begin_at(&fake, true, "", "");
    fake_valkey_leave(&fake);
    rig_connect();
    run_until_n_failures(2);
    CU_ASSERT_TRUE(rig_trouble_has("cannot connect to 127.0.0.1:"));
    CU_ASSERT_TRUE(rig_trouble_has("Connection refused"));
    fake_valkey_return(&fake);
    rig_run_until_ready();
    charge_is_answered();
    rig_end();
}

static void attempt_ends_with_the_last_address(void)
{
    struct resolver *r = &rig.node.resolver;

    rig_begin_at(&fake, true, "", "");
    memcpy(r->addresses[0], "127.0.0.2", sizeof("127.0.0.2")); /* nobody listens there */
    memcpy(r->addresses[1], "127.0.0.3", sizeof("127.0.0.3"));
    memcpy(r->addresses[2], "127.0.0.1", sizeof("127.0.0.1"));
    r->n_addresses = 3;
    rig_connect();
    run_until_n_failures(1);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.attempted), 0);
    rig_run_until_ready();
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.n_connect_failures), 2);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.attempted), 1);
    charge_is_answered();
    rig_end();
}

static void closed_before_a_word(void)
{
    rig_begin_at(&fake, true, "", "");
    fake.closes_at_once = true;
    rig_connect();
    run_until_n_failures(3);
    CU_ASSERT_TRUE(rig_trouble_has("cannot connect to"));
    fake.closes_at_once = false;
    rig_run_until_ready();
    charge_is_answered();
    rig_end();
}

static int fill_backlog(int *fds, size_t n)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(name);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CU_ASSERT_EQUAL_FATAL(bind(listener, (const struct sockaddr *)&name, sizeof(name)), 0);
    CU_ASSERT_EQUAL_FATAL(listen(listener, 0), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(listener, (struct sockaddr *)&name, &len), 0);
    for (size_t i = 0; i < n; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(fds[i], (const struct sockaddr *)&name, sizeof(name));
    }
    return listener;
}

static void silent_network(void)
{
    enum { N = 4 };
    int fds[N], listener = fill_backlog(fds, N);
    struct sockaddr_in name;
    socklen_t len = sizeof(name);
    char url[128];

    CU_ASSERT_EQUAL_FATAL(getsockname(listener, (struct sockaddr *)&name, &len), 0);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%u?dial_timeout=30ms", (unsigned)ntohs(name.sin_port));
    rig_begin(url);
    rig_connect();
    run_until_n_failures(2);
    CU_ASSERT_TRUE(rig_trouble_has("no connection within 30 ms"));
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.attempted), 1);
    rig_end();
    for (size_t i = 0; i < N; i++)
        close(fds[i]);
    close(listener);
}

static void silent_handshake(void)
{
    rig_begin_at(&fake, false, ":s3cret@", "");
    fake.auth = fake.load = "";
    rig_connect();
    run_until_n_failures(1);
    CU_ASSERT_TRUE(rig_trouble_has("no answer within 2000 ms"));
    fake.auth = fake.load = NULL;
    rig_run_until_ready();
    charge_is_answered();
    rig_end();
}

static void addresses_in_turn(void)
{
    static const char *const addresses[] = {"127.0.0.2", "::1", "127.0.0.1"};
    struct err e = {0};

    rig_begin_at(&fake, true, "", "");
    CU_ASSERT_TRUE_FATAL(resolver_init(&rig.node.resolver, "valkey.example", &e));
    for (size_t i = 0; i < 3; i++)
        snprintf(rig.node.resolver.addresses[i], RESOLVER_TEXT_MAX, "%s", addresses[i]);
    rig.node.resolver.n_addresses = 3;
    rig_connect();
    rig_run_until_ready();
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.n_connect_failures), 2);
    rig_end();
}

static void name_is_waited_for(void)
{
    struct err e = {0};

    rig_begin_at(&fake, true, "", "");
    CU_ASSERT_TRUE_FATAL(resolver_init(&rig.node.resolver, "valkey.example", &e));
    rig_connect();
    rig_run_for_ms(50);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.attempted), 0); /* the first look-up has its time, by the rig's clock */
    rig_pass_ms(1000);
    run_until_n_failures(1);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.attempted), 1);
    CU_ASSERT_TRUE(rig_trouble_has("no address is known"));
    snprintf(rig.node.resolver.addresses[0], RESOLVER_TEXT_MAX, "127.0.0.1");
    rig.node.resolver.n_addresses = 1;
    rig_run_until_ready();
    charge_is_answered();
    rig_end();
}

static size_t count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t n = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static bool is_accepted_again(void *ctx)
{
    return fake.n_accepted > *(unsigned *)ctx && atomic_load(&rig.counters.connected) == 1;
}

/* Each connection lives for longer than the longest distance, so that the next is tried at once. */
static void lose_once(void)
{
    unsigned before = fake.n_accepted;
    struct rig_call c = {0};

    rig_pass_ms(VALKEY_RETRY_MAX_MS);
    fake.charge = "";
    CU_ASSERT_TRUE(rig_charge(&c, 1, 1));
    fake_valkey_say(&fake, STR("?"));
    rig_run_until(rig_is_done, &c);
    CU_ASSERT_EQUAL(c.outcome, STORE_MALFORMED);
    fake.charge = NULL;
    rig_run_until(is_accepted_again, &before);
    breaker_success(&rig.node.breaker);
}

static void descriptors_are_flat_over_losses(void)
{
    size_t before;

    rig_begin_at(&fake, true, "", "");
    rig_connect();
    rig_run_until_ready();
    lose_once();
    before = count_descriptors();
    for (int i = 0; i < 500; i++)
        lose_once();
    CU_ASSERT_EQUAL(count_descriptors(), before);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.n_connect_failures), 0);
    rig_end();
}

/* A client each, to do without the distances between attempts. kind: how the first attempt ends. */
static void fail_once(int kind)
{
    uint64_t before = atomic_load(&rig.counters.n_connect_failures);

    fake.closes_at_once = kind == 0;
    fake.auth = kind == 1 ? "-WRONGPASS no\r\n" : NULL;
    rig_connect();
    run_until_n_failures(before + 1);
    valkey_free(&rig.v);
}

static void descriptors_are_flat_over_failures(void)
{
    size_t before = 0;

    rig_begin_at(&fake, true, ":s3cret@", "");
    for (int i = 0; i < 500; i++) {
        if (i == 2)
            before = count_descriptors();
        if (i % 4 == 3)
            fake_valkey_leave(&fake);
        fail_once(i % 2);
        if (i % 4 == 3)
            fake_valkey_return(&fake);
        rig_run_for_ms(0); /* the server's side closes */
    }
    CU_ASSERT_EQUAL(count_descriptors(), before);
    rig_end();
}

static void *ask_trouble(void *ctx)
{
    char text[512];

    while (!atomic_load((atomic_bool *)ctx))
        valkey_trouble(rig.v, text, sizeof(text));
    return NULL;
}

static void trouble_from_another_thread(void)
{
    atomic_bool enough = false;
    pthread_t thread;

    begin();
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, ask_trouble, &enough), 0);
    for (int i = 0; i < 20; i++)
        lose_once();
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    rig_end();
}

/* How often word stands in what was logged. */
static size_t count_logged(int fd, const char *word)
{
    static char text[65536];
    ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
    size_t n = 0;

    CU_ASSERT_TRUE_FATAL(len >= 0);
    text[len] = '\0';
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        n++;
    return n;
}

static void run_an_outage(void)
{
    rig_begin_at(&fake, false, "edge:s3cret@", "");
    rig_connect();
    rig_run_until_ready();
    fake_valkey_leave(&fake);
    run_until_n_failures(3);
    fake.auth = "-WRONGPASS no\r\n";
    fake_valkey_return(&fake);
    run_until_n_failures(5);
    fake.auth = NULL;
    rig_run_until_ready();
    charge_is_answered();
    fake.charge = "-OOM no memory\r\n";
    for (int i = 0; i < 3; i++) {
        struct rig_call c = {0};

        CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ERROR);
    }
    rig_end();
}

/* What scene logs, as a file of memory. */
static int capture(void (*scene)(void))
{
    int fd = memfd_create("log", MFD_CLOEXEC), saved = dup(STDERR_FILENO);

    CU_ASSERT_TRUE_FATAL(fd >= 0 && saved >= 0);
    CU_ASSERT_TRUE_FATAL(dup2(fd, STDERR_FILENO) >= 0);
    log_init("", LOG_LEVEL_INFO);
    scene();
    log_init("", LOG_LEVEL_ERROR);
    CU_ASSERT_TRUE_FATAL(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    return fd;
}

static void log_tells_each_change_once(void)
{
    int fd = capture(run_an_outage);

    CU_ASSERT_EQUAL(count_logged(fd, "valkey_connected"), 2);
    CU_ASSERT_EQUAL(count_logged(fd, "valkey_lost"), 1);
    CU_ASSERT_EQUAL(count_logged(fd, "valkey_unreachable"), 1);
    CU_ASSERT_EQUAL(count_logged(fd, "valkey_refused"), 1);
    CU_ASSERT_EQUAL(count_logged(fd, "valkey_error"), 1);
    CU_ASSERT_EQUAL(count_logged(fd, "s3cret"), 0);
    close(fd);
}

static void lose_often(void)
{
    begin();
    for (int i = 0; i < 30; i++)
        lose_once(); /* a second each on the rig's clock */
    fake_valkey_leave(&fake);
    run_until_n_failures(1);
    rig_pass_ms(60000);
    run_until_n_failures(2);
    rig_end();
}

static void log_is_not_flooded(void)
{
    int fd = capture(lose_often);
    const size_t n_lost = count_logged(fd, "valkey_lost");

    CU_ASSERT_TRUE(n_lost > 0 && n_lost < 10);
    CU_ASSERT_EQUAL(count_logged(fd, "valkey_connected"), n_lost + 1);
    CU_ASSERT_EQUAL(count_logged(fd, "valkey_unreachable"), 1);
    close(fd);
}

void test_valkey_conn_register(void)
{
    CU_pSuite s = CU_add_suite("valkey_conn", rig_set_up, rig_tear_down);
    CU_add_test(s, "a socket that is not there is tried until it is", refused_connections_end_in_return);
    CU_add_test(s, "a port that refuses is tried until it accepts", refused_tcp_connections_end_in_return);
    CU_add_test(s, "the first attempt, for which a start waits, has ended when every address of the name was tried",
                attempt_ends_with_the_last_address);
    CU_add_test(s, "a server that closes each connection at once is tried until it stays", closed_before_a_word);
    CU_add_test(s, "a network that swallows the connect is given up after dial_timeout", silent_network);
    CU_add_test(s, "a server that is connected but silent is given up after the handshake's time", silent_handshake);
    CU_add_test(s, "the addresses of a name are tried in turn", addresses_in_turn);
    CU_add_test(s, "a name that is being looked up is waited for as long as a connect, then it is trouble",
                name_is_waited_for);
    CU_add_test(s, "descriptors stay as many over 500 lost connections", descriptors_are_flat_over_losses);
    CU_add_test(s, "descriptors stay as many over 500 failed attempts", descriptors_are_flat_over_failures);
    CU_add_test(s, "another thread may ask for the trouble at any time", trouble_from_another_thread);
    CU_add_test(s, "the log tells each change of state once, and no password", log_tells_each_change_once);
    CU_add_test(s, "a connection that comes and goes does not flood the log, and the last word is true",
                log_is_not_flooded);
}
