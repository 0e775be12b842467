/* How many requests HAProxy has under way, asked of its master, which still answers while its processes stop. */
#ifndef SPOA_LAUNCHER_OPEN_REQUESTS_H
#define SPOA_LAUNCHER_OPEN_REQUESTS_H

#include "common/base/err.h"

/* The requests of all processes, those that a reload left behind included; idle connections are none. master_path: the
 * socket of the master. Two commands for a process, each bounded as in haproxy_ctl.h. Main thread. */
MUSTUSE bool open_requests_ask(const char *master_path, uint64_t *out, struct err *e);

/* The next process of an answer to `show proc`, which is consumed up to it; false when there is none. out borrows from it. */
bool open_requests_next_pid(struct str *processes, struct str *out);
/* The requests that an answer to `show stat` counts in the backends of requests; an error when it lacks one of them. */
MUSTUSE bool open_requests_count(struct str stats, uint64_t *out, struct err *e);

#endif
