/* The ACK: what HAProxy shall do, as variables; exactly one for every NOTIFY. */
#include "spoa/record/rec.h"
#include "spoa/request/contract.h"
#include "spoa/request/request.h"

/* The variables of schemas/wire.def: one setter for each, named after its row. */
#define SETTER_INT(id, scope, name)                                                                                                          \
    static void set_##id(struct buf *b, int64_t value)                                                                                       \
    {                                                                                                                                        \
        spop_put_set_int(b, SPOP_SCOPE_##scope, name, value);                                                                                \
    }
#define SETTER_STR(id, scope, name)                                                                                                          \
    static void set_##id(struct buf *b, struct str value)                                                                                    \
    {                                                                                                                                        \
        spop_put_set_str(b, SPOP_SCOPE_##scope, name, value);                                                                                \
    }
#define SETTER_BIN(id, scope, name)                                                                                                          \
    static void set_##id(struct buf *b, struct str value)                                                                                    \
    {                                                                                                                                        \
        spop_put_set_bin(b, SPOP_SCOPE_##scope, name, value);                                                                                \
    }
#define WIRE_VAR(id, scope, name, type, max_len, meaning) SETTER_##type(id, scope, name)
#include "schemas/wire.def"

/* Answered while there is no policy whose template could be used. */
static const char fallback_body[] = "{\"error\":\"unavailable\"}";
static const char fallback_type[] = "application/json";

static struct str config_rule_id(const struct policy *p, size_t i)
{
    return p->config_rules[i].id;
}

static struct str header_rule_id(const struct policy *p, size_t i)
{
    return p->header_rules[i].id;
}

static void put_rec(struct buf *b, const struct request *r)
{
    char ip[ADDR_TEXT_MAX];
    struct str ip_text = STR("-");
    if (r->args.has_src)
        ip_text = (struct str){ip, addr_render(&r->args.src, ip)};

    buf_put_u64(b, REC_VERSION);
    buf_put_byte(b, ' ');
    buf_put_u64(b, r->context->agent_index);
    buf_put_byte(b, ' ');
    buf_put_i64(b, r->policy != NULL ? r->policy->version : 0);
    buf_put_byte(b, ' ');
    buf_put_cstr(b, decision_name(r->verdict.decision));
    buf_put_byte(b, ' ');
    buf_put(b, ip_text);
    buf_put_byte(b, ' ');
    buf_put(b, r->verdict.rate_rule != NULL ? r->verdict.rate_rule->id : STR("-"));
    buf_put_byte(b, ' ');
    rec_put_ids(b, r->policy, &r->config_hits, config_rule_id);
    buf_put_byte(b, ' ');
    rec_put_ids(b, r->policy, &r->header_hits, header_rule_id);
}

static void set_rec(struct buf *b, const struct request *r)
{
    char storage[REC_MAX];
    struct buf rec;
    buf_init(&rec, storage, sizeof storage);
    put_rec(&rec, r);
    set_RECORD(b, buf_str(&rec));
}

/* The request's own choice once the config phase has run, else the policy's default. */
static const struct template *template_of(const struct request *r)
{
    if (r->policy == NULL)
        return NULL;
    return r->has_settings ? r->settings.responses[r->verdict.kind] : r->policy->defaults[r->verdict.kind];
}

static bool put_answer(struct buf *b, struct request *r)
{
    const struct template *t = template_of(r);
    struct str body = STR(fallback_body), type = STR(fallback_type);
    if (t != NULL) {
        char *storage = arena_take_bytes(&r->arena, t->rendered_max);
        if (storage == NULL)
            return false;
        struct buf rendered;
        buf_init(&rendered, storage, t->rendered_max);
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

static void put_forward(struct buf *b, const struct request *r)
{
    char ip[ADDR_TEXT_MAX];
    set_CLIENT_IP(b, (struct str){ip, addr_render(&r->view.facts.ip, ip)});
    set_PROTO(b, r->args.tls ? STR("https") : STR("http"));
    if (r->identity.uri_changed)
        set_URI(b, r->identity.forward_uri);
    if (r->edit.del.len > 0)
        set_REQ_DEL(b, r->edit.del);
    if (r->edit.add.len > 0)
        set_REQ_ADD(b, r->edit.add);
}

/* False: the answer does not fit and was taken back. */
static bool ack_try(struct request *r)
{
    struct buf *b = spop_ack_open(&r->pending);
    if (b == NULL)
        return true;
    size_t begin = b->len;
    if (r->verdict.answer)
        b->full |= !put_answer(b, r);
    else
        put_forward(b, r);
    set_rec(b, r);
    set_OK(b, CONTRACT_VERSION);
    b->full |= b->len - begin > REQUEST_ACK_MAX;
    return spop_ack_close(&r->pending);
}

void request_reply(struct request *r)
{
    /* What is refused before PIN is still answered with the current policy's template. */
    request_pin(r);
    if (!ack_try(r)) {
        request_fail(r, METRIC_ACK_TOO_LARGE);
        r->policy = NULL;
        r->config_hits.n = r->header_hits.n = 0;
        if (!ack_try(r))
            spop_conn_fail(r->pending.conn, SPOP_STATUS_RESOURCE, "the smallest answer does not fit a frame of %zu bytes",
                           spop_conn_frame_max(r->pending.conn));
    }
    counter_add(&r->context->counters.decisions[r->verdict.decision], 1);
}
