/* The environments of the children: an explicit list each, derived from the settings. */
#include "spoa/launcher/environment.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/base/parse.h"

/* HEADER_BYTES_MAX: of MAX_HEADER_BYTES, and its default. Above what is set lower HAProxy has a rule, there its buffer is the limit. */
enum { VARIABLES_MAX = 64, HEADER_BYTES_MAX = 60 * 1024 };

#define NOT_ALNUM "[^a-z0-9]"
/* The longest that a character of a name becomes in a pattern, and what stands around a name. */
enum { PATTERN_MAX = sizeof "[^a-z0-9-]" - 1, PATTERN_AROUND = sizeof "|.*" - 1 };

static const struct {
    const char *name;
    unsigned readers;
} rows[] = {
#define SETTING_ROW(member, name, type, dflt, min, max, readers, meaning) {name, readers},
#include "schemas/settings.def"
}, passed[] = {
#define SETTING_PASSED(name, readers, meaning) {name, readers},
#include "schemas/settings.def"
};

struct list {
    struct arena *arena;
    char *v[VARIABLES_MAX + 1];
    size_t n;
    bool failed;
};

static void PRINTF_LIKE(3, 4) put(struct list *l, const char *name, const char *fmt, ...)
{
    const size_t name_len = strlen(name);
    va_list args, again;
    int len;
    char *entry;

    va_start(args, fmt);
    va_copy(again, args);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    entry = len < 0 || l->n == VARIABLES_MAX ? NULL : arena_take_bytes(l->arena, name_len + (size_t)len + 2);
    if (entry == NULL) {
        l->failed = true;
    } else {
        memcpy(entry, name, name_len);
        entry[name_len] = '=';
        (void)vsnprintf(entry + name_len + 1, (size_t)len + 1, fmt, again);
        l->v[l->n++] = entry;
    }
    va_end(again);
}

static void put_u64(struct list *l, const char *name, uint64_t value)
{
    put(l, name, "%ju", (uintmax_t)value);
}

/* Copies a variable of the launcher's environment, if it is there. */
static void pass(struct list *l, char *const envp[], const char *name)
{
    const char *value = settings_env(envp, name);

    if (value != NULL)
        put(l, name, "%s", value);
}

/* What is no setting of ours but read by a child's libraries. */
static void pass_on(struct list *l, char *const envp[], enum setting_reader child)
{
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
        if ((passed[i].readers & child) != 0)
            pass(l, envp, passed[i].name);
}

static bool finish(struct list *l, char ***out)
{
    char **v = l->failed ? NULL : ARENA_NEW_N(l->arena, l->n + 1, char *);

    if (v == NULL)
        return false;
    memcpy(v, l->v, l->n * sizeof(*v));
    *out = v;
    return true;
}

/* One address as a `bind ... v4v6` line takes it: all addresses are those of both families where there are two. */
static void put_bind(struct buf *b, struct str text, bool has_ipv6)
{
    struct listen_addr at;
    struct err e;

    err_clear(&e);
    if (!parse_listen(str_trim(text), &at, "", &e)) {
        b->full = true; /* settings_load let only well-formed lists pass */
        return;
    }
    if (at.host.len == 0)
        buf_put(b, has_ipv6 ? STR("[::]") : STR("0.0.0.0"));
    else if (str_find_byte(at.host, ':') != SIZE_MAX)
        buf_printf(b, "[%.*s]", STR_ARG(at.host));
    else
        buf_put(b, at.host);
    buf_put_byte(b, ':');
    buf_put_u64(b, at.port);
}

static void put_binds(struct list *l, const char *name, const char *text, bool has_ipv6)
{
    const struct str whole = str_of(text);
    const size_t cap = 8 * whole.len + 64; /* ":80," becomes "0.0.0.0:80," */
    struct str part;
    struct buf b;

    if (!arena_take_buf(l->arena, cap, &b)) {
        l->failed = true;
        return;
    }
    for (size_t at = 0; at <= whole.len; at += part.len + 1) {
        const struct str tail = str_sub(whole, at, whole.len);

        part = str_sub(tail, 0, str_find_byte(tail, ','));
        if (at > 0)
            buf_put_byte(&b, ',');
        put_bind(&b, part, has_ipv6);
    }
    if (b.full)
        l->failed = true;
    else
        put(l, name, "%.*s", STR_ARG(buf_str(&b)));
}

bool environment_has_hop(const struct deployment *d)
{
    return d->ingress->handshake && d->settings.tls_fingerprints == SETTING_FINGERPRINTS_TRUE;
}

