/* Settings of an edge from the environment, by schemas/settings.def. */
#ifndef SPOA_SETTINGS_H
#define SPOA_SETTINGS_H

#include <stdio.h>

#include "common/base/err.h"

/* Column "readers" of the table: bits. */
enum setting_reader { BY_AGENT = 1, BY_HAPROXY = 2, BY_LAUNCHER = 4, BY_OFFLINE = 8, FROM_LAUNCHER = 16 };

enum { SETTING_FAILURE_CLOSED, SETTING_FAILURE_OPEN };
enum { SETTING_UPSTREAM_AUTO, SETTING_UPSTREAM_H1, SETTING_UPSTREAM_H2 };
enum { SETTING_SWITCH_FALSE, SETTING_SWITCH_TRUE };

enum { SETTING_CLIENT_AUTH_OPTIONAL, SETTING_CLIENT_AUTH_REQUIRED };
enum { SETTING_FINGERPRINTS_FALSE, SETTING_FINGERPRINTS_JA3, SETTING_FINGERPRINTS_TRUE };

/* STR, LIST and SECRET members are borrowed from the environment (or are constants), NUL-terminated, "" when unset. ENUM members are the index of
 * the word in its set. */
#define SETTING_TYPE_STR                 const char *
#define SETTING_TYPE_LIST                const char *
#define SETTING_TYPE_SECRET              const char *
#define SETTING_TYPE_DURATION            uint64_t
#define SETTING_TYPE_SIZE                uint64_t
#define SETTING_TYPE_COUNT               uint64_t
#define SETTING_TYPE_RATE                uint64_t
#define SETTING_TYPE_ENUM_CLIENT_AUTH    int
#define SETTING_TYPE_ENUM_FINGERPRINTS   int
#define SETTING_TYPE_ENUM_FAILURE        int
#define SETTING_TYPE_ENUM_UPSTREAM_PROTO int
#define SETTING_TYPE_ENUM_SWITCH         int
struct settings_edge {
#define SETTING_ROW(member, name, type, dflt, min, max, readers, meaning) SETTING_TYPE_##type member;
#include "schemas/settings.def"
};

enum settings_use { SETTINGS_SERVE, SETTINGS_RUN, SETTINGS_DOCTOR, SETTINGS_OFFLINE };

/* A socket's path in EDGE_RUN_DIR must fit a socket address with a temporary suffix, so the folder's own path is bounded. */
enum { SETTING_RUN_DIR_MAX = 80 };

/* Reads envp; of a name given twice the first counts. All faults at once: unknown names that begin with EDGE_ (with a suggestion),
 * refused names, empty and malformed values, what the use requires, for RUN also what `run` gives to the agents itself. OFFLINE reads
 * only rows and refused names marked BY_OFFLINE (the others keep their defaults), requires nothing and ignores other names.
 * DOCTOR takes the environment of RUN, requires nothing of it, and checks the addresses that it will ask.
 * Each error's text names the variable and says what would be right, its path is "/NAME"; *out is untouched when there is one. */
MUSTUSE bool settings_load(struct settings_edge *out, enum settings_use use, char *const envp[],
                           struct errlist *errors);
/* The value of a variable, NULL when it is not set. */
const char *settings_env(char *const envp[], const char *name);
/* The table for --help, at most 100 columns wide: by group name, default, unit or words, who reads it, meaning; then what is refused and what is
 * handed on. Without the rows of FROM_LAUNCHER, and without a SECRET's default. */
void settings_print(FILE *f);

/* Adds a fault for each address that `run` would listen on twice: of HAProxy's lists and of the agents. Names are compared as text. */
void settings_check_clashes(const struct settings_edge *s, struct errlist *errors);

/* Adds a fault for each of the settings of ingress that is none (common/policy/ingress.h), for RUN those of EDGE_PROXY_PROTOCOL as well, but where
 * that setting has one already. */
void settings_check_ingress(const struct settings_edge *s, enum settings_use use, struct errlist *errors);

/* Adds a fault for a VALKEY_URL that is none and for a VALKEY_TIMEOUT that EDGE_AGENT_TIMEOUT has no room for. */
void settings_check_store(const struct settings_edge *s, struct errlist *errors);

/* "http://host:port", "https://[::1]"; the port defaults to the scheme's. No user, path (but "/"), query or fragment. */
struct upstream_addr {
    bool tls;
    char host[256]; /* name, or address without brackets */
    uint16_t port;
};
MUSTUSE bool settings_split_upstream(const char *url, struct upstream_addr *out, struct err *e);

#endif
