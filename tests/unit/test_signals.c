/* A daemon's signals: what comes before anyone listens waits. */
#include <CUnit/CUnit.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spoa/signals.h"

static const int signums[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGINT};
enum { N_SIGNALS = sizeof(signums) / sizeof(signums[0]) };

static volatile sig_atomic_t n_handled;

static void handle(int signum)
{
    (void)signum;
    n_handled++;
}

/* In a process of its own, since its mask and, were it wrong, its end are at stake. Exit status 0: all waited and all came. */
static void hold_then_listen(void)
{
    struct sigaction handler = {.sa_handler = handle};

    signals_hold();
    for (int i = 0; i < N_SIGNALS; i++)
        (void)raise(signums[i]);
    for (int i = 0; i < N_SIGNALS; i++) {
        (void)sigaction(signums[i], &handler, NULL);
        if (n_handled != i)
            _exit(1);
        signals_let_in(signums[i]);
    }
    _exit(n_handled == N_SIGNALS ? 0 : 2);
}

static void early_signals_wait(void)
{
    const pid_t pid = fork();
    int status = -1;

    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0)
        hold_then_listen();
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void test_signals_register(void)
{
    CU_pSuite s = CU_add_suite("signals", NULL, NULL);

    CU_add_test(s, "a signal that comes before its watcher waits, and then comes once", early_signals_wait);
}
