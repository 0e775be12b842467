/* Which HAProxy a binary is. */
#ifndef SPOA_LAUNCHER_HAPROXY_VERSION_H
#define SPOA_LAUNCHER_HAPROXY_VERSION_H

#include "common/base/err.h"

struct haproxy_version {
    unsigned major, minor;
};

enum { HAPROXY_MAJOR_MIN = 3, HAPROXY_MINOR_MIN = 2 };

/* From what `haproxy -v` writes: "HAProxy version 3.2.26-1 2026/10/14 - ...". False when that is not it. */
MUSTUSE bool haproxy_version_parse(struct str text, struct haproxy_version *out);
/* Asks the binary; false with words when it can't be asked or is older than the oldest supported one. Blocks, for start-up. */
MUSTUSE bool haproxy_version_check(const char *path, char *const envp[], struct err *e);

#endif
