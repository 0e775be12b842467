/* Builds NOTIFY frames from rows and reads ACK frames back. */
#include "tests/unit/notify.h"

#include <stdlib.h>

#include "common/base/codec.h"
#include "common/base/varint.h"
#include "tests/unit/refuse_memory.h"

enum { FRAME_CAP = 128 * 1024, BIN_CAP = 64 * 1024 };

static uint64_t now_us(void *ctx)
{
    const struct notify_bench *b = ctx;
    return b->now_us;
}

static uint64_t now_ms(void *ctx)
{
    return now_us(ctx) / 1000;
}

static void released(void *ctx)
{
    (void) ctx;
}

static enum spop_status available(void *ctx)
{
    (void) ctx;
    return SPOP_STATUS_NORMAL;
}

/* --- frames --- */

static bool feed(struct spop_conn *c, struct str bytes)
{
    while (bytes.len > 0) {
        size_t room;
        char *at = spop_conn_input(c, &room);
        size_t n = bytes.len < room ? bytes.len : room;
        if (n == 0)
            return false;
        memcpy(at, bytes.p, n);
        if (!spop_conn_filled(c, n))
            return false;
        bytes = str_sub(bytes, n, bytes.len);
    }
    return true;
}

static bool greet(struct spop_conn *c, uint32_t frame_max)
{
    char storage[512];
    struct buf b;
    buf_init(&b, storage, sizeof storage);
    size_t begin = spop_put_begin(&b, SPOP_HAPROXY_HELLO, 0, 0);
    spop_put_kv_str(&b, "supported-versions", STR("2.0"));
    spop_put_kv_u32(&b, "max-frame-size", frame_max);
    spop_put_kv_str(&b, "capabilities", STR("pipelining"));
    spop_put_end(&b, begin);
    if (!feed(c, buf_str(&b)))
        return false;
    spop_conn_written(c, spop_conn_output(c).len);
    return true;
}

bool notify_bench_publish_policy(struct notify_bench *b, struct policy *policy)
{
    struct lease_slot *const slots[] = {&b->context.lease_slot};
    struct guard *guard = NULL;
    struct err e;
    err_clear(&e);
    return guard_new(&guard, policy, lease_newest_guard(&b->source), &e) && lease_publish(&b->source, slots, 1, policy, guard) &&
           lease_refresh(&b->context.lease_slot);
}

bool notify_bench_publish(struct notify_bench *b, const char *policy_file)
{
    struct errlist errors, warnings;
    struct policy *policy = NULL;
    if (!errlist_init(&errors, 0) || !errlist_init(&warnings, 0))
        return false;
    bool ok = policy_load(policy_file, &policy_options_any, &policy, &errors, &warnings);
    for (size_t i = 0; i < errors.n; i++)
        fprintf(stderr, "%s: %s: %s\n", policy_file, errors.items[i].path, errors.items[i].text);
    ok = ok && notify_bench_publish_policy(b, policy);
    errlist_release(&errors);
    errlist_release(&warnings);
    return ok;
}

bool notify_bench_connect(struct notify_bench *b, uint32_t frame_max)
{
    struct err e;
    err_clear(&e);
    spop_conn_free(&b->conn);
    const struct spop_handler handler = {.notify = request_notify, .availability = available, .ctx = &b->context};
    return spop_conn_new(&b->conn, &handler, &b->counters, &e) && greet(b->conn, frame_max);
}

static const char *text_of(const json_t *texts, const char *name)
{
    const char *text = json_string_value(json_object_get(texts, name));
    return text != NULL ? text : "";
}

bool notify_bench_reach(struct notify_bench *b, const json_t *texts)
{
    const struct ingress_text text = {
        .client_ip_source = texts == NULL ? "remote_addr" : text_of(texts, "client_ip_source"),
        .trusted_proxies = text_of(texts, "trusted_proxies"),
        .viewer_headers = text_of(texts, "viewer_headers"),
        .secret_header = text_of(texts, "secret_header"),
        .secrets = text_of(texts, "secrets"),
        .tls_here = texts == NULL || json_is_true(json_object_get(texts, "tls_here")),
    };
    struct errlist errors;
    if (!errlist_init(&errors, 0))
        return false;
    bool ok = ingress_read(&text, &b->arena, &b->ingress, &errors, NULL);
    for (size_t i = 0; i < errors.n; i++)
        fprintf(stderr, "%s\n", errors.items[i].text);
    errlist_release(&errors);
    return ok;
}

