/* The environments of the children: an explicit list each, derived from the settings. */
#ifndef SPOA_LAUNCHER_ENVIRONMENT_H
#define SPOA_LAUNCHER_ENVIRONMENT_H

#include "common/base/arena.h"
#include "common/policy/ingress.h"
#include "spoa/settings.h"

/* Everything an edge is started with. Constant once built; all pointers outlive the launcher's loop. */
struct deployment {
    struct settings_edge settings;
    char *const *envp; /* the launcher's own environment */
    struct upstream_addr upstream;
    const struct ingress *ingress; /* who in front is trusted */
    struct addr_set balancers;     /* EDGE_PROXY_PROTOCOL; none: n is 0 */
    const char *haproxy;     /* absolute path of the binary */
    const char *haproxy_dir; /* absolute path */
    const char *run_dir;     /* absolute path */
    const char *self;        /* path of this program's binary, which agents are started from */
    uint64_t max_inflight, maxconn;
    bool has_ipv6;
};

/* Files in run_dir with the peers that haproxy.cfg looks for. */
#define ENVIRONMENT_TRUSTED_PROXIES "trusted-proxies"
#define ENVIRONMENT_PROXY_PROTOCOL  "proxy-protocol"

/* TLS connections take one more hop inside HAProxy (EDGE_TLS_HOP in haproxy/README.md). */
bool environment_has_hop(const struct deployment *d);

/* Both: NULL-terminated, in the arena; false only when memory is refused. */

/* haproxy.cfg's variables, what its libraries read (time zone, certificate stores), and nothing else. */
MUSTUSE bool environment_haproxy(const struct deployment *d, struct arena *a, char ***out);
/* What the launcher decides for one process: EDGE_AGENT_INDEX, EDGE_READY_FD, EDGE_TAKES_OVER. */
struct agent_part {
    unsigned index;
    int ready_fd;
    bool takes_over;
};
/* The settings that agents read, as they were given, and its part. */
MUSTUSE bool environment_agent(const struct deployment *d, struct agent_part part, struct arena *a, char ***out);

#endif
