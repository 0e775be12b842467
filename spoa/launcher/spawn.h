/* Starting a program, and knowing that it has started. */
#ifndef SPOA_LAUNCHER_SPAWN_H
#define SPOA_LAUNCHER_SPAWN_H

#include <sys/types.h>

#include "common/base/err.h"

struct spawn {
    const char *path;
    char *const *argv, *const *envp;
    int output_fd;    /* becomes standard output and error */
    int keep_fd;      /* stays open under its number, -1: none; every other one is closed, standard input is empty */
    int death_signal; /* what the program gets when the calling thread ends */
};

/* Main thread. The program leads a process group of its own, so a terminal's signals do not reach it, and starts with all
 * signals at their defaults, but for an ignored SIGHUP: a reload must not end an agent that does not listen for it yet. False, with
 * the reason, also when path can't be executed. */
MUSTUSE bool spawn(const struct spawn *s, pid_t *pid, struct err *e);

/* Runs a short command to its end: the first cap bytes of what it writes, and its wait status. False when it can't be started or has
 * not ended after timeout_ms (then it is killed). For start-up: blocks. */
MUSTUSE bool spawn_capture(const char *path, char *const argv[], char *const envp[], int timeout_ms, char *storage,
                           size_t cap, struct str *out, int *status, struct err *e);

/* "exited with status 1", "was ended by signal 9 (Killed)"; out holds at least SPAWN_STATUS_MAX bytes. */
enum { SPAWN_STATUS_MAX = 96 };
void spawn_describe(int status, char *out);

#endif
