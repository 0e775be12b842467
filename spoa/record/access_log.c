/* From the agent's verdict and HAProxy's record to a line: what each member says, then all of them in the table's order. */
#include "spoa/record/access_log.h"

#include "common/expr/expr.h"

/* Values by a row's type. Texts are the insides of JSON strings: nothing is escaped here, since what record_parse took needs none. */
#define VALUE_TEXT    struct str
#define VALUE_NUMBER  int64_t
#define VALUE_BOOL    bool
#define VALUE_RATE    uint64_t
#define VALUE_IDS     struct str
#define VALUE_NAMES   struct str
#define VALUE_SIGNALS uint32_t

enum { ABSENT = -1 }; /* a NUMBER that there is none of */

struct access_values {
#define LOG_FIELD_ROW(id, name, type, when, stability, meaning) VALUE_##type id;
#include "schemas/log_fields.def"
#undef LOG_FIELD_ROW
};

/* Room for n bytes; NULL where there is none. A line has some thirty members: each looks once whether it fits, and is part of the caller, where its
 * key's length is known. */
static inline char *room_for(struct buf *b, size_t n)
{
    if (b->full || n > b->cap - b->len) {
        b->full = true;
        return NULL;
    }
    char *at = b->p + b->len;
    b->len += n;
    return at;
}

static inline void put_TEXT(struct buf *b, struct str key, struct str inside)
{
    if (inside.len == 0)
        return;
    char *at = room_for(b, key.len + inside.len + 2);
    if (at == NULL)
        return;
    memcpy(at, key.p, key.len);
    at[key.len] = '"';
    memcpy(at + key.len + 1, inside.p, inside.len);
    at[key.len + 1 + inside.len] = '"';
}

static inline void put_NUMBER(struct buf *b, struct str key, int64_t value)
{
    if (value < 0)
        return;
    buf_put(b, key);
    buf_put_u64(b, (uint64_t) value);
}

static inline void put_BOOL(struct buf *b, struct str key, bool value)
{
    buf_put(b, key);
    buf_put(b, value ? STR("true") : STR("false"));
}

static inline void put_RATE(struct buf *b, struct str key, uint64_t rate)
{
    char text[RATE_TEXT_MAX];
    if (rate >= RATE_WHOLE)
        return;
    buf_put(b, key);
    buf_put(b, (struct str){text, parse_render_rate(rate, text)});
}

/* One more item of a list that the first one begins; list_end closes it. */
static inline void list_item(struct buf *b, struct str key, bool first, struct str inside)
{
    const struct str before = first ? key : STR(",");
    char *at = room_for(b, before.len + inside.len + 2 + first);
    if (at == NULL)
        return;
    memcpy(at, before.p, before.len);
    at += before.len;
    if (first)
        *at++ = '[';
    *at++ = '"';
    memcpy(at, inside.p, inside.len);
    at[inside.len] = '"';
}

static void list_end(struct buf *b, bool empty)
{
    if (!empty)
        buf_put_byte(b, ']');
}

static void put_IDS(struct buf *b, struct str key, struct str list)
{
    struct rec_item item;
    uint64_t n_left_out = 0;
    bool empty = true;
    while (rec_next(&list, &item, &n_left_out)) {
        list_item(b, key, empty, item.id);
        empty = false;
    }
    if (n_left_out > 0) {
        list_item(b, key, empty, STR("+"));
        if (!b->full)
            b->len--; /* the quote: its number stands before it */
        buf_put_u64(b, n_left_out);
        buf_put_byte(b, '"');
        empty = false;
    }
    list_end(b, empty);
}

/* names: joined by ','. */
static void put_NAMES(struct buf *b, struct str key, struct str names)
{
    bool empty = true;
    while (names.len > 0) {
        struct str name = str_sub(names, 0, str_find_byte(names, ','));
        list_item(b, key, empty, name);
        empty = false;
        names = str_sub(names, name.len + 1, names.len);
    }
    list_end(b, empty);
}

static void put_SIGNALS(struct buf *b, struct str key, uint32_t signals)
{
    bool empty = true;
    for (size_t i = 0; signals != 0 && i < expr_n_signals(); i++) {
        if ((signals >> i & 1) == 0)
            continue;
        list_item(b, key, empty, str_of(expr_signal_name(i)));
        empty = false;
    }
    list_end(b, empty);
}

static void values_put(const struct access_values *v, struct buf *b)
{
    const size_t start = b->len;
#define LOG_FIELD_ROW(id, name, type, when, stability, meaning) put_##type(b, STR(",\"" name "\":"), v->id);
#include "schemas/log_fields.def"
#undef LOG_FIELD_ROW
    buf_put_byte(b, '}');
    /* Each key brings the comma before it; the first, which is always there, begins the object. */
    if (!b->full)
        b->p[start] = '{';
}

/* The limit that refused, or would have. */
static struct str deciding_limit(struct str limits)
{
    struct rec_item item;
    uint64_t n_left_out;
    while (rec_next(&limits, &item, &n_left_out))
        if (item.decided)
            return item.id;
    return STR_NONE;
}

static int64_t number_or_absent(struct str digits)
{
    uint64_t n;
    return parse_digits(digits, INT64_MAX, &n) ? (int64_t) n : ABSENT;
}

static int64_t not_zero(uint64_t n)
{
    return n == 0 || n > INT64_MAX ? ABSENT : (int64_t) n;
}

void access_log_render(const struct record *r, const struct outcome *outcome, struct str time, uint64_t sample_rate, struct buf *out)
{
    const struct rec *rec = &r->rec;
    const bool upstream = outcome->origin == ORIGIN_UPSTREAM;
    const struct access_values v = {
        .time = time,
        .level = STR("info"),
        .msg = STR("access"),
        .method = rec->method,
        .host = rec->host,
        .path = rec->path,
        .status = outcome->status,
        .client_address = rec->client_ip,
        .user_agent = rec->user_agent,
        .asnum = number_or_absent(rec->asnum),
        .country = rec->country,
        .ja4 = rec->ja4,
        .signals = rec->signals,
        .config_version = rec->config_version,
        .cohort = str_of(cohort_name(rec->cohort)),
        .config_rules = rec->config_rules,
        .header_rules = rec->header_rules,
        .query_keys = rec->query_keys,
        .query_keys_dropped = not_zero(rec->n_query_keys_dropped),
        .rate_limit_rule = deciding_limit(rec->limits),
        .decision = str_of(decision_name(outcome->decision)),
        .auth = rec->auth,
        .upstream_answered = upstream,
        .upstream_error = outcome->upstream_error_text != NULL ? str_of(outcome->upstream_error_text) : STR_NONE,
        .upstream_error_kind = str_of(upstream_error_name(outcome->upstream_error)),
        .request_id = rec->request_id,
        .duration_ms = (int64_t) outcome->duration_ms,
        .latency_ms = outcome->status != 0 ? (int64_t) outcome->latency_ms : ABSENT,
        .request_size = record_number(r, RECORD_BYTES_IN, ABSENT),
        .response_size = upstream ? record_number(r, RECORD_BYTES_OUT, ABSENT) : ABSENT,
        .trace_id = rec->trace.trace_id,
        .span_id = rec->trace.span_id,
        .sample_rate = sample_rate,
    };
    values_put(&v, out);
}
