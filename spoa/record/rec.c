/* Reading and writing the agent's part of an access record. */
#include "spoa/record/rec.h"

#include "common/base/codec.h"
#include "common/base/parse.h"

/* Bytes that stand for themselves in a text: printable ASCII but '"' and '\\'. */
static const bool plain[256] = {['!'] = true, ['#' ... '['] = true, [']' ... '~'] = true};

enum { UTF16_ESCAPE_LEN = 6, ESCAPE_MAX = 2 * UTF16_ESCAPE_LEN, REPLACEMENT = 0xfffd, BEYOND_BMP = 0x10000 };

static size_t put_utf16(char *out, unsigned unit)
{
    static const char hex[] = "0123456789abcdef";
    out[0] = '\\';
    out[1] = 'u';
    for (size_t i = 0; i < 4; i++)
        out[2 + i] = hex[unit >> (12 - 4 * i) & 15];
    return UTF16_ESCAPE_LEN;
}

/* text: one whole UTF-8 sequence of len bytes. */
static unsigned code_point(const char *text, size_t len)
{
    static const unsigned first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned code = (unsigned char) text[0] & first_bits[len];
    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char) text[i] & 0x3f);
    return code;
}

/* The escape of what text begins with, how long it is, and in *taken the bytes it stands for. */
static size_t escape(struct str text, char out[static ESCAPE_MAX], size_t *taken)
{
    size_t len = str_utf8_len(text);
    *taken = len > 0 ? len : 1;
    if (text.p[0] == '"' || text.p[0] == '\\') {
        out[0] = '\\';
        out[1] = text.p[0];
        return 2;
    }
    unsigned code = len > 0 ? code_point(text.p, len) : REPLACEMENT;
    if (code < BEYOND_BMP)
        return put_utf16(out, code);
    put_utf16(out, 0xd800 | (code - BEYOND_BMP) >> 10);
    put_utf16(out + UTF16_ESCAPE_LEN, 0xdc00 | ((code - BEYOND_BMP) & 0x3ff));
    return ESCAPE_MAX;
}

void rec_put_text(struct buf *b, struct str text, size_t max, size_t room)
{
    size_t begin = b->len, left = room < b->cap - b->len ? room : b->cap - b->len;
    struct str rest = str_cut_utf8(text, max);
    char escaped[ESCAPE_MAX];
    /* One that stands alone would read as empty. */
    if (str_eq(rest, STR("-")) && left >= UTF16_ESCAPE_LEN) {
        buf_put(b, (struct str){escaped, put_utf16(escaped, '-')});
        return;
    }
    while (rest.len > 0 && left > 0) {
        size_t taken = str_span(str_sub(rest, 0, left), plain);
        struct str piece = str_sub(rest, 0, taken);
        if (taken == 0)
            piece = (struct str){escaped, escape(rest, escaped, &taken)};
        if (piece.len > left)
            break;
        buf_put(b, piece);
        left -= piece.len;
        rest = str_sub(rest, taken, rest.len);
    }
    if (b->len == begin)
        buf_put_byte(b, '-');
}

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

/* The unit of the escape that text begins with. */
static bool utf16_get(struct str text, unsigned *unit)
{
    unsigned value = 0;
    if (text.len < UTF16_ESCAPE_LEN || text.p[0] != '\\' || text.p[1] != 'u')
        return false;
    for (size_t i = 2; i < UTF16_ESCAPE_LEN; i++) {
        int digit = codec_hex_digit(text.p[i]);
        if (digit < 0)
            return false;
        value = value << 4 | (unsigned) digit;
    }
    *unit = value;
    return true;
}

/* Takes the part before the next blank, or the rest. */
static struct str part_take(struct str *in)
{
    size_t end = str_find_byte(*in, ' ');
    struct str part = str_sub(*in, 0, end);
    str_skip(in, end == SIZE_MAX ? in->len : end + 1);
    return part;
}

/* Length of the escape that text begins with: of a quote, a backslash or a character, the halves of a pair together; 0 when it is none. */
static size_t escape_len(struct str text)
{
    if (text.len >= 2 && (text.p[1] == '"' || text.p[1] == '\\'))
        return 2;
    unsigned high, low;
    if (!utf16_get(text, &high) || (high & 0xfc00) == 0xdc00)
        return 0;
    if ((high & 0xfc00) != 0xd800)
        return UTF16_ESCAPE_LEN;
    return utf16_get(str_sub(text, UTF16_ESCAPE_LEN, text.len), &low) && (low & 0xfc00) == 0xdc00 ? ESCAPE_MAX : 0;
}

static bool is_json_inside(struct str text)
{
    for (;;) {
        str_skip(&text, str_span(text, plain));
        if (text.len == 0)
            return true;
        size_t n = text.p[0] == '\\' ? escape_len(text) : 0;
        if (n == 0)
            return false;
        str_skip(&text, n);
    }
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
    return parse_digits(part_take(in), max, out);
}

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

bool rec_parse(struct str text, struct rec *out)
{
    uint64_t version, agent, config_version;
    enum decision decision;
    if (!number_take(&text, REC_VERSION, &version) || version != REC_VERSION)
        return false;
    if (!number_take(&text, UINT16_MAX, &agent) || !number_take(&text, INT64_MAX, &config_version))
        return false;
    if (!rec_decision_find(part_take(&text), &decision))
        return false;
    out->agent = (unsigned) agent;
    out->config_version = (int64_t) config_version;
    out->decision = decision;
    bool whole = text_take(&text, &out->client_ip) && text_take(&text, &out->rate_rule) && text_take(&text, &out->config_rules) &&
                 text_take(&text, &out->header_rules) && text_take(&text, &out->request_id) && text_take(&text, &out->method) &&
                 text_take(&text, &out->host) && text_take(&text, &out->path);
    return whole && text.len == 0 && is_json_inside(out->method) && is_json_inside(out->host) && is_json_inside(out->path);
}
