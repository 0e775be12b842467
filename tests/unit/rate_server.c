/* Starts and stops a Valkey for the tests of the rate limits. */
#include "tests/unit/rate_server.h"

#include <CUnit/CUnit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ATTEMPTS = 1000, ATTEMPT_MS = 10 }; /* a loaded machine takes its time */

static const char *binary(void)
{
    const char *given = getenv("EDGE_VALKEY");
    return given && *given ? given : ".deps/valkey-8/valkey-server";
}

/* In the child: nothing but exec, and it ends when the test does, however that ends. */
static void become_server(const struct rate_server *s, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        execl(binary(), "valkey-server", "--port", "0", "--unixsocket", s->socket, "--dir", s->folder, "--logfile", s->log, "--save", "", "--appendonly",
              "no", "--daemonize", "no", (char *) NULL);
    _exit(127);
}

redisContext *rate_server_connect(struct rate_server *s)
{
    redisContext *link = redisConnectUnix(s->socket);
    CU_ASSERT_FATAL(link && !link->err);
    return link;
}

/* Its exit is noted, so that nothing is ever sent to another process under its number. */
static bool is_running(struct rate_server *s)
{
    if (s->pid > 0 && waitpid(s->pid, NULL, WNOHANG) != 0)
        s->pid = 0;
    return s->pid > 0;
}

/* Asks until the server listens, as long as its process lives. */
static bool wait_for_socket(struct rate_server *s)
{
    for (int i = 0; i < ATTEMPTS && is_running(s); i++) {
        s->link = redisConnectUnix(s->socket);
        if (s->link && !s->link->err)
            return true;
        if (s->link)
            redisFree(s->link);
        s->link = NULL;
        nanosleep(&(struct timespec){.tv_nsec = ATTEMPT_MS * 1000000L}, NULL);
    }
    return false;
}

bool rate_server_start(struct rate_server *s)
{
    if (access(binary(), X_OK) != 0) {
        fprintf(stderr, "\n    skipped: there is no Valkey at %s (make deps fetches one, EDGE_VALKEY names another): %m\n", binary());
        return false;
    }
    *s = (struct rate_server){.folder = "/tmp/edge-rate-XXXXXX"};
    CU_ASSERT_FATAL(mkdtemp(s->folder) != NULL);
    snprintf(s->socket, sizeof s->socket, "%s/socket", s->folder);
    snprintf(s->log, sizeof s->log, "%s/log", s->folder);
    pid_t parent = getpid();
    s->pid = fork();
    CU_ASSERT_FATAL(s->pid >= 0);
    if (s->pid == 0)
        become_server(s, parent);
    if (!wait_for_socket(s)) {
        rate_server_stop(s);
        CU_FAIL_FATAL("Valkey did not start");
    }
    return true;
}

void rate_server_stop(struct rate_server *s)
{
    if (s->link)
        redisFree(s->link);
    s->link = NULL;
    if (is_running(s)) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    unlink(s->socket);
    unlink(s->log);
    rmdir(s->folder);
}

uint64_t rate_server_time_ms(struct rate_server *s)
{
    redisReply *reply = redisCommand(s->link, "TIME");
    CU_ASSERT_FATAL(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2);
    uint64_t ms = strtoull(reply->element[0]->str, NULL, 10) * 1000 + strtoull(reply->element[1]->str, NULL, 10) / 1000;
    freeReplyObject(reply);
    return ms;
}
