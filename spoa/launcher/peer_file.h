/* Lists of peers as files, which haproxy.cfg reads with `src -f`: a line of it has room for 64 words only. */
#ifndef SPOA_LAUNCHER_PEER_FILE_H
#define SPOA_LAUNCHER_PEER_FILE_H

#include "common/base/err.h"
#include "common/net/addr.h"

/* Writes the set to <folder>/<name> (mode 0600), one range a line, in place of what is there. */
MUSTUSE bool peer_file_write(const char *folder, const char *name, const struct addr_set *set, struct err *e);

#endif
