/* Starting a program, and knowing that it has started. */
#include "spoa/launcher/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"

static void reset_signals(void)
{
    struct sigaction dflt = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};
    sigset_t none;

    for (int signum = 1; signum < NSIG; signum++)
        (void)sigaction(signum, &dflt, NULL);
    (void)sigaction(SIGHUP, &ignore, NULL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The new process, from fork to exec: only calls that are safe while another thread may hold any lock. */
__attribute__((noreturn)) static void become(const struct spawn *s, pid_t parent, int report_fd)
{
    const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int failure;

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, s->death_signal);
    /* The parent may have gone before the line above. */
    if (getppid() != parent)
        _exit(127);
    reset_signals();
    if (empty >= 0 && dup2(empty, STDIN_FILENO) >= 0 && dup2(s->output_fd, STDOUT_FILENO) >= 0 &&
        dup2(s->output_fd, STDERR_FILENO) >= 0) {
        (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
        if (s->keep_fd < 0 || fcntl(s->keep_fd, F_SETFD, 0) == 0)
            execve(s->path, s->argv, s->envp);
    }
    failure = errno;
    (void)!write(report_fd, &failure, sizeof(failure));
    _exit(127);
}

/* Forks with all signals blocked: a handler of the parent must not run in the child. */
static pid_t fork_quietly(const struct spawn *s, int report_fd)
{
    const pid_t parent = getpid();
    sigset_t all, before;
    pid_t pid;

    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return -1;
    pid = fork();
    if (pid == 0)
        become(s, parent, report_fd);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}

bool spawn(const struct spawn *s, pid_t *out, struct err *e)
{
    int report[2], failure = 0;
    ssize_t n;
    pid_t pid;

    if (pipe2(report, O_CLOEXEC) != 0)
        return err_set(e, ERR_IO, "", "cannot start %s: %s", s->path, strerror(errno));
    pid = fork_quietly(s, report[1]);
    if (pid < 0)
        (void)err_set(e, ERR_IO, "", "cannot start %s: %s", s->path, strerror(errno));
    close(report[1]);
    /* The pipe closes with the exec. */
    do
        n = pid < 0 ? 0 : read(report[0], &failure, sizeof(failure));
    while (n < 0 && errno == EINTR);
    close(report[0]);
    if (pid < 0)
        return false;
    if (n != 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
        return err_set(e, ERR_IO, "", "cannot start %s: %s", s->path, strerror(failure));
    }
    *out = pid;
    return true;
}

/* Reads until every writer has closed the pipe. False at end_us. */
static bool read_until(int fd, uint64_t end_us, struct buf *b)
{
    for (;;) {
        const uint64_t now_us = clock_mono_us(&clock_system);
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        char bytes[4096];
        ssize_t n;
        int ready;

        if (now_us >= end_us)
            return false;
        ready = poll(&readable, 1, (int)((end_us - now_us) / 1000) + 1);
        if (ready < 0 && errno != EINTR)
            return false;
        if (ready <= 0)
            continue;
        n = read(fd, bytes, sizeof(bytes));
        if (n == 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            buf_put(b, str_sub((struct str){bytes, (size_t)n}, 0, b->cap - b->len));
    }
}

bool spawn_capture(const char *path, char *const argv[], char *const envp[], int timeout_ms, char *storage, size_t cap,
                   struct str *out, int *status, struct err *e)
{
    const uint64_t end_us = clock_mono_us(&clock_system) + (uint64_t)timeout_ms * 1000;
    struct buf b;
    int fds[2];
    pid_t pid;
    bool ended;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return err_set(e, ERR_IO, "", "cannot start %s: %s", path, strerror(errno));
    if (!spawn(&(struct spawn){path, argv, envp, fds[1], -1, SIGKILL}, &pid, e)) {
        close(fds[0]);
        close(fds[1]);
        return false;
    }
    close(fds[1]);
    buf_init(&b, storage, cap);
    ended = read_until(fds[0], end_us, &b);
    close(fds[0]);
    if (!ended)
        (void)kill(-pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR) {
    }
    if (!ended)
        return err_set(e, ERR_IO, "", "%s has not ended after %d ms", path, timeout_ms);
    *out = buf_str(&b);
    return true;
}

void spawn_describe(int status, char *out)
{
    if (WIFSIGNALED(status))
        snprintf(out, SPAWN_STATUS_MAX, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(out, SPAWN_STATUS_MAX, "exited with status %d", WEXITSTATUS(status));
}
