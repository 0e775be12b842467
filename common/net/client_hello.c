/* Fingerprints of a TLS ClientHello from the lists that HAProxy captured: JA3 and JA4. */
#include "common/net/client_hello.h"

#include <openssl/evp.h>

#include "common/base/codec.h"
#include "common/base/parse.h"

/* A list's text is longest with one-byte numbers: "255-" each. */
enum { EXTENSION_SNI = 0, EXTENSION_ALPN = 16, COUNT_SHOWN_MAX = 99, PART_LEN = 12, TEXT_MAX = 5 * HELLO_CAPTURE };

static bool is_grease(uint16_t v)
{
    return (v & 0x0f0f) == 0x0a0a && v >> 8 == (v & 0xff);
}

static bool list_has(const struct hello_list *l, uint16_t number)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i] == number)
            return true;
    return false;
}

/* ---- reading ---- */

static struct str next_field(struct str *text)
{
    const size_t blank = str_find_byte(*text, ' ');
    const struct str field = str_sub(*text, 0, blank);

    *text = blank == SIZE_MAX ? STR_NONE : str_sub(*text, blank + 1, text->len);
    return field;
}

/* One number of n_digits hex digits; -1: they are none. */
static int read_hex(const char *p, size_t n_digits)
{
    int value = 0;

    for (size_t i = 0; i < n_digits; i++) {
        const int digit = codec_hex_digit(p[i]);

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* *room: bytes of the capture that are left. */
static bool read_list(struct str field, size_t n_digits, size_t *room, struct hello_list *out)
{
    if (field.len % n_digits != 0 || field.len / 2 >= *room)
        return false;
    *room -= field.len / 2;
    out->n = 0;
    for (size_t i = 0; i < field.len; i += n_digits) {
        const int value = read_hex(field.p + i, n_digits);

        if (value < 0)
            return false;
        out->v[out->n++] = (uint16_t)value;
    }
    return true;
}

/* An extension without a name, or a name without the extension, is no knowledge. */
static bool read_alpn(struct str field, struct client_hello *out)
{
    const bool offered = list_has(&out->extensions, EXTENSION_ALPN);

    if (str_eq(field, STR("-"))) {
        out->has_alpn = false;
        return true;
    }
    if (field.len % 2 != 0 || field.len > 2 * ALPN_NAME_MAX)
        return false;
    out->alpn_len = field.len / 2;
    for (size_t i = 0; i < out->alpn_len; i++) {
        const int value = read_hex(field.p + 2 * i, 2);

        if (value < 0)
            return false;
        out->alpn[i] = (uint8_t)value;
    }
    out->has_alpn = offered == (out->alpn_len > 0);
    return true;
}

bool client_hello_read(struct str text, struct client_hello *out)
{
    /* HAProxy stops where the buffer is full, within a number or before it: what reaches its last byte may be cut. */
    size_t room = HELLO_CAPTURE - 1;
    uint64_t version;
    struct err e;

    err_clear(&e);
    if (!parse_u64(next_field(&text), 0, UINT16_MAX, &version, "", &e))
        return false;
    out->version = (uint16_t)version;
    return read_list(next_field(&text), 4, &room, &out->ciphers) && read_list(next_field(&text), 4, &room, &out->extensions) &&
           read_list(next_field(&text), 4, &room, &out->groups) && read_list(next_field(&text), 2, &room, &out->formats) &&
           read_list(next_field(&text), 4, &room, &out->versions) && read_list(next_field(&text), 4, &room, &out->signatures) &&
           text.p != NULL && str_find_byte(text, ' ') == SIZE_MAX && read_alpn(text, out);
}

/* ---- JA3 ---- */

static void put_decimals(struct buf *b, const struct hello_list *l, bool with_grease)
{
    bool first = true;

    for (size_t i = 0; i < l->n; i++) {
        if (!with_grease && is_grease(l->v[i]))
            continue;
        if (!first)
            buf_put_byte(b, '-');
        first = false;
        buf_put_u64(b, l->v[i]);
    }
}

/* The first n_digits hex digits of text's digest. */
static bool put_digest(const struct buf *text, const EVP_MD *md, char *out, size_t n_digits)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len;

    if (text->full || EVP_Digest(text->p, text->len, digest, &len, md, NULL) != 1)
        return false;
    codec_hex(digest, n_digits / 2, out);
    return true;
}

bool client_hello_ja3(const struct client_hello *h, char out[static JA3_LEN])
{
    char storage[TEXT_MAX];
    struct buf b;

    buf_init(&b, storage, sizeof(storage));
    buf_put_u64(&b, h->version);
    buf_put_byte(&b, ',');
    put_decimals(&b, &h->ciphers, false);
    buf_put_byte(&b, ',');
    put_decimals(&b, &h->extensions, false);
    buf_put_byte(&b, ',');
    put_decimals(&b, &h->groups, false);
    buf_put_byte(&b, ',');
    put_decimals(&b, &h->formats, true); /* of one byte: GREASE has two */
    return put_digest(&b, EVP_md5(), out, JA3_LEN);
}

/* ---- JA4 ---- */

/* The highest of supported_versions, else the hello's own; what is no version of TLS is 00. */
static struct str ja4_version(const struct client_hello *h)
{
    static const struct {
        uint16_t number;
        struct str name;
    } names[] = {{0x0304, STR("13")}, {0x0303, STR("12")}, {0x0302, STR("11")}, {0x0301, STR("10")}, {0x0300, STR("s3")}, {0x0002, STR("s2")}};
    uint16_t highest = 0;

    for (size_t i = 0; i < h->versions.n; i++)
        if (!is_grease(h->versions.v[i]) && h->versions.v[i] > highest)
            highest = h->versions.v[i];
    if (highest == 0)
        highest = h->version;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].number == highest)
            return names[i].name;
    return STR("00");
}

