/* Reading the agent's part of an access record. */
#include "spoa/record/rec.h"

#include "common/base/codec.h"
#include "common/base/parse.h"
#include "spoa/record/rec_priv.h"

static const bool decimal_digits[256] = {['0' ... '9'] = true};
static const bool hex_digits[256] = {['0' ... '9'] = true, ['a' ... 'f'] = true};
static const bool address_bytes[256] = {['0' ... '9'] = true, ['a' ... 'f'] = true, ['.'] = true, [':'] = true};
static const bool word_bytes[256] = {['a' ... 'z'] = true, ['_'] = true};
static const bool name_bytes[256] = {['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['.'] = true, ['_'] = true, ['-'] = true};
static const bool key_bytes[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['.'] = true, ['_'] = true, ['-'] = true, ['['] = true, [']'] = true,
};

enum { SUBJECT_LEN = 32, TRACE_ID_LEN = 32, SPAN_ID_LEN = 16 };

/* --- Reading: each takes one part and leaves in at what stands behind it. --- */

static bool byte_take(struct str *in, char byte)
{
    if (in->len == 0 || in->p[0] != byte)
        return false;
    str_skip(in, 1);
    return true;
}

static bool at_end(const struct str *in)
{
    return in->len == 0 || in->p[0] == ' ';
}

/* "-", which stands for nothing. */
static bool nothing_take(struct str *in)
{
    if (in->len == 0 || in->p[0] != '-' || (in->len > 1 && in->p[1] != ' '))
        return false;
    str_skip(in, 1);
    return true;
}

/* As many bytes of set as there are, at least one. */
static bool bytes_take(struct str *in, const bool set[static 256], struct str *out)
{
    *out = str_sub(*in, 0, str_span(*in, set));
    str_skip(in, out->len);
    return out->len > 0;
}

/* A part of nothing but bytes of set. */
static bool word_take(struct str *in, const bool set[static 256], struct str *out)
{
    *out = STR_NONE;
    return nothing_take(in) || bytes_take(in, set, out);
}

static bool hex_take(struct str *in, size_t len, struct str *out)
{
    return bytes_take(in, hex_digits, out) && out->len == len;
}

static bool number_take(struct str *in, uint64_t max, uint64_t *out)
{
    struct str digits;
    return bytes_take(in, decimal_digits, &digits) && parse_digits(digits, max, out);
}

/* The inside of a JSON string, of which set are the bytes that stand for themselves. */
static bool inside_take(struct str *in, const bool set[static 256], struct str *out)
{
    const char *begin = in->p;
    for (;;) {
        str_skip(in, str_span(*in, set));
        size_t n = in->len > 0 && in->p[0] == '\\' ? rec_escape_len(*in) : 0;
        if (n == 0)
            break;
        str_skip(in, n);
    }
    *out = (struct str){begin, (size_t) (in->p - begin)};
    return out->len > 0;
}

static bool text_take(struct str *in, struct str *out)
{
    *out = STR_NONE;
    return nothing_take(in) || inside_take(in, rec_plain, out);
}

/* --- Lists --- */

enum item_shape { ITEM_PLAIN, ITEM_CONFIG, ITEM_LIMIT, ITEM_COUNTED, ITEM_SUBJECT };

static bool letters_take(struct str *in)
{
    static const char letters[] = {
#define RULE_COUNT_ROW(phase, id, letter, name, meaning) letter,
#include "schemas/rule_counts.def"
#undef RULE_COUNT_ROW
    };
    for (; !at_end(in) && in->p[0] != ','; str_skip(in, 1))
        if (in->p[0] == '\0' || memchr(letters, in->p[0], sizeof letters) == NULL)
            return false;
    return true;
}

static bool value_take(struct str *in, enum item_shape shape)
{
    struct str part;
    switch (shape) {
    case ITEM_PLAIN:
    case ITEM_CONFIG:
        return true;
    case ITEM_LIMIT:
        return !byte_take(in, ':') || letters_take(in);
    case ITEM_COUNTED:
        return byte_take(in, ':') && hex_take(in, SUBJECT_LEN, &part);
    case ITEM_SUBJECT:
        return byte_take(in, ':') && hex_take(in, SUBJECT_LEN, &part) && byte_take(in, ':') && inside_take(in, rec_plain_in_list, &part);
    }
    return false;
}

/* One item, or how many were left out, behind which nothing comes. */
static bool item_take(struct str *in, enum item_shape shape)
{
    struct str part;
    if (byte_take(in, '+'))
        return bytes_take(in, decimal_digits, &part) && at_end(in);
    if (shape == ITEM_LIMIT || shape == ITEM_CONFIG)
        (void) byte_take(in, '!');
    return bytes_take(in, name_bytes, &part) && value_take(in, shape);
}

static bool list_take(struct str *in, enum item_shape shape, struct str *out)
{
    const char *begin = in->p;
    *out = STR_NONE;
    if (nothing_take(in))
        return true;
    do {
        if (!item_take(in, shape))
            return false;
    } while (byte_take(in, ','));
    *out = (struct str){begin, (size_t) (in->p - begin)};
    return true;
}

bool rec_next(struct str *list, struct rec_item *item, uint64_t *n_left_out)
{
    *n_left_out = 0;
    if (byte_take(list, '+')) {
        if (!parse_digits(*list, UINT64_MAX, n_left_out))
            *n_left_out = 0;
        *list = STR_NONE;
    }
    if (list->len == 0)
        return false;
    struct str text = str_sub(*list, 0, str_find_byte(*list, ','));
    str_skip(list, text.len < list->len ? text.len + 1 : text.len);
    item->decided = byte_take(&text, '!');
    item->id = str_sub(text, 0, str_find_byte(text, ':'));
    item->value = str_sub(text, item->id.len + 1, text.len);
    return true;
}

/* --- The parts --- */

bool rec_decision_find(struct str name, enum decision *out)
{
    for (size_t i = 0; i < DECISION_N; i++) {
        if (str_eq(str_of(decision_name((enum decision) i)), name)) {
            *out = (enum decision) i;
            return true;
        }
    }
    return false;
}

static bool decision_take(struct str *in, enum decision *out)
{
    struct str name;
    return bytes_take(in, word_bytes, &name) && rec_decision_find(name, out);
}

static bool cohort_take(struct str *in, enum cohort *out)
{
    *out = in->len > 0 && in->p[0] == 'c' ? COHORT_CANDIDATE : COHORT_ACTIVE;
    return byte_take(in, *out == COHORT_ACTIVE ? 'a' : 'c');
}

static bool auth_take(struct str *in, struct str *out)
{
    static const struct str words[] = {STR("verified"), STR("cached"), STR("missing"), STR("invalid"), STR("pass_no_keys")};
    if (!word_take(in, word_bytes, out))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (str_eq(*out, words[i]))
            return true;
    return out->len == 0;
}

static bool signals_take(struct str *in, uint32_t *out)
{
    struct str digits;
    *out = 0;
    if (nothing_take(in))
        return true;
    if (!bytes_take(in, hex_digits, &digits) || digits.len > 2 * sizeof *out)
        return false;
    for (size_t i = 0; i < digits.len; i++)
        *out = *out << 4 | (uint32_t) codec_hex_digit(digits.p[i]);
    return true;
}

static bool trace_take(struct str *in, struct rec_trace *out)
{
    *out = (struct rec_trace){0};
    if (nothing_take(in))
        return true;
    if (!hex_take(in, TRACE_ID_LEN, &out->trace_id) || !byte_take(in, ':') || !hex_take(in, SPAN_ID_LEN, &out->span_id) || !byte_take(in, ':'))
        return false;
    out->sampled = byte_take(in, '1');
    return out->sampled || byte_take(in, '0');
}

static bool keys_take(struct str *in, struct str *out)
{
    struct str key;
    const char *begin = in->p;
    *out = STR_NONE;
    if (nothing_take(in))
        return true;
    do {
        if (!bytes_take(in, key_bytes, &key))
            return false;
    } while (byte_take(in, ','));
    *out = (struct str){begin, (size_t) (in->p - begin)};
    return true;
}

/* The version, too: one of another is nobody's. */
static bool agent_take(struct str *in, unsigned *out)
{
    uint64_t version, agent;
    if (!number_take(in, REC_VERSION, &version) || version != REC_VERSION || !byte_take(in, ' ') || !number_take(in, UINT16_MAX, &agent) ||
        !byte_take(in, ' '))
        return false;
    *out = (unsigned) agent;
    return true;
}

bool rec_agent(struct str text, unsigned *out)
{
    return agent_take(&text, out);
}

static bool decided_take(struct str *in, struct rec *out)
{
    uint64_t config_version;
    if (!agent_take(in, &out->agent) || !cohort_take(in, &out->cohort) || !byte_take(in, ' ') || !number_take(in, INT64_MAX, &config_version))
        return false;
    out->config_version = (int64_t) config_version;
    return byte_take(in, ' ') && decision_take(in, &out->decision) && byte_take(in, ' ') && auth_take(in, &out->auth) && byte_take(in, ' ');
}

static bool client_take(struct str *in, struct rec *out)
{
    return word_take(in, address_bytes, &out->client_ip) && byte_take(in, ' ') && word_take(in, name_bytes, &out->country) && byte_take(in, ' ') &&
           word_take(in, decimal_digits, &out->asnum) && byte_take(in, ' ') && word_take(in, name_bytes, &out->ja4) && byte_take(in, ' ') &&
           signals_take(in, &out->signals) && byte_take(in, ' ');
}

static bool rules_take(struct str *in, struct rec *out)
{
    return list_take(in, ITEM_LIMIT, &out->limits) && byte_take(in, ' ') && list_take(in, ITEM_CONFIG, &out->config_rules) && byte_take(in, ' ') &&
           list_take(in, ITEM_PLAIN, &out->header_rules) && byte_take(in, ' ') && list_take(in, ITEM_COUNTED, &out->counted) && byte_take(in, ' ') &&
           list_take(in, ITEM_SUBJECT, &out->subjects) && byte_take(in, ' ');
}

static bool request_take(struct str *in, struct rec *out)
{
    return trace_take(in, &out->trace) && byte_take(in, ' ') && word_take(in, name_bytes, &out->request_id) && byte_take(in, ' ') &&
           text_take(in, &out->method) && byte_take(in, ' ') && text_take(in, &out->host) && byte_take(in, ' ') && keys_take(in, &out->query_keys) &&
           byte_take(in, ' ') && number_take(in, UINT64_MAX, &out->n_query_keys_dropped) && byte_take(in, ' ') && text_take(in, &out->user_agent) &&
           byte_take(in, ' ') && text_take(in, &out->path);
}

bool rec_parse(struct str text, struct rec *out)
{
    return text.len <= REC_MAX && decided_take(&text, out) && client_take(&text, out) && rules_take(&text, out) && request_take(&text, out) &&
           text.len == 0;
}
