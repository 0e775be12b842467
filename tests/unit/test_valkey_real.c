/* The client against a real Valkey: what a scripted one can only imitate. EDGE_VALKEY names the server's binary. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/valkey_rig.h"

extern char **environ;

/* The server of the running test, in a private folder. */
static struct {
    pid_t pid;
    char dir[64], socket[96], port[8];
    redisContext *admin; /* over the UNIX socket */
} server;

static const char *binary(void)
{
    const char *path = getenv("EDGE_VALKEY");

    return path != NULL ? path : ".deps/valkey-8/valkey-server";
}

static void pick_port(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(name);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CU_ASSERT_EQUAL_FATAL(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&name, &len), 0);
    snprintf(server.port, sizeof(server.port), "%u", (unsigned)ntohs(name.sin_port));
    close(fd);
}

/* How an administrator who waits for the server does it; each turn is a try to connect. */
static void connect_admin(void)
{
    server.admin = NULL;
    for (int i = 0; i < 3000 && server.admin == NULL; i++) {
        server.admin = redisConnectUnix(server.socket);
        if (server.admin != NULL && server.admin->err != 0) {
            redisFree(server.admin);
            server.admin = NULL;
            rig_run_for_ms(10);
        }
    }
    CU_ASSERT_PTR_NOT_NULL_FATAL(server.admin);
}

static void launch(void)
{
    char path[256], socket_path[96], port[8], dir[64];
    char words[][16] = {"--port", "--bind", "127.0.0.1", "--unixsocket", "--save",
                        "",       "--dir",  "--logfile", "/dev/null"};
    char *argv[] = {path,     words[0], port,     words[1], words[2], words[3], socket_path,
                    words[4], words[5], words[6], dir,      words[7], words[8], NULL};

    snprintf(path, sizeof(path), "%s", binary());
    snprintf(socket_path, sizeof(socket_path), "%s", server.socket);
    snprintf(port, sizeof(port), "%s", server.port);
    snprintf(dir, sizeof(dir), "%s", server.dir);
    CU_ASSERT_EQUAL_FATAL(posix_spawn(&server.pid, path, NULL, NULL, argv, environ), 0);
    connect_admin();
}

static void kill_server(void)
{
    if (server.admin != NULL)
        redisFree(server.admin);
    server.admin = NULL;
    if (server.pid > 0) {
        kill(server.pid, SIGKILL);
        waitpid(server.pid, NULL, 0);
    }
    server.pid = 0;
}

/* After a test that did not come to its end, too. */
static int tear_down(void)
{
    kill_server();
    return rig_tear_down();
}

/* A command of the administrator, answered without an error. Returns its number, if it has one. */
static long long tell(const char *command)
{
    redisReply *r = redisCommand(server.admin, command);
    long long number;

    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    if (r->type == REDIS_REPLY_ERROR)
        fprintf(stderr, "\n    %s: %s\n", command, r->str);
    CU_ASSERT_NOT_EQUAL_FATAL(r->type, REDIS_REPLY_ERROR);
    number = r->integer;
    freeReplyObject(r);
    return number;
}

/* login, rest: of the URL. */
static void begin(bool tcp, const char *login, const char *rest)
{
    char url[256];

    snprintf(server.dir, sizeof(server.dir), "/tmp/valkey-real-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(server.dir));
    snprintf(server.socket, sizeof(server.socket), "%s/valkey.sock", server.dir);
    pick_port();
    snprintf(url, sizeof(url), "%s://%s%s%s%s", tcp ? "valkey" : "unix", login, tcp ? "127.0.0.1:" : server.socket,
             tcp ? server.port : "", rest);
    rig_begin(url);
    launch();
}

static void begin_ready(const char *rest)
{
    begin(false, "", rest);
    rig_connect();
    rig_run_until_ready();
}

static void end(void)
{
    rig_end();
    kill_server();
    unlink(server.socket);
    CU_ASSERT_EQUAL(rmdir(server.dir), 0);
}

static void limits_hold(void)
{
    struct rig_call c = {0};

    begin_ready("?db=3");
    for (uint64_t left = 5; left-- > 0;) {
        CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 2, 1), STORE_ANSWERED);
        CU_ASSERT_TRUE(c.calls[0].verdict.allowed);
        CU_ASSERT_EQUAL(c.calls[1].verdict.remaining, left);
    }
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 2, 1), STORE_ANSWERED);
    CU_ASSERT_FALSE(c.calls[0].verdict.allowed);
    CU_ASSERT_TRUE(c.calls[0].verdict.retry_after_ms > 0);
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 2), STORE_ANSWERED);
    CU_ASSERT_TRUE(c.calls[0].verdict.allowed);
    CU_ASSERT_EQUAL(tell("DBSIZE"), 0);
    tell("SELECT 3");
    CU_ASSERT_EQUAL(tell("DBSIZE"), 3);
    end();
}