/* What is asked of a handshake, and kept of it where it says who the client is. */
static void put_tls(struct list *l, const struct deployment *d)
{
    put_binds(l, "EDGE_TLS_LISTEN", d->settings.tls_listen, d->has_ipv6);
    put(l, "EDGE_TLS_CERT", "%s", d->settings.tls_cert);
    if (d->settings.tls_client_ca[0] != '\0')
        put(l, "EDGE_TLS_CLIENT_CA", "%s", d->settings.tls_client_ca);
    if (d->settings.tls_client_auth == SETTING_CLIENT_AUTH_REQUIRED)
        put(l, "EDGE_TLS_CLIENT_REQUIRED", "1");
    if (d->ingress->handshake && d->settings.tls_fingerprints != SETTING_FINGERPRINTS_FALSE)
        put(l, "EDGE_TLS_FINGERPRINTS", "1");
    if (environment_has_hop(d))
        put(l, "EDGE_TLS_HOP", "1");
}

static void put_listeners(struct list *l, const struct deployment *d)
{
    put_binds(l, "EDGE_LISTEN", d->settings.listen, d->has_ipv6);
    put_binds(l, "EDGE_HEALTH_LISTEN", d->settings.health_listen, d->has_ipv6);
    if (d->settings.tls_listen[0] != '\0')
        put_tls(l, d);
}

/* HAProxy counts idle connections for each server, so each of the four gets a part of the whole; plain requests, which leave most of
 * them, get what is left, so that even a whole of 1 keeps one. */
static void put_idle(struct list *l, uint64_t whole)
{
    const uint64_t other = whole / 4;

    put_u64(l, "EDGE_UPSTREAM_IDLE_PLAIN", whole - 2 * other);
    put_u64(l, "EDGE_UPSTREAM_IDLE_BODY", other);
    /* Of two backends: `stream` and `stream_body`. */
    put_u64(l, "EDGE_UPSTREAM_IDLE_STREAM", other / 2);
}

static void put_upstream(struct list *l, const struct deployment *d)
{
    const bool is_v6 = strchr(d->upstream.host, ':') != NULL;

    put(l, "EDGE_UPSTREAM_ADDR", is_v6 ? "[%s]:%u" : "%s:%u", d->upstream.host, (unsigned)d->upstream.port);
    put_u64(l, "EDGE_UPSTREAM_CONNECT_TIMEOUT_MS", d->settings.connect_timeout_ms);
    put_idle(l, d->settings.upstream_max_idle);
    if (d->upstream.tls)
        put(l, "EDGE_UPSTREAM_TLS", "1");
    if (d->settings.upstream_proto == SETTING_UPSTREAM_H1)
        put(l, "EDGE_UPSTREAM_H1", "1");
    if (d->settings.upstream_proto == SETTING_UPSTREAM_H2)
        put(l, "EDGE_UPSTREAM_H2", "1");
}

static void put_agents(struct list *l, const struct deployment *d)
{
    put(l, "EDGE_AGENT_0", "unix@%s/agent-0.sock", d->run_dir);
    put(l, "EDGE_RECORDS_0", "unix@%s/records-0.sock", d->run_dir);
    if (d->settings.agents == 2) {
        put(l, "EDGE_AGENT_1", "unix@%s/agent-1.sock", d->run_dir);
        put(l, "EDGE_RECORDS_1", "unix@%s/records-1.sock", d->run_dir);
    }
    if (d->settings.agents_active == 2)
        put(l, "EDGE_AGENT_1_ACTIVE", "1");
    put_u64(l, "EDGE_AGENT_TIMEOUT_MS", d->settings.agent_timeout_ms);
    if (d->settings.on_agent_failure == SETTING_FAILURE_OPEN)
        put(l, "EDGE_FAIL_OPEN", "1");
}

/* A header's name as a regular expression; other: for a character that is no letter or digit. */
static void put_name_pattern(struct buf *b, struct str name, struct str other)
{
    for (size_t i = 0; i < name.len; i++) {
        if (ascii_is_alpha(name.p[i]) || ascii_is_digit(name.p[i]))
            buf_put_byte(b, name.p[i]);
        else
            buf_put(b, other);
    }
}

/* What is stripped from every request, twins included. What the front says to the edge is nobody else's to say, nor the upstream's to hear: its
 * names are stripped like the edge's own. */
