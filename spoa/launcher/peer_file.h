/* Lists of peers as files, which haproxy.cfg reads with `src -f`: a line of it has room for 64 words only. */
#ifndef SPOA_LAUNCHER_PEER_FILE_H
#define SPOA_LAUNCHER_PEER_FILE_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/net/addr.h"

/* Reads a comma list of addresses and ranges (CIDR), blanks around them allowed; an empty text is an empty set. setting: its name, for faults, one for
 * each entry that can't stay; any_allowed: all of IPv4 or IPv6 may stand in it. *out is what could be read. */
void peer_list_read(const char *setting, const char *text, bool any_allowed, struct arena *a, struct addr_set *out, struct errlist *faults);

/* Writes the set to <folder>/<name> (mode 0600), one range a line, in place of what is there. */
MUSTUSE bool peer_file_write(const char *folder, const char *name, const struct addr_set *set, struct err *e);

#endif
