/* The file from which a HAProxy that starts takes the addresses of the one before it (server-state-file). */
#ifndef SPOA_LAUNCHER_SERVER_STATE_H
#define SPOA_LAUNCHER_SERVER_STATE_H

#include "common/base/err.h"

enum { SERVER_STATE_MAX = 16384 };

/* Makes path a file that knows no addresses. */
MUSTUSE bool server_state_begin(const char *path, struct err *e);
/* Writes what HAProxy says about its servers on command_socket to path, whole or not at all. Takes at most HAPROXY_CTL_TIMEOUT_MS. On failure
 * the file is as it was. */
MUSTUSE bool server_state_save(const char *command_socket, const char *path, struct err *e);

#endif
