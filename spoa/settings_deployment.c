/* The settings of ingress: their faults, and what they say once they have none. */
#include "spoa/settings_deployment.h"

#include "common/base/log.h"

enum { BLOCK_BYTES = 4096, LIMIT_BYTES = 1024 * 1024 };

static bool read_ingress(const struct settings_edge *s, enum settings_use use, struct arena *a, struct ingress *out, struct errlist *errors,
                         struct errlist *warnings)
{
    const struct ingress_text text = {
        .client_ip_source = s->client_ip_source,
        .trusted_proxies = s->trusted_proxies,
        .viewer_headers = s->viewer_headers,
        .secret_header = s->ingress_secret_header,
        .secrets = s->ingress_secret,
        .trust_any_peer = s->trust_any_peer == SETTING_SWITCH_TRUE,
        .allow_regex = s->allow_regex == SETTING_SWITCH_TRUE,
        .tls_here = s->tls_listen[0] != '\0',
        .ja3 = s->tls_fingerprints != SETTING_FINGERPRINTS_FALSE,
        .ja4 = s->tls_fingerprints == SETTING_FINGERPRINTS_TRUE,
        .client_certs = s->tls_client_ca[0] != '\0',
        .look_only = use == SETTINGS_OFFLINE,
    };

    return ingress_read(&text, a, out, errors, warnings);
}

static bool has_fault(const struct errlist *errors, const char *path)
{
    for (size_t i = 0; i < errors->n; i++)
        if (strcmp(errors->items[i].path, path) == 0)
            return true;
    return false;
}

bool settings_balancers(const struct settings_edge *s, struct arena *a, struct addr_set *out, struct errlist *errors)
{
    if (ingress_read_peers("EDGE_PROXY_PROTOCOL", s->proxy_protocol, s->trust_any_peer == SETTING_SWITCH_TRUE, a, out, errors))
        return true;
    errlist_add(errors, ERR_NO_MEMORY, "", "no memory to read EDGE_PROXY_PROTOCOL");
    return false;
}

/* What is found, but where that setting has a fault already. */
static void add_found(struct errlist *errors, const struct errlist *found)
{
    const struct errlist earlier = {.items = errors->items, .n = errors->n};

    for (size_t i = 0; i < found->n; i++)
        if (!has_fault(&earlier, found->items[i].path))
            errlist_add_err(errors, &found->items[i]);
    errors->n_dropped += found->n_dropped;
}

/* A setting that could not be read at all is unset here, and what follows from that would only mislead. */
void settings_check_ingress(const struct settings_edge *s, enum settings_use use, struct errlist *errors)
{
    struct ingress ignored;
    struct addr_set balancers;
    struct errlist found;
    struct arena scratch;

    if (!errlist_init(&found, 0)) {
        errlist_add(errors, ERR_NO_MEMORY, "", "no memory to read the settings");
        return;
    }
    arena_init(&scratch, BLOCK_BYTES, LIMIT_BYTES);
    (void)!read_ingress(s, use, &scratch, &ignored, &found, NULL); /* what is wrong is in found */
    if (use == SETTINGS_RUN)
        (void)!settings_balancers(s, &scratch, &balancers, &found);
    add_found(errors, &found);
    arena_release(&scratch);
    errlist_release(&found);
}

const struct ingress *settings_ingress(const struct settings_edge *s, enum settings_use use, struct errlist *warnings)
{
    static struct arena process;
    struct ingress *out;
    struct errlist errors;

    if (process.limit_bytes == 0)
        arena_init(&process, BLOCK_BYTES, 0);
    out = ARENA_NEW(&process, struct ingress);
    if (out == NULL || !errlist_init(&errors, 0))
        return NULL;
    if (!read_ingress(s, use, &process, out, &errors, warnings))
        out = NULL;
    errlist_release(&errors);
    return out;
}

const struct ingress *settings_ingress_logged(const struct settings_edge *s, enum settings_use use)
{
    const struct ingress *out;
    struct errlist warnings;

    if (!errlist_init(&warnings, 0))
        return NULL;
    out = settings_ingress(s, use, &warnings);
    for (size_t i = 0; i < warnings.n; i++)
        log_err(LOG_LEVEL_WARN, "setting", &warnings.items[i]);
    errlist_release(&warnings);
    return out;
}
