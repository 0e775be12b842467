/* The ACK: what HAProxy shall do, as variables; exactly one for every NOTIFY. */
#include "spoa/request/contract.h"
#include "spoa/request/managed.h"
#include "spoa/request/process_vars.h"
#include "spoa/request/record_part.h"
#include "spoa/request/vars.h"

enum {
    OK_ROOM = 16,
    PREFLIGHT_STATUS = 204,
    UPSTREAM_TIMEOUT_MS = 30000, /* haproxy.cfg's own */
};

/* Answered while there is no policy whose template could be used. */
static const char fallback_body[] = "{\"error\":\"unavailable\"}";
static const char fallback_type[] = "application/json";

/* The client's address; the peer's where it could not be told who the client is. */
static struct str client_text(const struct request *r, char text[static ADDR_TEXT_MAX])
{
    if (r->view.facts.has_ip)
        return (struct str){text, addr_render(&r->view.facts.ip, text)};
    if (r->args.has_src)
        return (struct str){text, addr_render(&r->args.src, text)};
    return STR_NONE;
}

static void set_rec(struct buf *b, const struct request *r, struct str client)
{
    char storage[REC_MAX];
    struct buf rec;
    buf_init(&rec, storage, sizeof storage);
    record_part_put(&rec, r, client);
    set_RECORD(b, buf_str(&rec));
}

/* The verdict's own page, else the request's choice once the config phase has run, else the policy's default. */
static const struct template *template_of(const struct request *r)
{
    if (r->verdict.page != NULL)
        return r->verdict.page;
    if (r->policy == NULL)
        return NULL;
    return r->has_settings ? r->settings.responses[r->verdict.kind] : r->policy->defaults[r->verdict.kind];
}

static bool put_answer(struct buf *b, struct request *r)
{
    if (r->verdict.preflight) {
        set_STATUS(b, PREFLIGHT_STATUS);
        return true;
    }
    const struct template *t = template_of(r);
    struct str body = STR(fallback_body), type = STR(fallback_type);
    if (t != NULL) {
        struct buf rendered;
        if (!arena_take_buf(&r->arena, t->rendered_max, &rendered))
            return false;
        const struct template_values values = {.retry_after_s = r->verdict.retry_after_s, .request_id = r->args.id};
        template_render(t, &values, &rendered);
        if (rendered.full)
            return false;
        body = buf_str(&rendered);
        type = t->content_type;
    }
    set_STATUS(b, kind_status(r->verdict.kind));
    set_BODY(b, body);
    set_CONTENT_TYPE(b, type);
    if (r->verdict.retry_after_s > 0)
        set_RETRY_AFTER(b, r->verdict.retry_after_s);
    return true;
}

/* How long the upstream may take where that is not what haproxy.cfg says anyway, and the bounds of a body that is still to come. */
static void put_bounds(struct buf *b, const struct request *r)
{
    if (r->settings.upstream_timeout_ms != UPSTREAM_TIMEOUT_MS)
        set_UPSTREAM_TIMEOUT(b, (int64_t) r->settings.upstream_timeout_ms);
    if (!r->args.body_comes)
        return;
    set_BODY_LIMIT(b, (int64_t) r->settings.body_limit);
    set_BODY_TIMEOUT(b, (int64_t) r->settings.body_read_timeout_ms);
}

/* ip: the client's address as text. */
static bool put_forward(struct buf *b, struct request *r, struct str ip)
{
    struct managed managed;
    struct str additions = r->edit.add;

    managed_read(r, ip, &managed);
    if (!r->args.native)
        managed_put(b, r, &managed);
    else if (!managed_list(r, &managed, &additions))
        return false;
    if (r->identity.uri_changed)
        set_URI(b, r->identity.forward_uri);
    if (r->edit.del.len > 0)
        set_REQ_DEL(b, r->edit.del);
    if (additions.len > 0)
        set_REQ_ADD(b, additions);
    put_bounds(b, r);
    return true;
}

static bool has_room(const struct buf *b, size_t begin)
{
    return !b->full && b->len - begin <= REQUEST_ACK_MAX - OK_ROOM && b->cap - b->len >= OK_ROOM;
}

/* The pages of HAProxy's own errors where this request's are not those that its process knows. Each goes in as a whole or, where it does
 * not fit, not at all: two of the largest need more than a frame. begin: of the ACK's actions. */
