/* How requests reach this edge, as its settings describe it: the same for the agent and for commands that look at a policy. */
#ifndef SPOA_SETTINGS_DEPLOYMENT_H
#define SPOA_SETTINGS_DEPLOYMENT_H

#include "common/policy/ingress.h"
#include "spoa/settings.h"

/* Of settings that settings_load accepted for that use; main thread, at start. Lives as long as the process. warnings may be NULL. NULL: no memory. */
const struct ingress *settings_ingress(const struct settings_edge *s, enum settings_use use, struct errlist *warnings);

/* Who may open connections with a PROXY protocol header. *out lies in a. A fault for each entry that can't stay; false: no memory, which is one, too. */
MUSTUSE bool settings_balancers(const struct settings_edge *s, struct arena *a, struct addr_set *out, struct errlist *errors);

/* The same, each warning logged. For the process that people start: `run`, or `serve` without it. */
const struct ingress *settings_ingress_logged(const struct settings_edge *s, enum settings_use use);

#endif