bool notify_bench_init(struct notify_bench *b, const char *policy_file)
{
    struct err e;
    err_clear(&e);
    memset(b, 0, sizeof *b);
    b->source.released = released;
    b->now_us = 1000000;
    b->clock = (struct clock){.mono_us = now_us, .real_ms = now_ms, .ctx = b};
    if (!rate_store_new(&b->store, 1000, &e))
        return false;
    const struct request_settings settings = {.ingress = &b->ingress, .store = b->store, .fleet_size = 1, .cap_ordinary = 1000, .cap_streams = 1000, .clock = &b->clock};
    request_context_init(&b->context, &settings);
    arena_init(&b->arena, 4096, 0);
    return notify_bench_reach(b, NULL) && notify_bench_connect(b, SPOP_FRAME_MAX) && (policy_file == NULL || notify_bench_publish(b, policy_file));
}

void notify_bench_release(struct notify_bench *b)
{
    spop_conn_free(&b->conn);
    request_context_release(&b->context);
    lease_reap(&b->source);
    rate_store_free(&b->store);
    arena_release(&b->arena);
}

/* --- arguments --- */

static void put_name(struct buf *b, const char *name)
{
    varint_put(b, strlen(name));
    buf_put_cstr(b, name);
}

static void put_bytes(struct buf *b, enum spop_type type, struct str value)
{
    buf_put_byte(b, (char) type);
    varint_put(b, value.len);
    buf_put(b, value);
}

static void put_ip(struct buf *b, const char *text)
{
    struct addr a;
    if (!addr_parse(str_of(text), &a))
        abort();
    bool v4 = addr_is_v4(&a);
    buf_put_byte(b, v4 ? SPOP_IPV4 : SPOP_IPV6);
    buf_put(b, (struct str){(const char *) a.b + (v4 ? 12 : 0), v4 ? 4 : 16});
}

static void put_headers(struct buf *b, const json_t *list)
{
    char storage[BIN_CAP];
    struct buf bin;
    buf_init(&bin, storage, sizeof storage);
    size_t i;
    json_t *pair;
    json_array_foreach(list, i, pair)
        headers_put_add(&bin, str_of(json_string_value(json_array_get(pair, 0))), str_of(json_string_value(json_array_get(pair, 1))));
    headers_end_add(&bin);
    put_bytes(b, SPOP_BIN, buf_str(&bin));
}

static void put_hex(struct buf *b, const char *hex)
{
    char storage[512];
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++)
        storage[i] = (char) (codec_hex_digit(hex[2 * i]) << 4 | codec_hex_digit(hex[2 * i + 1]));
    put_bytes(b, SPOP_BIN, (struct str){storage, n});
}

static void put_long(struct buf *b, size_t len)
{
    buf_put_byte(b, SPOP_STR);
    varint_put(b, len);
    for (size_t i = 0; i < len; i++)
        buf_put_byte(b, 'a');
}

static void put_value(struct buf *b, const json_t *v)
{
    if (json_is_string(v)) {
        put_bytes(b, SPOP_STR, (struct str){json_string_value(v), json_string_length(v)});
    } else if (json_is_integer(v)) {
        buf_put_byte(b, SPOP_INT32);
        varint_put(b, (uint64_t) json_integer_value(v));
    } else if (json_is_boolean(v)) {
        buf_put_byte(b, (char) (json_is_true(v) ? SPOP_BOOL | 0x10 : SPOP_BOOL));
    } else if (json_object_get(v, "bin") != NULL) {
        put_hex(b, json_string_value(json_object_get(v, "bin")));
    } else if (json_object_get(v, "length") != NULL) {
        put_long(b, (size_t) json_integer_value(json_object_get(v, "length")));
    } else if (json_object_get(v, "ip") != NULL) {
        put_ip(b, json_string_value(json_object_get(v, "ip")));
    } else if (json_object_get(v, "headers") != NULL) {
        put_headers(b, json_object_get(v, "headers"));
    } else {
        buf_put_byte(b, SPOP_NULL);
    }
}

static json_t *default_args(void)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:{s:s}, s:i, s:i, s:b, s:b, s:s, s:{s:[[s,s]]}}", "contract", 1, "method", "GET", "url", "/", "version", "1.1",
                     "src", "ip", "192.0.2.1", "src_port", 40000, "dst_port", 8080, "tls", 0, "native", 0, "id", "0123456789abcdef0123456789abcdef",
                     "headers", "headers", "host", "a.example");
}

