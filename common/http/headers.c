/* Header lists in HAProxy's binary encoding, and which names and values may stand in them. */
#include "common/http/headers.h"

#include "common/base/varint.h"

enum { NAME_MAX_BYTES = 256, VALUE_MAX_BYTES = 8 * 1024 };

/* in: a copy that the caller drops on failure. */
static inline bool get_string(struct str *in, struct str *out)
{
    uint64_t len;
    if (!varint_get(in, &len) || len > in->len)
        return false;
    *out = (struct str){in->p, (size_t)len};
    str_skip(in, (size_t)len);
    return true;
}

bool headers_decode(struct str bin, struct arena *a, struct headers *out)
{
    struct header items[HEADERS_MAX];
    size_t n = 0;
    for (;;) {
        struct header h;
        if (!get_string(&bin, &h.name) || !get_string(&bin, &h.value))
            return false;
        if (h.name.len == 0) {
            if (h.value.len != 0 || bin.len != 0)
                return false;
            break;
        }
        if (n == HEADERS_MAX)
            return false;
        items[n++] = h;
    }
    struct header *copy = arena_take_n(a, n, sizeof(*copy));
    if (copy == NULL)
        return false;
    if (n > 0)
        memcpy(copy, items, n * sizeof(*copy));
    *out = (struct headers){copy, n};
    return true;
}

bool headers_get(const struct headers *h, struct str name, struct str *value)
{
    for (size_t i = 0; i < h->n; i++) {
        if (str_eq_nocase(h->items[i].name, name)) {
            *value = h->items[i].value;
            return true;
        }
    }
    return false;
}

size_t headers_count(const struct headers *h, struct str name)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        n += str_eq_nocase(h->items[i].name, name) ? 1 : 0;
    return n;
}

bool headers_get_single(const struct headers *h, struct str name, struct str *value)
{
    return headers_count(h, name) == 1 && headers_get(h, name, value);
}

bool headers_join(const struct headers *h, struct str name, struct arena *a, struct str *out)
{
    static const struct str between = {", ", 2};
    size_t n = 0, n_joined = 0, len = 0;
    struct str only = STR_NONE;
    struct buf b;

    for (size_t i = 0; i < h->n; i++)
        if (str_eq_nocase(h->items[i].name, name)) {
            only = h->items[i].value;
            len += h->items[i].value.len + between.len;
            n++;
        }
    if (n <= 1) {
        *out = only;
        return true;
    }
    if (!arena_take_buf(a, len, &b))
        return false;
    for (size_t i = 0; i < h->n; i++)
        if (str_eq_nocase(h->items[i].name, name)) {
            buf_put(&b, n_joined++ == 0 ? STR_NONE : between);
            buf_put(&b, h->items[i].value);
        }
    *out = buf_str(&b);
    return true;
}

static void put_string(struct buf *b, struct str s)
{
    varint_put(b, s.len);
    buf_put(b, s);
}

void headers_put_del(struct buf *b, struct str name)
{
    put_string(b, name);
}

void headers_end_del(struct buf *b)
{
    varint_put(b, 0);
}

void headers_put_add(struct buf *b, struct str name, struct str value)
{
    put_string(b, name);
    put_string(b, value);
}

void headers_end_add(struct buf *b)
{
    varint_put(b, 0);
    varint_put(b, 0);
}

bool header_name_ok(struct str name)
{
    return name.len <= NAME_MAX_BYTES && str_is_token(name);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool header_value_ok(struct str value)
{
    if (value.len > VALUE_MAX_BYTES)
        return false;
    if (value.len > 0 && (is_blank(value.p[0]) || is_blank(value.p[value.len - 1])))
        return false;
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static char fold_name(char c)
{
    return c == '_' ? '-' : ascii_lower(c);
}

bool header_names_alike(struct str a, struct str b)
{
    size_t n = 0;

    while (n < a.len && a.len == b.len && fold_name(a.p[n]) == fold_name(b.p[n]))
        n++;
    return n == a.len && a.len == b.len;
}

/* CGI-style upstreams read '_' and '-' alike, so a twin of a reserved name is as good as the name. */
static bool begins_with_twin(struct str name, struct str prefix)
{
    if (name.len < prefix.len)
        return false;
    for (size_t i = 0; i < prefix.len; i++) {
        if (fold_name(name.p[i]) != prefix.p[i])
            return false;
    }
    return true;
}

bool header_name_reserved(struct str name)
{
    static const struct {
        struct str text;
        bool is_prefix;
    } rows[] = {
#define RESERVED_HEADER(text) {{(text), sizeof(text) - 1}, false},
#define RESERVED_PREFIX(text) {{(text), sizeof(text) - 1}, true},
#include "schemas/reserved_headers.def"
#undef RESERVED_HEADER
#undef RESERVED_PREFIX
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((rows[i].is_prefix || name.len == rows[i].text.len) && begins_with_twin(name, rows[i].text))
            return true;
    return false;
}
