/* The deployment that settings describe, as expressions see it: the same for the agent and for commands that look at a policy. */
#ifndef SPOA_SETTINGS_DEPLOYMENT_H
#define SPOA_SETTINGS_DEPLOYMENT_H

#include "common/expr/expr.h"
#include "spoa/settings.h"

/* Lives as long as the process. */
const struct expr_deployment *settings_deployment(const struct settings_edge *s);

#endif
