/* Starting a program: what it inherits, how its end is known, what happens when it does not start or end. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spoa/launcher/spawn.h"

/* Far beyond what anything here takes: a test that reaches it fails. */
enum { LIMIT_MS = 20000 };

#define SHELL "/bin/sh"
static char shell_name[] = "sh", shell_flag[] = "-c";

static bool capture(const char *path, char *script, int timeout_ms, struct str *out, int *status, struct err *e)
{
    static char storage[4096];
    char path_variable[] = "PATH=/usr/bin:/bin", other[] = "GREETING=hello";
    char *const argv[] = {shell_name, shell_flag, script, NULL}, *const envp[] = {path_variable, other, NULL};

    err_clear(e);
    return spawn_capture(path, argv, envp, timeout_ms, storage, sizeof(storage), out, status, e);
}

static void captured(void)
{
    char script[] = "echo \"$GREETING\"; echo err >&2; exit 3";
    struct str out;
    struct err e;
    int status;

    CU_ASSERT_FATAL(capture(SHELL, script, LIMIT_MS, &out, &status, &e));
    CU_ASSERT(str_eq(out, STR("hello\nerr\n")));
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static void explicit_start(void)
{
    /* Fields of stat behind the name: state, parent, group. */
    char script[] = "read -r stat </proc/$$/stat; set -- ${stat##*) }; test $3 = $$ && echo leads; "
                    "readlink /proc/self/fd/0; n=0; for f in /proc/$$/fd/*; do test -e $f && n=$((n + 1)); done; echo $n; "
                    "kill -HUP $$; echo alive";
    const int leaked = open("/dev/null", O_RDONLY);
    struct str out;
    struct err e;
    int status;

    CU_ASSERT_FATAL(leaked > STDERR_FILENO);
    CU_ASSERT_FATAL(capture(SHELL, script, LIMIT_MS, &out, &status, &e));
    CU_ASSERT(str_eq(out, STR("leads\n/dev/null\n3\nalive\n")));
    close(leaked);
}

static void not_started(void)
{
    char script[] = "true";
    struct str out;
    struct err e;
    int status;

    CU_ASSERT(!capture("/nonexistent/program", script, LIMIT_MS, &out, &status, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "/nonexistent/program: No such file"));
    CU_ASSERT(!capture("/etc/passwd", script, LIMIT_MS, &out, &status, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "Permission denied"));
}

static void too_slow(void)
{
    char script[] = "sleep 600 & sleep 600";
    struct str out;
    struct err e;
    int status;

    CU_ASSERT(!capture(SHELL, script, 20, &out, &status, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "has not ended after 20 ms"));
}

static void long_answer(void)
{
    char script[] = "i=0; while [ $i -lt 500 ]; do echo 0123456789; i=$((i+1)); done";
    struct str out;
    struct err e;
    int status;

    CU_ASSERT_FATAL(capture(SHELL, script, LIMIT_MS, &out, &status, &e));
    CU_ASSERT_EQUAL(out.len, 4096);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void described(void)
{
    char script[] = "kill -9 $$", text[SPAWN_STATUS_MAX];
    struct str out;
    struct err e;
    int status;

    CU_ASSERT_FATAL(capture(SHELL, script, LIMIT_MS, &out, &status, &e));
    spawn_describe(status, text);
    CU_ASSERT_STRING_EQUAL(text, "was ended by signal 9 (Killed)");
    spawn_describe(7 << 8, text);
    CU_ASSERT_STRING_EQUAL(text, "exited with status 7");
}

/* Starts a child that would sleep for long, and ends without a word to it. */
__attribute__((noreturn)) static void parent_that_dies(int output_fd)
{
    char script[] = "echo up; exec sleep 600";
    char *const argv[] = {shell_name, shell_flag, script, NULL}, *const envp[] = {NULL};
    struct err e;
    pid_t pid;

    err_clear(&e);
    _exit(spawn(&(struct spawn){SHELL, argv, envp, output_fd, -1, SIGKILL}, &pid, &e) ? 0 : 1);
}

static void dies_with_its_parent(void)
{
    struct pollfd ended;
    char byte;
    int fds[2], status;
    pid_t pid;

    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC) == 0);
    pid = fork();
    if (pid == 0)
        parent_that_dies(fds[1]);
    CU_ASSERT_FATAL(pid > 0);
    close(fds[1]);
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_EQUAL(status, 0);
    /* The pipe ends when its last writer does. */
    ended = (struct pollfd){.fd = fds[0], .events = POLLIN};
    do {
        CU_ASSERT_EQUAL_FATAL(poll(&ended, 1, LIMIT_MS), 1);
    } while (read(fds[0], &byte, 1) > 0);
    close(fds[0]);
}

void test_spawn_register(void)
{
    CU_pSuite s = CU_add_suite("spawn", NULL, NULL);

    CU_add_test(s, "a short command's output and status are known, and its environment is the given one", captured);
    CU_add_test(
        s, "a child leads a group of its own, inherits no open file, and survives a reload before it listens for it",
        explicit_start);
    CU_add_test(s, "a program that can't be executed is said so at once", not_started);
    CU_add_test(s, "a command that does not end is killed with all it started", too_slow);
    CU_add_test(s, "an answer longer than its storage is cut and the command still ends", long_answer);
    CU_add_test(s, "the way a child ended is put into words", described);
    CU_add_test(s, "a child dies with its parent, however that dies", dies_with_its_parent);
}
