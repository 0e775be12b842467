/* VALKEY_URL: where the shared counters are and how to log in there. */
#ifndef SPOA_STORE_TARGET_H
#define SPOA_STORE_TARGET_H

#include "common/base/err.h"

enum { VALKEY_DIAL_TIMEOUT_MS = 1000 };

struct valkey_target {
    bool is_unix;
    char host[256]; /* name or address without brackets; the path of a UNIX socket */
    uint16_t port;
    char user[128], password[512]; /* "" = none; percent-decoded */
    unsigned db;
    uint64_t dial_timeout_ms;
};

/* redis:// or valkey:// [user[:password]@]host[:port][/db][?dial_timeout=500ms], also unix:///path[?db=1&dial_timeout=...]; the port
 * defaults to 6379, db to 0. Refused with what would be right: rediss:// (no TLS in this build), several hosts (no cluster in this build),
 * unknown parameters, fragments. The text of an error never holds user or password. */
MUSTUSE bool valkey_target_parse(const char *url, struct valkey_target *out, struct err *e);
/* Wipes the secrets. */
void valkey_target_release(struct valkey_target *t);
/* "host:port", "[::1]:port" or the path: for logs. Borrowed buffer. */
const char *valkey_target_name(const struct valkey_target *t, char *buffer, size_t size);

#endif
