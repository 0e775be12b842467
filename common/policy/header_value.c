/* Header values at work: placeholders replaced, and made safe for the wire. */
#include "common/policy/header_value_priv.h"

enum { VALUE_MAX = 8 * 1024, NUMBER_MAX = 20 };

/* Controls but the tab, and DEL (RFC 9110 5.5): a CR or LF would begin another header. Other bytes pass as they are, UTF-8 or not. */
static bool is_control(char c)
{
    unsigned char byte = (unsigned char) c;
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

static void put_clean(struct buf *b, struct str value)
{
    for (size_t from = 0, at = 0; at <= value.len; at++) {
        if (at < value.len && !is_control(value.p[at]))
            continue;
        buf_put(b, str_sub(value, from, at));
        from = at + 1;
    }
}

bool header_value_clean(struct str value, struct arena *a, struct str *out)
{
    struct buf b;

    if (value.len > VALUE_MAX)
        return false;
    if (header_value_ok(value)) {
        *out = value;
        return true;
    }
    if (!arena_take_buf(a, value.len, &b))
        return false;
    put_clean(&b, value);
    *out = str_trim(buf_str(&b));
    return true;
}

/* Text that is made for the purpose stands in here. */
struct made_text {
    char address[ADDR_TEXT_MAX], number[NUMBER_MAX];
};

static struct str address_text(const struct expr_facts *f, struct made_text *made)
{
    if (!f->has_ip)
        return STR_NONE;
    return (struct str){made->address, addr_render(&f->ip, made->address)};
}

static struct str number_text(const struct expr_facts *f, struct made_text *made)
{
    struct buf b;

    buf_init(&b, made->number, sizeof made->number);
    if (f->viewer.has_asnum)
        buf_put_i64(&b, f->viewer.asnum);
    return buf_str(&b);
}

/* Empty where the request has none. */
static struct str value_of(const struct value_part *part, const struct expr_facts *f, struct made_text *made)
{
    struct str value = STR_NONE;

    switch (part->kind) {
    case VALUE_LITERAL:
        return part->text;
    case VALUE_CLIENT_IP:
        return address_text(f, made);
    case VALUE_COUNTRY:
        return f->viewer.country;
    case VALUE_CONTINENT:
        return f->viewer.continent;
    case VALUE_ASNUM:
        return number_text(f, made);
    case VALUE_JA3:
        return f->viewer.ja3;
    case VALUE_JA4:
        return f->viewer.ja4;
    case VALUE_HOST:
        return f->host;
    case VALUE_METHOD:
        return f->method;
    case VALUE_PATH:
        return f->path;
    case VALUE_LOCALE:
        return expr_facts_locale(f);
    case VALUE_HEADER:
        return expr_facts_header(f, part->text, &value) ? value : STR_NONE;
    case VALUE_COOKIE:
        return expr_facts_cookie(f, part->text, &value) ? value : STR_NONE;
    case VALUE_QUERY:
        return expr_facts_argument(f, part->text, &value) ? value : STR_NONE;
    case VALUE_CLAIM:
        return expr_facts_claim(f, part->text, &value) ? value : STR_NONE;
    case VALUE_N:
        break;
    }
    return STR_NONE;
}

bool header_value_render(const struct value_part *parts, size_t n, const struct request_view *r, struct arena *a, struct str *out)
{
    struct made_text made;
    size_t len = 0;
    struct buf b;

    for (size_t i = 0; i < n && len <= VALUE_MAX; i++)
        len += value_of(&parts[i], &r->facts, &made).len;
    if (len > VALUE_MAX || !arena_take_buf(a, len, &b))
        return false;
    for (size_t i = 0; i < n; i++)
        put_clean(&b, value_of(&parts[i], &r->facts, &made));
    *out = str_trim(buf_str(&b));
    return true;
}
