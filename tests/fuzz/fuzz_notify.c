/* A NOTIFY with any payload: exactly one ACK, well-formed, with a record that reads back and ok last. */
#include <string.h>

#include "spoa/record/rec.h"
#include "spoa/request/request.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static struct lease_source source;
static struct rate_store *store;
static struct request_context context;
static struct spop_counters counters;

static void released(void *ctx)
{
    (void) ctx;
}

static enum spop_status available(void *ctx)
{
    (void) ctx;
    return SPOP_STATUS_NORMAL;
}

static void set_up(void)
{
    struct err e;
    struct errlist errors, warnings;
    struct policy *policy = NULL;
    struct guard *guard = NULL;
    struct lease_slot *const slots[] = {&context.lease_slot};
    err_clear(&e);
    GUARANTEE(rate_store_new(&store, 1000, &e));
    static struct ingress ingress; /* the peer is the client */
    const struct request_settings settings = {.ingress = &ingress, .store = store, .fleet_size = 1, .cap_ordinary = 1000, .cap_streams = 1000, .clock = &clock_system};
    request_context_init(&context, &settings);
    source.released = released;
    GUARANTEE(errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    GUARANTEE(policy_load("tests/cases/request/policy.json", &policy_options_any, &policy, &errors, &warnings));
    GUARANTEE(guard_new(&guard, policy, NULL, &e) && lease_publish(&source, slots, 1, policy, guard) && lease_refresh(&context.lease_slot));
    errlist_release(&errors);
    errlist_release(&warnings);
}

static void feed(struct spop_conn *c, struct str bytes)
{
    while (bytes.len > 0) {
        size_t room;
        char *to = spop_conn_input(c, &room);
        size_t n = bytes.len < room ? bytes.len : room;
        memcpy(to, bytes.p, n);
        GUARANTEE(spop_conn_filled(c, n));
        bytes = str_sub(bytes, n, bytes.len);
    }
}

static void check_ack(struct str out)
{
    struct spop_frame frame;
    struct str name = STR_NONE;
    struct spop_value v;
    struct rec rec;
    bool has_rec = false;
    struct err e;
    err_clear(&e);
    GUARANTEE(out.len > SPOP_LENGTH_BYTES && spop_frame_parse(str_sub(out, SPOP_LENGTH_BYTES, out.len), &frame, &e));
    GUARANTEE(frame.type == SPOP_ACK && frame.stream_id == 1 && frame.frame_id == 1);
    GUARANTEE(frame.payload.len <= REQUEST_ACK_MAX);
    for (struct str in = frame.payload; in.len > 0;) {
        GUARANTEE(in.len > 3 && in.p[0] == 1 && in.p[1] == 3);
        bool is_txn = in.p[2] == SPOP_SCOPE_txn;
        GUARANTEE(is_txn || in.p[2] == SPOP_SCOPE_proc);
        in = str_sub(in, 3, in.len);
        GUARANTEE(spop_get_kv(&in, &name, &v));
        if (is_txn && str_eq(name, STR("rec"))) {
            GUARANTEE(v.s.len <= REC_MAX && rec_parse(v.s, &rec));
            has_rec = true;
        }
    }
    GUARANTEE(has_rec && str_eq(name, STR("ok")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char storage[SPOP_FRAME_MAX + SPOP_LENGTH_BYTES];
    struct spop_handler handler = {.notify = request_notify, .availability = available, .ctx = &context};
    struct spop_conn *c = NULL;
    struct err e;
    struct buf b;
    err_clear(&e);
    if (store == NULL)
        set_up();
    GUARANTEE(spop_conn_new(&c, &handler, &counters, &e));

    buf_init(&b, storage, sizeof storage);
    size_t begin = spop_put_begin(&b, SPOP_HAPROXY_HELLO, 0, 0);
    spop_put_kv_str(&b, "supported-versions", STR("2.0"));
    spop_put_kv_u32(&b, "max-frame-size", SPOP_FRAME_MAX);
    spop_put_kv_str(&b, "capabilities", STR("pipelining"));
    spop_put_end(&b, begin);
    feed(c, buf_str(&b));
    spop_conn_written(c, spop_conn_output(c).len);

    buf_init(&b, storage, sizeof storage);
    begin = spop_put_begin(&b, SPOP_NOTIFY, 1, 1);
    buf_put(&b, (struct str){(const char *) data, size});
    spop_put_end(&b, begin);
    if (!b.full) {
        feed(c, buf_str(&b));
        GUARANTEE(spop_conn_n_pending(c) == 0);
        check_ack(spop_conn_output(c));
    }
    spop_conn_free(&c);
    return 0;
}