static void put_strip(struct list *l, const struct ingress *ingress)
{
    static const struct {
        struct str name, other, end;
    } stripped[] = {
#define STRIPPED_HEADER(text) {{(text), sizeof(text) - 1}, {NOT_ALNUM, sizeof(NOT_ALNUM) - 1}, {"|", 1}},
#define STRIPPED_PREFIX(text) {{(text), sizeof(text) - 1}, {NOT_ALNUM, sizeof(NOT_ALNUM) - 1}, {".*|", 3}},
#define STRIPPED_TWINS(text) {{(text), sizeof(text) - 1}, {"[^a-z0-9-]", 10}, {"|", 1}},
#include "schemas/stripped_headers.def"
#undef STRIPPED_HEADER
#undef STRIPPED_PREFIX
#undef STRIPPED_TWINS
    };
    const size_t n = sizeof stripped / sizeof stripped[0];
    size_t cap = sizeof "^()$";
    struct buf b;

    for (size_t i = 0; i < n; i++)
        cap += PATTERN_AROUND + PATTERN_MAX * stripped[i].name.len;
    for (size_t i = 0; i < ingress->n_own_headers; i++)
        cap += PATTERN_AROUND + PATTERN_MAX * ingress->own_headers[i].len;
    if (!arena_take_buf(l->arena, cap, &b)) {
        l->failed = true;
        return;
    }
    buf_put(&b, STR("^("));
    for (size_t i = 0; i < n; i++) {
        put_name_pattern(&b, stripped[i].name, stripped[i].other);
        buf_put(&b, stripped[i].end);
    }
    for (size_t i = 0; i < ingress->n_own_headers; i++) {
        put_name_pattern(&b, ingress->own_headers[i], STR(NOT_ALNUM));
        buf_put_byte(&b, '|');
    }
    b.len--; /* the last '|' */
    buf_put(&b, STR(")$"));
    put(l, "EDGE_STRIP", "%.*s", STR_ARG(buf_str(&b)));
}

static void put_identity(struct list *l, const struct deployment *d)
{
    const uint32_t told = 1U << EXPR_SOURCE_COUNTRY | 1U << EXPR_SOURCE_CONTINENT | 1U << EXPR_SOURCE_ASNUM | 1U << EXPR_SOURCE_JA4;

    if (d->balancers.n > 0)
        put(l, "EDGE_PROXY_PROTOCOL", "%s/" ENVIRONMENT_PROXY_PROTOCOL, d->run_dir);
    if (d->ingress->trusted.n > 0)
        put(l, "EDGE_TRUSTED_PROXIES", "%s/" ENVIRONMENT_TRUSTED_PROXIES, d->run_dir);
    if ((d->ingress->deployment.sources & told) != 0)
        put(l, "EDGE_VIEWER", "1");
    put_strip(l, d->ingress);
}

bool environment_haproxy(const struct deployment *d, struct arena *a, char ***out)
{
    struct list l = {.arena = a};

    pass_on(&l, d->envp, BY_HAPROXY);
    put(&l, "EDGE_RUN_DIR", "%s", d->run_dir);
    put(&l, "EDGE_HAPROXY_DIR", "%s", d->haproxy_dir);
    put_listeners(&l, d);
    put_upstream(&l, d);
    put_agents(&l, d);
    put_u64(&l, "EDGE_BODY_LIMIT", d->settings.body_limit);
    if (d->settings.max_header_bytes < HEADER_BYTES_MAX)
        put_u64(&l, "EDGE_MAX_HEADER_BYTES", d->settings.max_header_bytes);
    put_u64(&l, "EDGE_CAP_ORDINARY", d->max_inflight);
    put_u64(&l, "EDGE_CAP_STREAMS", d->settings.max_streams);
    put_u64(&l, "EDGE_MAXCONN", d->maxconn);
    if (d->settings.haproxy_threads > 0)
        put_u64(&l, "EDGE_THREADS", d->settings.haproxy_threads);
    put_identity(&l, d);
    return finish(&l, out);
}

/* Rows that agents read but whose value is the launcher's to say. */
static bool is_decided_here(const char *name)
{
    return strcmp(name, "EDGE_RUN_DIR") == 0 || strcmp(name, "MAX_INFLIGHT") == 0 || strcmp(name, "EXPECTED_REPLICAS") == 0;
}

bool environment_agent(const struct deployment *d, struct agent_part part, struct arena *a, char ***out)
{
    struct list l = {.arena = a};

    pass_on(&l, d->envp, BY_AGENT);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((rows[i].readers & BY_AGENT) != 0 && (rows[i].readers & FROM_LAUNCHER) == 0 &&
            !is_decided_here(rows[i].name))
            pass(&l, d->envp, rows[i].name);
    put(&l, "EDGE_RUN_DIR", "%s", d->run_dir);
    put_u64(&l, "MAX_INFLIGHT", d->max_inflight);
    /* This edge's own active agents are among those that share the limits. */
    put_u64(&l, "EXPECTED_REPLICAS",
            d->settings.expected_replicas > d->settings.agents_active ? d->settings.expected_replicas : d->settings.agents_active);
    put_u64(&l, "EDGE_AGENT_INDEX", part.index);
    put(&l, "EDGE_READY_FD", "%d", part.ready_fd);
    if (part.takes_over)
        put(&l, "EDGE_TAKES_OVER", "1");
    return finish(&l, out);
}