static bool three_done(void *ctx)
{
    (void)ctx;
    return rig.n_done >= 3;
}

static void flush_in_mid_flow(void)
{
    static struct rig_call calls[3];
    struct rig_call c = {0};

    begin_ready("");
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    tell("SCRIPT FLUSH");
    rig.n_done = 0;
    for (int i = 0; i < 3; i++)
        CU_ASSERT_TRUE(rig_charge(&calls[i], 1, 1));
    rig_run_until(three_done, NULL);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.n_noscript), 3);
    CU_ASSERT_EQUAL(rig_count(STORE_ANSWERED), 4);
    /* Each ran once: one token after the other. */
    CU_ASSERT_EQUAL(calls[0].calls[0].verdict.remaining, 3);
    CU_ASSERT_EQUAL(calls[1].calls[0].verdict.remaining, 2);
    CU_ASSERT_EQUAL(calls[2].calls[0].verdict.remaining, 1);
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    CU_ASSERT_EQUAL(c.calls[0].verdict.remaining, 0);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.n_noscript), 3);
    end();
}

static bool five_timed_out(void *ctx)
{
    (void)ctx;
    return rig_count(STORE_TIMEOUT) == BREAKER_FAILURES;
}

static void frozen_then_thawed(void)
{
    static struct rig_call calls[BREAKER_FAILURES];
    struct rig_call c = {0};

    begin_ready("");
    CU_ASSERT_EQUAL(kill(server.pid, SIGSTOP), 0);
    for (int i = 0; i < BREAKER_FAILURES; i++)
        CU_ASSERT_TRUE(rig_charge(&calls[i], 1, 1));
    rig_pass_ms(100);
    rig_run_until(five_timed_out, NULL);
    CU_ASSERT_TRUE(breaker_is_open(&rig.node.breaker));
    CU_ASSERT_FALSE(rig_charge(&c, 1, 1));
    CU_ASSERT_EQUAL(kill(server.pid, SIGCONT), 0);
    rig_run_until_ready();
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.n_connects), 2);
    CU_ASSERT_FALSE(rig_charge(&c, 1, 1));
    CU_ASSERT_EQUAL(c.outcome, STORE_BREAKER_OPEN);
    rig_pass_ms(1000);
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 2), STORE_ANSWERED);
    CU_ASSERT_FALSE(breaker_is_open(&rig.node.breaker));
    end();
}

static void killed_and_restarted(void)
{
    struct rig_call c = {0};

    begin_ready("");
    CU_ASSERT_EQUAL(kill(server.pid, SIGSTOP), 0);
    CU_ASSERT_TRUE(rig_charge(&c, 1, 1));
    rig_run_for_ms(1); /* it is sent */
    kill_server();
    rig_run_until(rig_is_done, &c);
    CU_ASSERT_EQUAL(c.outcome, STORE_LOST);
    CU_ASSERT_TRUE(rig_trouble_has("lost the connection") || rig_trouble_has("cannot connect"));
    launch();
    rig_run_until_ready();
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    end();
}

static bool has_failed(void *ctx)
{
    (void)ctx;
    return atomic_load(&rig.counters.n_connect_failures) > 0;
}

