/* Texts of the agent's part of an access record: any bytes as the inside of a JSON string, and what is one. */
#include "spoa/record/rec_priv.h"

#include "common/base/codec.h"

const bool rec_plain[256] = {['!'] = true, ['#' ... '['] = true, [']' ... '~'] = true};
const bool rec_plain_in_list[256] = {['!'] = true, ['#' ... '+'] = true, ['-' ... '['] = true, [']' ... '~'] = true};

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
    static const char blank[] = "\\u0020";
    /* User agents are full of them. */
    if (text.p[0] == ' ') {
        *taken = 1;
        memcpy(out, blank, UTF16_ESCAPE_LEN);
        return UTF16_ESCAPE_LEN;
    }
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

static void put_inside(struct buf *b, struct str text, size_t max, size_t room, const bool set[static 256])
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
        size_t taken = str_span(str_sub(rest, 0, left), set);
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

void rec_put_text(struct buf *b, struct str text, size_t max, size_t room)
{
    put_inside(b, text, max, room, rec_plain);
}

void rec_put_item_text(struct buf *b, struct str text, size_t room)
{
    put_inside(b, text, text.len, room, rec_plain_in_list);
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

size_t rec_escape_len(struct str text)
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
