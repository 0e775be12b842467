/* Addresses that two listeners of one edge would have to share. */
#include <stdio.h>

#include "common/base/parse.h"
#include "common/net/addr.h"
#include "spoa/settings.h"

enum { LISTENERS_MAX = 64 }; /* more are left to HAProxy, which can't bind what is bound */

struct listener {
    const char *setting;
    struct listen_addr at;
    unsigned agent; /* of EDGE_INTERNAL_LISTEN */
};

struct listeners {
    struct listener v[LISTENERS_MAX];
    size_t n;
    struct errlist *errors;
};

static bool is_any(struct str host)
{
    struct addr a;
    static const struct addr none = {{0}};

    return host.len == 0 || str_eq(host, STR("0.0.0.0")) || (addr_parse(host, &a) && addr_cmp(&a, &none) == 0);
}

static bool is_v4(struct str host)
{
    struct addr a;

    return addr_parse(host, &a) && addr_is_v4(&a);
}

static bool is_v6(struct str host)
{
    struct addr a;

    return addr_parse(host, &a) && !addr_is_v4(&a);
}

/* All addresses of IPv6 are those of IPv4, too: HAProxy binds with v4v6. */
static bool is_shared(const struct listen_addr *a, const struct listen_addr *b)
{
    struct addr x, y;

    if (a->port != b->port || a->port == 0)
        return false;
    if (is_any(a->host))
        return !(is_v4(a->host) && is_v6(b->host) && !is_any(b->host));
    if (is_any(b->host))
        return !(is_v4(b->host) && is_v6(a->host));
    if (addr_parse(a->host, &x) && addr_parse(b->host, &y))
        return addr_cmp(&x, &y) == 0;
    return str_eq_nocase(a->host, b->host);
}

static void say(struct listeners *l, const struct listener *other, const struct listener *added)
{
    const bool is_v6_text = str_find_byte(added->at.host, ':') != SIZE_MAX;
    char path[ERR_PATH_MAX], agent[48] = "";

    snprintf(path, sizeof(path), "/%s", added->setting);
    if (added->agent > 0)
        snprintf(agent, sizeof(agent), " (of agent %u, port + %u)", added->agent, added->agent);
    errlist_add(l->errors, ERR_SETTING, path, "%s: %s%.*s%s:%u%s is taken by %s already; give it another address or port", added->setting,
                is_v6_text ? "[" : "", STR_ARG(str_cut_utf8(added->at.host, 64)), is_v6_text ? "]" : "", added->at.port, agent,
                other->setting);
}

static void add(struct listeners *l, const struct listener *added)
{
    for (size_t i = 0; i < l->n; i++)
        if (is_shared(&l->v[i].at, &added->at)) {
            say(l, &l->v[i], added);
            return;
        }
    if (l->n < LISTENERS_MAX)
        l->v[l->n++] = *added;
}

/* What is no address has its fault already. */
static void add_list(struct listeners *l, const char *setting, const char *list)
{
    struct str rest = str_of(list);

    while (rest.len > 0) {
        const struct str part = str_sub(rest, 0, str_find_byte(rest, ','));
        struct listener added = {.setting = setting};
        struct err e;

        err_clear(&e);
        if (parse_listen(str_trim(part), &added.at, "", &e))
            add(l, &added);
        rest = str_sub(rest, part.len + 1, rest.len);
    }
}

static void add_agents(struct listeners *l, const struct settings_edge *s)
{
    struct listener added = {.setting = "EDGE_INTERNAL_LISTEN"};
    struct err e;

    err_clear(&e);
    if (!parse_listen(str_of(s->internal_listen), &added.at, "", &e) || added.at.port == 0)
        return;
    for (; added.agent < s->agents; added.agent++) {
        add(l, &added);
        if (added.at.port++ == UINT16_MAX)
            return;
    }
}

void settings_check_clashes(const struct settings_edge *s, struct errlist *errors)
{
    struct listeners l = {.errors = errors};

    add_list(&l, "EDGE_LISTEN", s->listen);
    add_list(&l, "EDGE_TLS_LISTEN", s->tls_listen);
    add_list(&l, "EDGE_HEALTH_LISTEN", s->health_listen);
    add_agents(&l, s);
}