static void put_args(struct buf *b, const json_t *row)
{
    json_t *args = default_args();
    json_object_update(args, json_object_get(row, "args"));
    json_object_update(args, json_object_get(row, "extra"));
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(row, "drop"), i, name)
        json_object_del(args, json_string_value(name));
    const char *twice = json_string_value(json_object_get(row, "twice"));

    buf_put_byte(b, (char) (json_object_size(args) + (twice != NULL ? 1 : 0)));
    const char *key;
    json_t *value;
    json_object_foreach(args, key, value)
    {
        put_name(b, key);
        put_value(b, value);
    }
    if (twice != NULL) {
        put_name(b, twice);
        put_value(b, json_object_get(args, twice));
    }
    json_decref(args);
}

/* --- the answer --- */

/* Entries of a binary operation list: strings of varint length, ended by empty ones. */
static json_t *list_entries(struct str in)
{
    json_t *entries = json_array();
    uint64_t len;
    while (varint_get(&in, &len) && len > 0 && len <= in.len) {
        json_array_append_new(entries, json_stringn(in.p, (size_t) len));
        in = str_sub(in, (size_t) len, in.len);
    }
    return entries;
}

static json_t *value_to_json(const struct spop_value *v)
{
    switch (v->type) {
    case SPOP_INT32:
    case SPOP_INT64:
        return json_integer(v->i);
    case SPOP_UINT32:
    case SPOP_UINT64:
        return json_integer((json_int_t) v->u);
    case SPOP_STR:
        return json_stringn(v->s.p, v->s.len);
    case SPOP_BIN:
        return list_entries(v->s);
    case SPOP_NULL:
    case SPOP_BOOL:
    case SPOP_IPV4:
    case SPOP_IPV6:
        break;
    }
    return json_null();
}

/* A set-var action of a transaction's or the process's scope; the latter's names begin with "proc.". */
static bool action_take(struct str *in, json_t *variables, json_t *order)
{
    struct str name;
    struct spop_value v;
    if (in->len < 3 || in->p[0] != 1 || in->p[1] != 3 || (in->p[2] != SPOP_SCOPE_txn && in->p[2] != SPOP_SCOPE_proc))
        return false;
    bool is_proc = in->p[2] == SPOP_SCOPE_proc;
    *in = str_sub(*in, 3, in->len);
    if (!spop_get_kv(in, &name, &v))
        return false;
    char key[64];
    snprintf(key, sizeof key, "%s%.*s", is_proc ? "proc." : "", STR_ARG(name));
    if (json_object_get(variables, key) != NULL)
        return false;
    json_object_set_new(variables, key, value_to_json(&v));
    json_array_append_new(order, json_string(key));
    return true;
}

json_t *notify_read(struct notify_bench *b)
{
    struct spop_conn *c = b->conn;
    struct str out = spop_conn_output(c);
    struct spop_frame frame;
    struct err e;
    err_clear(&e);
    if (out.len < SPOP_LENGTH_BYTES || !spop_frame_parse(str_sub(out, SPOP_LENGTH_BYTES, out.len), &frame, &e) || frame.type != SPOP_ACK ||
        frame.stream_id != NOTIFY_STREAM || frame.frame_id != NOTIFY_FRAME)
        return NULL;
    json_t *variables = json_object(), *order = json_array();
    struct str in = frame.payload;
    bool ok = in.len > 0;
    while (ok && in.len > 0)
        ok = action_take(&in, variables, order);
    json_t *answer = ok ? json_pack("{s:O, s:O}", "variables", variables, "order", order) : NULL;
    json_decref(variables);
    json_decref(order);
    spop_conn_written(c, out.len);
    return answer;
}

json_t *notify_send(struct notify_bench *b, const json_t *row)
{
    char *storage = malloc(FRAME_CAP);
    struct buf frame;
    buf_init(&frame, storage, FRAME_CAP);
    size_t begin = spop_put_begin(&frame, SPOP_NOTIFY, NOTIFY_STREAM, NOTIFY_FRAME);
    if (!json_is_integer(json_object_get(row, "messages"))) {
        put_name(&frame, "request");
        put_args(&frame, row);
    }
    frame.len -= (size_t) json_integer_value(json_object_get(row, "cut"));
    spop_put_end(&frame, begin);
    if (b->refuses)
        refuse_memory_of_ours(b->refuse_n);
    bool fed = !frame.full && feed(b->conn, buf_str(&frame));
    b->refused = b->refuses && refuse_memory_end();
    b->refuses = false;
    free(storage);
    return fed && spop_conn_n_pending(b->conn) == 0 ? notify_read(b) : NULL;
}
