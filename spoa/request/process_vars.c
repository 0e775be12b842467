/* The variables of HAProxy's process, told on each connection until they have surely arrived. */
#include "spoa/request/process_vars.h"

#include "spoa/request/vars.h"

/* A page is told with what HAProxy can know when it answers itself: that asking again makes sense at once, or in a second. */
static const struct {
    enum kind kind;
    uint32_t retry_after_s;
    void (*set_page)(struct buf *b, struct str value), (*set_type)(struct buf *b, struct str value);
} pages[] = {
    {KIND_PAYLOAD_TOO_LARGE, 0, set_DEFAULT_PAYLOAD_TOO_LARGE, set_DEFAULT_TYPE_PAYLOAD_TOO_LARGE},
    {KIND_BAD_GATEWAY, 0, set_DEFAULT_BAD_GATEWAY, set_DEFAULT_TYPE_BAD_GATEWAY},
    {KIND_UNAVAILABLE, 1, set_DEFAULT_UNAVAILABLE, set_DEFAULT_TYPE_UNAVAILABLE},
    {KIND_OVERLOADED, 1, set_DEFAULT_OVERLOADED, set_DEFAULT_TYPE_OVERLOADED},
    {KIND_GATEWAY_TIMEOUT, 0, set_DEFAULT_GATEWAY_TIMEOUT, set_DEFAULT_TYPE_GATEWAY_TIMEOUT},
};
enum { N_PAGES = sizeof pages / sizeof pages[0] };

/* In place of a count: this connection has been told. */
static const uint64_t told = UINT64_MAX;

/* A cap of 0 would refuse every request before an agent could be asked for another one. */
static void put_caps(struct buf *b, const struct request_settings *s, const struct policy *p)
{
    uint64_t ordinary = s->cap_ordinary;
    if (p->max_inflight != 0 && (ordinary == 0 || p->max_inflight < ordinary))
        ordinary = p->max_inflight;
    if (ordinary != 0)
        set_CAP_ORDINARY(b, (int64_t) ordinary);
    if (s->cap_streams != 0)
        set_CAP_STREAMS(b, (int64_t) s->cap_streams);
}

static bool put_page(struct buf *b, struct request *r, const struct policy *p, size_t i)
{
    const struct template *t = p->defaults[pages[i].kind];
    struct str page;
    if (!template_page(t, pages[i].retry_after_s, &r->arena, &page))
        return false;
    pages[i].set_page(b, page);
    pages[i].set_type(b, t->content_type);
    return true;
}

void process_vars_put(struct buf *b, struct request *r, size_t ack_len)
{
    struct lease *lease = r->context->lease_slot.current;
    struct spop_note *note = spop_conn_note(r->pending.conn);
    if (lease == NULL || (note->about == lease->number && note->n == told))
        return;
    if (note->about != lease->number)
        *note = (struct spop_note){.about = lease->number};
    uint64_t now_us = clock_mono_us(r->context->settings.clock);
    if (lease->told_since_us == 0)
        lease->told_since_us = now_us;
    if (note->n >= PROCESS_VARS_ROUNDS * N_PAGES && now_us - lease->told_since_us >= PROCESS_VARS_REPEAT_US) {
        note->n = told;
        return;
    }
    put_caps(b, &r->context->settings, lease->policy);
    set_BODY_IDLE(b, (int64_t) lease->policy->limits.body_read_timeout_ms);
    if (ack_len <= PROCESS_VARS_ACK_MAX && put_page(b, r, lease->policy, note->n % N_PAGES))
        note->n++;
}
