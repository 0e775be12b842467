/* Reading and writing the agent's part of an access record. */
#include "spoa/record/rec.h"

#include "common/base/parse.h"

void rec_put_ids(struct buf *b, const struct policy *p, const struct rule_hits *hits, rec_id_of id_of)
{
    size_t start = b->len;
    for (size_t i = 0; i < hits->n; i++) {
        struct str id = id_of(p, hits->index[i]);
        if (b->len - start + id.len + 1 > REC_IDS_MAX) {
            buf_printf(b, ",+%zu", hits->n - i);
            return;
        }
        if (i > 0)
            buf_put_byte(b, ',');
        buf_put(b, id);
    }
    if (hits->n == 0)
        buf_put_byte(b, '-');
}

/* Takes the part before the next blank, or the rest. */
static struct str part_take(struct str *in)
{
    size_t end = str_find_byte(*in, ' ');
    if (end == SIZE_MAX)
        end = in->len;
    struct str part = str_sub(*in, 0, end);
    *in = str_sub(*in, end < in->len ? end + 1 : end, in->len);
    return part;
}

/* A part that must be there, "-" as empty. */
static bool text_take(struct str *in, struct str *out)
{
    struct str part = part_take(in);
    *out = str_eq(part, STR("-")) ? STR_NONE : part;
    return part.len > 0;
}

static bool number_take(struct str *in, uint64_t max, uint64_t *out)
{
    struct err e;
    err_clear(&e);
    return parse_u64(part_take(in), 0, max, out, "", &e);
}

static bool decision_find(struct str name, enum decision *out)
{
    for (size_t i = 0; i < DECISION_N; i++) {
        if (str_eq(str_of(decision_name((enum decision) i)), name)) {
            *out = (enum decision) i;
            return true;
        }
    }
    return false;
}

bool rec_parse(struct str text, struct rec *out)
{
    uint64_t version, agent, config_version;
    enum decision decision;
    if (!number_take(&text, REC_VERSION, &version) || version != REC_VERSION)
        return false;
    if (!number_take(&text, UINT16_MAX, &agent) || !number_take(&text, INT64_MAX, &config_version))
        return false;
    if (!decision_find(part_take(&text), &decision))
        return false;
    out->agent = (unsigned) agent;
    out->config_version = (int64_t) config_version;
    out->decision = decision;
    return text_take(&text, &out->client_ip) && text_take(&text, &out->rate_rule) && text_take(&text, &out->config_rules) &&
           text_take(&text, &out->header_rules) && text.len == 0;
}