static void put_count(struct buf *b, const struct hello_list *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        n += !is_grease(l->v[i]);
    buf_printf(b, "%02zu", n > COUNT_SHOWN_MAX ? (size_t)COUNT_SHOWN_MAX : n);
}

/* First and last character of the first protocol; of its hex form where one of them is no ASCII letter or digit. */
static void put_alpn(struct buf *b, const struct client_hello *h)
{
    static const char digits[] = "0123456789abcdef";

    if (h->alpn_len == 0) {
        buf_put(b, STR("00"));
        return;
    }
    const uint8_t first = h->alpn[0], last = h->alpn[h->alpn_len - 1];
    const char c[2] = {(char)first, (char)last};
    const bool plain = (ascii_is_alpha(c[0]) || ascii_is_digit(c[0])) && (ascii_is_alpha(c[1]) || ascii_is_digit(c[1]));

    buf_put_byte(b, plain ? c[0] : digits[first >> 4]);
    buf_put_byte(b, plain ? c[1] : digits[last & 15]);
}

/* Appends the list, GREASE left out. skip: SNI and ALPN, which JA4 says elsewhere. */
static void put_hex(struct buf *b, const struct hello_list *l, bool skip)
{
    bool first = true;

    for (size_t i = 0; i < l->n; i++) {
        const uint16_t v = l->v[i];
        const uint8_t bytes[2] = {(uint8_t)(v >> 8), (uint8_t)v};
        char text[4];

        if (is_grease(v) || (skip && (v == EXTENSION_SNI || v == EXTENSION_ALPN)))
            continue;
        if (!first)
            buf_put_byte(b, ',');
        first = false;
        codec_hex(bytes, sizeof(bytes), text);
        buf_put(b, (struct str){text, sizeof(text)});
    }
}

static int by_number(const void *a, const void *b)
{
    const uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;

    return x < y ? -1 : x > y;
}

static void sorted(const struct hello_list *l, struct hello_list *out)
{
    out->n = l->n;
    memcpy(out->v, l->v, l->n * sizeof(l->v[0]));
    qsort(out->v, out->n, sizeof(out->v[0]), by_number);
}

/* The hash of a list sorted; zeros of an empty one. behind: a list that follows in its own order; NULL: none. */
static bool put_part(struct buf *out, const struct hello_list *l, bool skip, const struct hello_list *behind)
{
    char storage[TEXT_MAX], digits[PART_LEN];
    struct hello_list in_order;
    struct buf b;

    buf_init(&b, storage, sizeof(storage));
    sorted(l, &in_order);
    put_hex(&b, &in_order, skip);
    if (b.len == 0) {
        buf_put(out, STR("000000000000"));
        return true;
    }
    if (behind != NULL) {
        const size_t before = b.len;

        buf_put_byte(&b, '_');
        put_hex(&b, behind, false);
        if (b.len == before + 1)
            b.len = before;
    }
    if (!put_digest(&b, EVP_sha256(), digits, sizeof(digits)))
        return false;
    buf_put(out, (struct str){digits, sizeof(digits)});
    return true;
}

bool client_hello_ja4(const struct client_hello *h, char out[static JA4_LEN])
{
    char storage[JA4_LEN + 1]; /* buf_printf ends with NUL */
    struct buf b;

    if (!h->has_alpn)
        return false;
    buf_init(&b, storage, sizeof(storage));
    buf_put_byte(&b, 't');
    buf_put(&b, ja4_version(h));
    buf_put_byte(&b, list_has(&h->extensions, EXTENSION_SNI) ? 'd' : 'i');
    put_count(&b, &h->ciphers);
    put_count(&b, &h->extensions);
    put_alpn(&b, h);
    buf_put_byte(&b, '_');
    if (!put_part(&b, &h->ciphers, false, NULL))
        return false;
    buf_put_byte(&b, '_');
    if (!put_part(&b, &h->extensions, true, &h->signatures) || b.full || b.len != JA4_LEN)
        return false;
    memcpy(out, storage, JA4_LEN);
    return true;
}