static void put_pages(struct buf *b, size_t begin, struct request *r)
{
    static const struct {
        enum kind kind;
        void (*set_page)(struct buf *b, struct str value), (*set_type)(struct buf *b, struct str value);
    } rows[] = {
        {KIND_BAD_GATEWAY, set_PAGE_BAD_GATEWAY, set_TYPE_BAD_GATEWAY},
        {KIND_GATEWAY_TIMEOUT, set_PAGE_GATEWAY_TIMEOUT, set_TYPE_GATEWAY_TIMEOUT},
    };
    bool left_out = false;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct template *t = r->settings.responses[rows[i].kind];
        struct buf before = *b;
        struct str page;
        if (t == r->policy->defaults[rows[i].kind])
            continue;
        bool rendered = template_page(t, 0, &r->arena, &page);
        if (rendered) {
            rows[i].set_page(b, page);
            rows[i].set_type(b, t->content_type);
        }
        if (rendered && has_room(b, begin))
            continue;
        *b = before;
        left_out = true;
    }
    if (left_out)
        counter_add(&r->context->counters.plain[METRIC_PAGE_LEFT_OUT], 1);
}

/* What an ACK can do without goes in last, and is taken back where it does not fit. begin: of the ACK's actions. */
static void put_optional(struct buf *b, size_t begin, struct request *r)
{
    if (!has_room(b, begin))
        return;
    if (!r->verdict.answer)
        put_pages(b, begin, r);
    struct buf before = *b;
    process_vars_put(b, r, b->len - begin);
    if (!has_room(b, begin))
        *b = before;
}

/* Tells the headers that have a variable of their own, each once; the others stay in the edit. */
static void put_usual_headers(struct buf *b, struct response_edit *e)
{
    static const struct {
        struct str name;
        void (*set)(struct buf *b, struct str value);
    } rows[] = {
#define WIRE_RESPONSE(name, var) {{name, sizeof name - 1}, set_##var},
#include "schemas/wire.def"
    };
    enum { N_ROWS = sizeof rows / sizeof rows[0] };
    bool told[N_ROWS] = {false};
    size_t n_left = 0;

    for (size_t i = 0; i < e->n_added; i++) {
        const struct header h = e->added[i];
        size_t row = 0;
        while (row < N_ROWS && (told[row] || !str_eq(rows[row].name, h.name)))
            row++;
        if (row == N_ROWS) {
            e->added[n_left++] = h;
            continue;
        }
        rows[row].set(b, h.value);
        told[row] = true;
    }
    e->n_added = n_left;
}

/* The request's own edit stays as it is: of an ACK that does not fit another one is made. */
static bool put_response_edit(struct buf *b, struct request *r)
{
    const struct response_edit *edit = &r->response_edit;
    struct response_edit unusual;
    struct str deleted, added;

    if (!r->args.native && edit->n_added > 0) {
        unusual = *edit;
        put_usual_headers(b, &unusual);
        edit = &unusual;
    }
    if (!response_edit_lists(edit, &r->arena, &deleted, &added))
        return false;
    if (r->response_edit.cors)
        set_CORS(b, 1);
    if (deleted.len > 0)
        set_RES_DEL(b, deleted);
    if (added.len > 0)
        set_RES_ADD(b, added);
    return true;
}

/* False: the answer does not fit and was taken back. */
static bool ack_try(struct request *r)
{
    struct buf *b = spop_ack_open(&r->pending);
    if (b == NULL)
        return true;
    char text[ADDR_TEXT_MAX];
    struct str client = client_text(r, text);
    size_t begin = b->len;
    b->full |= r->verdict.answer ? !put_answer(b, r) : !put_forward(b, r, client);
    b->full |= !put_response_edit(b, r);
    set_rec(b, r, client);
    put_optional(b, begin, r);
    set_OK(b, CONTRACT_VERSION);
    b->full |= b->len - begin > REQUEST_ACK_MAX;
    return spop_ack_close(&r->pending);
}

/* Once the config phase has run (no settings.cors before), a response says who may read it, whoever makes it: the edge, HAProxy by itself later on, or
 * the upstream. */
static void add_cors(struct request *r)
{
    if (r->settings.cors != NULL)
        cors_respond(r->settings.cors, &r->headers, r->verdict.preflight, &r->response_edit);
}

/* The answer in place of one that did not fit, with as little as possible. A browser can read it, if that fits. */
static bool ack_try_small(struct request *r)
{
    r->policy = NULL;
    r->verdict.page = NULL;
    r->verdict.preflight = false;
    r->verdict.rate_rule = NULL;
    r->config_hits.n = r->header_hits.n = 0;
    request_limits_forget(&r->limits);
    response_edit_clear(&r->response_edit);
    add_cors(r);
    if (ack_try(r))
        return true;
    response_edit_clear(&r->response_edit);
    return ack_try(r);
}

void request_reply(struct request *r)
{
    /* What is refused before PIN is still answered with the current policy's template. */
    request_pin(r);
    add_cors(r);
    if (ack_try(r))
        return;
    request_fail(r, METRIC_ACK_TOO_LARGE);
    if (!ack_try_small(r))
        spop_conn_fail(r->pending.conn, SPOP_STATUS_RESOURCE, "the smallest answer does not fit a frame of %zu bytes",
                       spop_conn_frame_max(r->pending.conn));
}
