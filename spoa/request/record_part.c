/* Writing the agent's part of an access record: everything that is known when a request has been decided. */
#include "spoa/request/record_part.h"

#include "common/base/codec.h"
#include "common/http/query_names.h"
#include "common/http/target.h"
#include "spoa/record/topk.h"

enum {
    ESCAPED_MAX = 6,                    /* bytes that one byte of a text may become */
    LEFT_OUT_MAX = sizeof ",+65535" - 1, /* at a list's end */
    PATH_ROOM_MIN = 256 + 12, /* what is left of a path that is cut in an escape has 256 bytes, too */
    DIGITS_MAX = 20,
    SUBJECT_HEX = 2 * sizeof(struct rate_subject),
    /* What stands behind the host, and behind the query's names, at least. */
    BEHIND_KEYS = 1 + DIGITS_MAX + sizeof " -" - 1 + 1 + PATH_ROOM_MIN,
    BEHIND_HOST = sizeof " -" - 1 + BEHIND_KEYS,
    /* Numbers, words and client; five lists; trace, id and method. */
    BEFORE_HOST = 256 + 5 * (1 + REC_IDS_MAX + LEFT_OUT_MAX) + 2 + 129 + 2 + ESCAPED_MAX * REC_METHOD_MAX,
};
_Static_assert(REC_MAX >= BEFORE_HOST + BEHIND_HOST + REC_HOST_MAX, "the longest lists leave room for a host, a path and what may be absent");

static size_t room_before(const struct buf *b, size_t behind, size_t max)
{
    size_t left = b->cap - b->len - behind;
    return left < max ? left : max;
}

static void put_or_nothing(struct buf *b, struct str s)
{
    buf_put(b, s.len > 0 ? s : STR("-"));
    buf_put_byte(b, ' ');
}

static void put_number(struct buf *b, int64_t n)
{
    buf_put_i64(b, n);
    buf_put_byte(b, ' ');
}

/* --- Lists --- */

/* A list while it is written. reserved: bytes kept for the item that decided, which is in every list that has one. */
struct list {
    struct buf *b;
    size_t begin, reserved, n_left_out;
};

static struct list list_begin(struct buf *b, struct str decided)
{
    return (struct list){.b = b, .begin = b->len, .reserved = decided.len > 0 ? sizeof ",!:" - 1 + decided.len + LIMIT_LETTERS_MAX : 0};
}

/* value: behind a ':', where there is one. */
static void list_put(struct list *l, struct str id, struct str value, bool has_value, bool decided)
{
    size_t len = sizeof ",!:" - 1 + id.len + value.len, reserved = decided ? 0 : l->reserved;
    if (decided)
        l->reserved = 0;
    if (l->b->len - l->begin + len + reserved > REC_IDS_MAX) {
        l->n_left_out++;
        return;
    }
    if (l->b->len > l->begin)
        buf_put_byte(l->b, ',');
    if (decided)
        buf_put_byte(l->b, '!');
    buf_put(l->b, id);
    if (has_value) {
        buf_put_byte(l->b, ':');
        buf_put(l->b, value);
    }
}

static void list_end(struct list *l)
{
    /* An id that stands alone would read as none. */
    if (l->b->len - l->begin == 1 && l->b->p[l->begin] == '-') {
        l->b->len = l->begin;
        l->n_left_out++;
    }
    if (l->n_left_out > 0) {
        buf_put(l->b, l->b->len > l->begin ? STR(",+") : STR("+"));
        buf_put_u64(l->b, l->n_left_out);
    } else if (l->b->len == l->begin) {
        buf_put_byte(l->b, '-');
    }
    buf_put_byte(l->b, ' ');
}

static void put_config_rules(struct buf *b, const struct request *r)
{
    int block_rule = r->has_settings ? r->settings.block_rule : -1;
    struct list l = list_begin(b, r->config_hits.n > 0 && block_rule >= 0 ? r->policy->config_rules[block_rule].id : STR_NONE);
    for (size_t i = 0; i < r->config_hits.n; i++) {
        size_t index = r->config_hits.index[i];
        list_put(&l, r->policy->config_rules[index].id, STR_NONE, false, block_rule >= 0 && index == (size_t) block_rule);
    }
    list_end(&l);
}

static void put_header_rules(struct buf *b, const struct request *r)
{
    struct list l = list_begin(b, STR_NONE);
    for (size_t i = 0; i < r->header_hits.n; i++)
        list_put(&l, r->policy->header_rules[r->header_hits.index[i]].id, STR_NONE, false, false);
    list_end(&l);
}

static void put_limits(struct buf *b, const struct request *r)
{
    const struct rate_rule *decided = r->verdict.rate_rule;
    struct list l = list_begin(b, decided != NULL ? decided->id : STR_NONE);
    for (size_t i = 0; i < r->limits.n_notes; i++) {
        const struct limit_note *note = &r->limits.notes[i];
        list_put(&l, note->rule->id, (struct str){note->letters, note->n_letters}, true, note->rule == decided);
    }
    l.n_left_out += r->limits.n_not_noted;
    list_end(&l);
}

