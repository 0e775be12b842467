/* From HAProxy's record and the agent's part of it to a line of the access log. */
#include "spoa/record/access_log.h"

#include <string.h>

#include "common/http/target.h"

/* A member's name with what stands around it: the names are ours and need no escaping. */
#define KEY(name) STR(",\"" name "\":")

void access_log_init(struct access_log *log, unsigned agent_index, struct writer *writer, const struct clock *clock)
{
    memset(log, 0, sizeof *log);
    log->agent_index = agent_index;
    log->writer = writer;
    log->clock = clock;
    arena_init(&log->scratch, 4096, 0);
}

void access_log_release(struct access_log *log)
{
    arena_release(&log->scratch);
}

static void put_text(struct buf *b, struct str key, struct str value)
{
    buf_put(b, key);
    buf_put_json(b, value);
}

/* inside: of a JSON string. */
static void put_inside(struct buf *b, struct str key, struct str inside)
{
    buf_put(b, key);
    buf_put_byte(b, '"');
    buf_put(b, inside);
    buf_put_byte(b, '"');
}

static void put_number(struct buf *b, struct str key, int64_t value)
{
    buf_put(b, key);
    buf_put_i64(b, value);
}

/* ids: joined by ','. */
static void put_ids(struct buf *b, struct str key, struct str ids)
{
    if (ids.len == 0)
        return;
    buf_put(b, key);
    buf_put_byte(b, '[');
    while (ids.len > 0) {
        size_t comma = str_find_byte(ids, ',');
        struct str id = str_sub(ids, 0, comma);
        buf_put_json(b, id);
        ids = str_sub(ids, comma == SIZE_MAX ? ids.len : comma + 1, ids.len);
        if (ids.len > 0)
            buf_put_byte(b, ',');
    }
    buf_put_byte(b, ']');
}

/* The name that rules saw: lower case, without port, brackets and trailing dot. A name that had to be escaped is none and stays as it is. */
static void put_host(struct buf *b, struct str inside, struct arena *scratch)
{
    struct str normal;
    if (str_find_byte(inside, '\\') == SIZE_MAX && target_host(inside, scratch, &normal))
        inside = normal;
    put_inside(b, KEY("server.address"), inside);
}

/* 0 when the client left before it had a response: HAProxy then names what it would have sent. */
static int64_t status_of(const struct record *r)
{
    struct str ended = r->fields[RECORD_TERMINATION];
    bool client_left = ended.len == 2 && ended.p[0] == 'C';
    bool in_response = client_left && (ended.p[1] == 'D' || ended.p[1] == 'L');
    return client_left && !in_response ? 0 : record_number(r, RECORD_STATUS, 0);
}

void access_log_render(const struct record *r, uint64_t ended_ms, struct arena *scratch, struct buf *out)
{
    char time[25];
    clock_format_utc(ended_ms, time);
    put_inside(out, STR("{\"time\":"), (struct str){time, sizeof time - 1});
    put_inside(out, STR(",\"level\":\"info\",\"msg\":\"access\",\"edge.decision\":"), str_of(decision_name(r->decision)));
    put_number(out, KEY("http.response.status_code"), status_of(r));
    put_inside(out, KEY("http.request.method"), r->rec.method);
    put_host(out, r->rec.host, scratch);
    put_inside(out, KEY("url.path"), r->rec.path);
    if (r->rec.client_ip.len > 0)
        put_text(out, KEY("client.address"), r->rec.client_ip);
    put_number(out, KEY("edge.config_version"), r->rec.config_version);
    put_ids(out, KEY("edge.config_rules"), r->rec.config_rules);
    put_ids(out, KEY("edge.request_header_rules"), r->rec.header_rules);
    if (r->rec.rate_rule.len > 0)
        put_text(out, KEY("edge.rate_limit_rule"), r->rec.rate_rule);
    buf_put_cstr(out, str_eq(r->fields[RECORD_ANSWERED], STR("true")) ? ",\"edge.upstream_answered\":true" : ",\"edge.upstream_answered\":false");
    put_text(out, KEY("request_id"), r->rec.request_id);
    put_number(out, KEY("duration_ms"), record_number(r, RECORD_TOTAL_MS, 0));
    buf_put_byte(out, '}');
}

void access_log_record(void *ctx, struct str line)
{
    struct access_log *log = ctx;
    struct record r;
    if (!record_parse(line, &r)) {
        atomic_fetch_add(&log->n_malformed, 1);
        return;
    }
    if (!r.has_rec) {
        if (log->agent_index == 0)
            atomic_fetch_add(&log->n_without_verdict, 1);
        return;
    }
    if (r.rec.agent != log->agent_index)
        return;
    atomic_fetch_add(&log->n_own, 1);

    char storage[ACCESS_LINE_MAX];
    struct buf out;
    buf_init(&out, storage, sizeof storage);
    access_log_render(&r, clock_real_ms(log->clock), &log->scratch, &out);
    arena_reset(&log->scratch);
    if (!out.full)
        writer_put(log->writer, buf_str(&out));
    else
        atomic_fetch_add(&log->n_malformed, 1);
}