static void wrong_password_then_right(void)
{
    struct rig_call c = {0};

    begin(true, ":s3cret%2F@", "/0?dial_timeout=2s");
    tell("CONFIG SET requirepass other");
    rig_connect();
    rig_run_until(has_failed, NULL);
    CU_ASSERT_TRUE(rig_trouble_has("AUTH: WRONGPASS"));
    CU_ASSERT_TRUE(rig_trouble_lacks("s3cret"));
    tell("CONFIG SET requirepass s3cret/");
    rig_run_until_ready();
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 7, 1), STORE_ANSWERED);
    end();
}

static void password_missing(void)
{
    begin(true, "", "");
    tell("CONFIG SET requirepass other");
    rig_connect();
    rig_run_until(has_failed, NULL);
    CU_ASSERT_TRUE(rig_trouble_has("SCRIPT LOAD: NOAUTH"));
    end();
}

static bool is_connected_twice(void *ctx)
{
    (void)ctx;
    return atomic_load(&rig.counters.n_connects) == 2;
}

static void client_killed(void)
{
    struct rig_call c = {0};

    begin_ready("");
    CU_ASSERT_EQUAL(tell("CLIENT KILL TYPE normal SKIPME yes"), 1);
    rig_run_until(is_connected_twice, NULL);
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    end();
}

static void user_who_may_not_load(void)
{
    struct rig_call c = {0};

    begin(true, "edge:s3cret@", "");
    tell("ACL SETUSER edge on >s3cret ~* -@all +eval +evalsha +get +set +time");
    rig_connect();
    rig_run_until_ready();
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.n_noscript), 1);
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    CU_ASSERT_EQUAL(atomic_load(&rig.counters.n_noscript), 1);
    CU_ASSERT_EQUAL(atomic_load(&rig.node.breaker.n_failures), 0);
    tell("ACL SETUSER edge -evalsha");
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ERROR);
    CU_ASSERT_EQUAL(atomic_load(&rig.node.breaker.n_failures), 1);
    end();
}

static void node_in_trouble(void)
{
    struct rig_call c = {0};

    begin_ready("");
    tell("REPLICAOF 127.0.0.1 1");
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ERROR);
    tell("REPLICAOF NO ONE");
    tell("CONFIG SET maxmemory 1");
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ERROR);
    CU_ASSERT_EQUAL(atomic_load(&rig.node.breaker.n_failures), 2);
    tell("CONFIG SET maxmemory 0");
    CU_ASSERT_EQUAL(rig_charge_and_wait(&c, 1, 1), STORE_ANSWERED);
    CU_ASSERT_EQUAL(atomic_load(&rig.node.breaker.n_failures), 0);
    end();
}

void test_valkey_real_register(void)
{
    CU_pSuite s;

    if (access(binary(), X_OK) != 0) {
        fprintf(stderr, "== unit: suite valkey_real skipped: there is no Valkey at %s (EDGE_VALKEY)\n", binary());
        return;
    }
    s = CU_add_suite("valkey_real", rig_set_up, tear_down);
    CU_add_test(s, "a limit holds over the store, in the database of the URL", limits_hold);
    CU_add_test(s, "a script that is flushed in mid-flow costs no verdict, and no call runs twice", flush_in_mid_flow);
    CU_add_test(s, "a frozen server opens the breaker, and serves again once it thaws", frozen_then_thawed);
    CU_add_test(s, "a server that is killed loses the call in flight, and serves again once it is back",
                killed_and_restarted);
    CU_add_test(s, "a password that is wrong keeps being tried, so that it can be set right on the server",
                wrong_password_then_right);
    CU_add_test(s, "a password that is missing is told as the server puts it", password_missing);
    CU_add_test(s, "a connection that is killed on the server is made again", client_killed);
    CU_add_test(s, "a user who may run scripts but not load them is served", user_who_may_not_load);
    CU_add_test(s, "a replica and a full memory are failures of the node, and pass", node_in_trouble);
}