/* Rules that count the answer, once there is one. */
static void put_counted(struct buf *b, const struct request *r)
{
    const struct count_choice *counts = &r->limits.counts;
    struct list l = list_begin(b, STR_NONE);
    for (size_t i = 0; i < counts->n; i++) {
        char hex[SUBJECT_HEX];
        codec_hex(counts->subject[i].b, sizeof counts->subject[i].b, hex);
        list_put(&l, r->policy->rate_rules[counts->index[i]].id, (struct str){hex, sizeof hex}, true, false);
    }
    list_end(&l);
}

/* Of the rules that refused, or would have. */
static void put_subjects(struct buf *b, const struct request *r)
{
    const struct request_limits *limits = &r->limits;
    struct list l = list_begin(b, STR_NONE);
    for (size_t i = 0; i < limits->n_notes && limits->sampled; i++) {
        const struct limit_note *note = &limits->notes[i];
        char storage[SUBJECT_HEX + 1 + TOPK_DISPLAY_MAX], text[LIMIT_DISPLAY_MAX];
        struct buf value, display;
        if (note->subject == NULL)
            continue;
        buf_init(&value, storage, sizeof storage);
        buf_init(&display, text, sizeof text);
        policy_limit_display(note->rule, &r->view, &display);
        codec_hex(note->subject->b, sizeof note->subject->b, storage);
        value.len = SUBJECT_HEX;
        buf_put_byte(&value, ':');
        rec_put_item_text(&value, buf_str(&display), TOPK_DISPLAY_MAX - 1);
        list_put(&l, note->rule->id, buf_str(&value), true, false);
    }
    list_end(&l);
}

/* --- The request --- */

static void put_client(struct buf *b, const struct request *r, struct str client)
{
    const struct expr_viewer *v = &r->view.facts.viewer;
    put_or_nothing(b, client);
    put_or_nothing(b, v->country);
    if (v->has_asnum)
        put_number(b, v->asnum);
    else
        put_or_nothing(b, STR_NONE);
    put_or_nothing(b, v->ja4);
}

/* Of every request that reached the config phase. */
static void put_signals(struct buf *b, const struct request *r)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t signals = r->has_settings ? expr_facts_signals(&r->view.facts) : 0;
    char text[2 * sizeof signals];
    size_t at = sizeof text;
    for (; signals > 0; signals >>= 4)
        text[--at] = digits[signals & 15];
    put_or_nothing(b, (struct str){text + at, sizeof text - at});
}

static void put_query_names(struct buf *b, const struct request *r)
{
    struct query_names names;
    size_t begin = b->len, max = room_before(b, BEHIND_KEYS, REC_KEYS_MAX);
    uint64_t n_dropped;

    query_names(r->view.facts.query, &names);
    n_dropped = names.n_dropped;
    for (size_t i = 0; i < names.n; i++) {
        struct str name = names.items[i];
        /* One that stands alone would read as none. */
        if (b->len - begin + 1 + name.len > max || (names.n == 1 && str_eq(name, STR("-")))) {
            n_dropped++;
            continue;
        }
        if (b->len > begin)
            buf_put_byte(b, ',');
        buf_put(b, name);
    }
    if (b->len == begin)
        buf_put_byte(b, '-');
    buf_put_byte(b, ' ');
    buf_put_u64(b, n_dropped);
    buf_put_byte(b, ' ');
}

/* In the form that rules saw; as sent where there is none. */
static void put_host(struct buf *b, const struct request *r)
{
    struct str host = r->view.facts.host;
    if (host.len == 0)
        headers_get(&r->headers, STR("host"), &host);
    rec_put_text(b, host, REC_HOST_MAX, room_before(b, BEHIND_HOST, REC_MAX));
    buf_put_byte(b, ' ');
}

static void put_request(struct buf *b, const struct request *r)
{
    struct str user_agent = STR_NONE;
    struct target target;

    buf_put(b, STR("- ")); /* no trace */
    put_or_nothing(b, r->args.id);
    rec_put_text(b, r->args.method, REC_METHOD_MAX, REC_MAX);
    buf_put_byte(b, ' ');
    put_host(b, r);
    put_query_names(b, r);
    headers_get(&r->headers, STR("user-agent"), &user_agent);
    rec_put_text(b, user_agent, REC_USER_AGENT_MAX, room_before(b, 1 + PATH_ROOM_MIN, REC_MAX));
    buf_put_byte(b, ' ');
    target_split(r->args.url, &target);
    rec_put_text(b, target.path, REC_PATH_MAX, REC_MAX);
}

void record_part_put(struct buf *b, const struct request *r, struct str client)
{
    put_number(b, REC_VERSION);
    put_number(b, r->context->settings.agent_index);
    buf_put(b, STR("a "));
    put_number(b, r->policy != NULL ? r->policy->version : 0);
    buf_put_cstr(b, decision_name(r->verdict.decision));
    buf_put(b, STR(" - ")); /* no token is looked at */
    put_client(b, r, client);
    put_signals(b, r);
    put_limits(b, r);
    put_config_rules(b, r);
    put_header_rules(b, r);
    put_counted(b, r);
    put_subjects(b, r);
    put_request(b, r);
}
