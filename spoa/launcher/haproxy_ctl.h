/* HAProxy's command socket. */
#ifndef SPOA_LAUNCHER_HAPROXY_CTL_H
#define SPOA_LAUNCHER_HAPROXY_CTL_H

#include "common/base/err.h"

enum { HAPROXY_CTL_TIMEOUT_MS = 200 };

/* Whether something listens on the UNIX socket at path. Never blocks. */
bool haproxy_ctl_listens(const char *path);
/* Sends one command and reads the answer to its end, within HAPROXY_CTL_TIMEOUT_MS; out borrows storage and has no blanks at
 * its ends. */
MUSTUSE bool haproxy_ctl(const char *path, const char *command, char *storage, size_t cap, struct str *out,
                         struct err *e);
/* Puts the server that stands for "not draining" into maintenance or back: /readyz answers by it. */
MUSTUSE bool haproxy_ctl_set_ready(const char *path, bool is_ready, struct err *e);

#endif
