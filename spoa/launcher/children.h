/* Child processes on the launcher's loop: started, watched, told to end, killed when they do not. */
#ifndef SPOA_LAUNCHER_CHILDREN_H
#define SPOA_LAUNCHER_CHILDREN_H

#include <ev.h>

#include "spoa/launcher/sources.h"
#include "spoa/launcher/spawn.h"

/* Main thread only. The caller fills in the first part and keeps the struct in place while pid is not 0. */
struct child {
    void *owner;
    /* It has closed its EDGE_READY_FD, by then is_ready tells whether it wrote "ready" and a newline before. May be NULL. */
    void (*on_report)(struct child *c);
    void (*on_exit)(struct child *c, int status);

    pid_t pid; /* 0: not running */
    uint64_t started_us;
    bool is_ready;
    bool was_stopped; /* child_stop was called: its end is no accident */
    bool was_killed;  /* it did not end in time */
    struct ev_loop *loop;
    struct sources *sources;
    ev_child exit_watch;
    ev_io ready_watch;
    ev_timer patience;
};

/* The pipe for EDGE_READY_FD; read_fd -1 when the child has none. */
struct ready_pipe {
    int read_fd, write_fd;
};
MUSTUSE bool child_ready_pipe(struct ready_pipe *out, struct err *e);
void child_drop_ready_pipe(const struct ready_pipe *p); /* one that no child_start took over */

/* Starts the program with a source of its own for what it writes. ready is taken over, also on failure. */
MUSTUSE bool child_start(struct child *c, struct ev_loop *loop, struct sources *sources, const char *path,
                         char *const argv[], char *const envp[], struct ready_pipe ready, int death_signal,
                         struct err *e);
void child_signal(const struct child *c, int signum);
/* Sends signum, and SIGKILL to its whole group when it is still there patience_s later. Nothing when it isn't running. */
void child_stop(struct child *c, int signum, double patience_s);
/* Kills it when it is still there limit_s from now. */
void child_limit(struct child *c, double limit_s);
uint64_t child_age_ms(const struct child *c);

/* How long to wait before a restart: not at all after 10 s of life, else 100 ms, doubling up to 5 s. */
struct backoff {
    uint64_t next_ms;
};
uint64_t backoff_take(struct backoff *b, uint64_t age_ms);

#endif
