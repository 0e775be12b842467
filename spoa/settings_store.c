/* Where limits are counted: what VALKEY_URL and the time-outs around it must be. */
#include <inttypes.h>

#include "spoa/settings.h"
#include "spoa/store/target.h"

/* The agent answers at the latest this long before HAProxy gives up. */
enum { REPLY_MARGIN_MS = 200 };

void settings_check_store(const struct settings_edge *s, struct errlist *errors)
{
    struct valkey_target target;
    struct err e;

    err_clear(&e);
    if (s->valkey_url[0] != '\0') {
        if (valkey_target_parse(s->valkey_url, &target, &e))
            valkey_target_release(&target);
        else
            errlist_add(errors, ERR_SETTING, "/VALKEY_URL", "VALKEY_URL: %s", e.text);
    }
    if (s->valkey_timeout_ms + REPLY_MARGIN_MS > s->agent_timeout_ms)
        errlist_add(errors, ERR_SETTING, "/VALKEY_TIMEOUT",
                    "VALKEY_TIMEOUT: %" PRIu64 "ms is too long for an EDGE_AGENT_TIMEOUT of %" PRIu64 "ms: the decision needs %d ms of that itself",
                    s->valkey_timeout_ms, s->agent_timeout_ms, REPLY_MARGIN_MS);
}
