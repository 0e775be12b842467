/* The deployment that settings describe, as expressions see it. */
#include "spoa/settings_deployment.h"

/* By ALLOW_REGEX. No viewer source and no header of the deployment's own can be configured yet. */
static const struct expr_deployment deployments[] = {{.allow_regex = false}, {.allow_regex = true}};

const struct expr_deployment *settings_deployment(const struct settings_edge *s)
{
    return &deployments[s->allow_regex == SETTING_SWITCH_TRUE];
}
