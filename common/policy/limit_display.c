/* A limit's subject as people are shown it: enough to recognise a client by, never enough of a secret to use it. */
#include "common/policy/limits_priv.h"

enum { BEGINNING_MAX = 4, LAST_ASCII = '~', LAST_CONTROL = 0x9f };

/* Characters that show nothing, or change how others around them are shown. */
static const struct {
    unsigned first, last;
} unprintable[] = {{0xad, 0xad}, {0x200b, 0x200f}, {0x2028, 0x202f}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff0, 0xfffb}};

/* text: one whole UTF-8 sequence of len bytes, at least two. */
static unsigned code_point(const char *text, size_t len)
{
    unsigned code = (unsigned char) text[0] & (0x7fu >> len);

    for (size_t i = 1; i < len; i++)
        code = code << 6 | ((unsigned char) text[i] & 0x3f);
    return code;
}

/* text: what begins with the character, len its bytes; 0: it is no UTF-8. */
static bool is_printable(struct str text, size_t len)
{
    if (len < 2)
        return len == 1 && text.p[0] >= ' ' && text.p[0] <= LAST_ASCII;
    unsigned code = code_point(text.p, len);
    if (code <= LAST_CONTROL)
        return false;
    for (size_t i = 0; i < sizeof unprintable / sizeof unprintable[0]; i++)
        if (code >= unprintable[i].first && code <= unprintable[i].last)
            return false;
    return true;
}

/* Takes the character that text begins with; what stands for it when it can't be shown. */
static struct str character_take(struct str *text)
{
    size_t len = str_utf8_len(*text), taken = len > 0 ? len : 1;
    struct str shown = is_printable(*text, len) ? str_sub(*text, 0, taken) : STR("?");

    str_skip(text, taken);
    return shown;
}

/* At most n characters of text; b takes nothing any more once one has not fitted. */
static void put_characters(struct buf *b, struct str text, size_t n)
{
    while (text.len > 0 && n-- > 0)
        buf_put(b, character_take(&text));
}

static void put_beginning(struct buf *b, struct str value)
{
    struct str rest = value;
    size_t n = 0;

    while (rest.len > 0 && n < (size_t) 2 * BEGINNING_MAX) {
        (void) character_take(&rest);
        n++;
    }
    put_characters(b, value, n / 2);
    put_characters(b, STR("\xe2\x80\xa6"), 1);
}

static void put_address(struct buf *b, const struct expr_facts *f)
{
    char text[ADDR_TEXT_MAX];

    if (!f->has_ip) {
        put_characters(b, STR("no address"), SIZE_MAX);
        return;
    }
    struct addr unit = addr_subscriber(&f->ip);
    put_characters(b, (struct str){text, addr_render(&unit, text)}, SIZE_MAX);
    if (!addr_is_v4(&f->ip))
        put_characters(b, STR("/64"), SIZE_MAX);
}

static void put_part(struct buf *b, const struct key_part *part, const struct expr_facts *f)
{
    char number[LIMITS_NUMBER_MAX];
    struct str value = limits_value(part, f, number);

    switch (part->kind) {
    case KEY_PART_IP:
        put_address(b, f);
        return;
    case KEY_PART_HEADER:
    case KEY_PART_COOKIE:
    case KEY_PART_QUERY:
    case KEY_PART_CLAIM:
        put_characters(b, part->name, SIZE_MAX);
        put_characters(b, STR("="), 1);
        put_beginning(b, value);
        return;
    case KEY_PART_CONSTANT:
        put_characters(b, STR("constant"), SIZE_MAX);
        return;
    case KEY_PART_ASNUM:
        put_characters(b, STR("AS"), SIZE_MAX);
        put_characters(b, value, SIZE_MAX);
        return;
    case KEY_PART_HOST:
    case KEY_PART_METHOD:
    case KEY_PART_COUNTRY:
    case KEY_PART_JA4:
    case KEY_PART_LOCALE:
    case KEY_PART_PATH:
    case KEY_PART_N:
        put_characters(b, value, SIZE_MAX);
        return;
    }
}

void policy_limit_display(const struct rate_rule *rule, const struct request_view *r, struct buf *b)
{
    struct buf shown;

    buf_init(&shown, b->p + b->len, b->cap - b->len < LIMIT_DISPLAY_MAX ? b->cap - b->len : LIMIT_DISPLAY_MAX);
    if (!limits_has_key(rule, &r->facts)) {
        put_address(&shown, &r->facts);
    } else {
        for (size_t i = 0; i < rule->n_key; i++) {
            if (i > 0)
                put_characters(&shown, STR(" "), 1);
            put_part(&shown, &rule->key[i], &r->facts);
        }
    }
    b->len += shown.len;
}
