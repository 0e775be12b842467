/* Edge-managed headers: read from what is known of the request, told in either of the forms that HAProxy takes. */
#include "spoa/request/managed.h"

#include "common/base/varint.h"
#include "spoa/request/vars.h"

enum { LIST_END = 2 /* bytes that end a list of additions */ };
/* The column `when` of a row. */
enum { MANAGED_KNOWN, MANAGED_VIEWER, MANAGED_ALWAYS };

void managed_read(const struct request *r, struct str ip, struct managed *out)
{
    const struct expr_viewer *v = &r->view.facts.viewer;
    struct buf asnum;

    *out = (struct managed){.ip = ip, .proto = v->ssl ? STR("https") : STR("http"), .country = v->country, .continent = v->continent, .ja4 = v->ja4,
                            .locale = expr_facts_locale(&r->view.facts)};
    headers_get(&r->headers, STR("host"), &out->host);
    if (!v->has_asnum)
        return;
    buf_init(&asnum, out->asnum_text, sizeof out->asnum_text);
    buf_put_i64(&asnum, v->asnum);
    out->asnum = buf_str(&asnum);
}

bool managed_list(struct request *r, const struct managed *m, struct str *list)
{
    struct str rules = r->edit.add;
    size_t cap = rules.len + LIST_END;
#define WIRE_MANAGED(name, value, when, format) cap += 2 * VARINT_MAX_LEN + sizeof name + m->value.len;
#include "schemas/wire.def"
    struct buf b;

    if (!arena_take_buf(&r->arena, cap, &b))
        return false;
    if (rules.len > 0)
        buf_put(&b, str_sub(rules, 0, rules.len - LIST_END));
#define WIRE_MANAGED(name, value, when, format)                                                                                              \
    if (MANAGED_##when == MANAGED_ALWAYS || m->value.len > 0)                                                                                \
        headers_put_add(&b, STR(name), m->value);
#include "schemas/wire.def"
    headers_end_add(&b);
    *list = buf_str(&b);
    return !b.full;
}

void managed_put(struct buf *ack, const struct request *r, const struct managed *m)
{
    set_CLIENT_IP(ack, m->ip);
    set_PROTO(ack, m->proto);
    if (m->country.len > 0)
        set_COUNTRY(ack, m->country);
    if (m->continent.len > 0)
        set_CONTINENT(ack, m->continent);
    if (m->asnum.len > 0)
        set_ASNUM(ack, r->view.facts.viewer.asnum);
    if (m->ja4.len > 0)
        set_JA4(ack, m->ja4);
    if (m->locale.len > 0)
        set_LOCALE(ack, m->locale);
}
