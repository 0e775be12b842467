/* The form of literals and keys, whatever their field means: addresses, whole numbers, truths, signals, wildcards. */
#include "common/expr/literal_priv.h"

enum { VALUE_SHOWN = 64, KEY_MAX_BYTES = 256, WILDCARD_BLOCK_BYTES = 1024 };

/* ---- addresses ---- */

/* "first..last", both of one family. */
static bool read_address_range(struct str text, size_t dots, struct addr_range *out, struct err *e)
{
    struct str shown = str_cut_utf8(text, VALUE_SHOWN);
    struct addr_range r;

    if (!addr_parse(str_sub(text, 0, dots), &r.first) || !addr_parse(str_sub(text, dots + 2, text.len), &r.last))
        return err_set(e, ERR_BAD_VALUE, "", "\"%.*s\" is no range: write two addresses, such as 192.0.2.1..192.0.2.9",
                       STR_ARG(shown));
    if (addr_is_v4(&r.first) != addr_is_v4(&r.last))
        return err_set(e, ERR_BAD_VALUE, "", "\"%.*s\" mixes IPv4 and IPv6: write a range for each", STR_ARG(shown));
    if (addr_cmp(&r.first, &r.last) > 0)
        return err_set(e, ERR_BAD_VALUE, "", "\"%.*s\" ends before it begins: swap its addresses", STR_ARG(shown));
    *out = r;
    return true;
}

/* For address/length that is no CIDR: the length is wrong, or bits behind it are set. */
static bool no_cidr(struct str text, struct addr address, struct str length, struct err *e)
{
    const bool dotted = addr_is_v4(&address) && str_find_byte(text, ':') == SIZE_MAX;
    char any[32], network[ADDR_TEXT_MAX];
    struct addr_range r;
    const int n = snprintf(any, sizeof(any), "%s/%.*s", dotted ? "0.0.0.0" : "::", STR_ARG(str_cut_utf8(length, 8)));

    if (!addr_parse_cidr((struct str){any, (size_t) n}, &r))
        return err_set(e, ERR_BAD_VALUE, "", "\"%.*s\" is no CIDR: write a prefix length from 0 to %d behind the /",
                       STR_ARG(str_cut_utf8(text, VALUE_SHOWN)), dotted ? 32 : 128);
    for (size_t i = 0; i < sizeof(address.b); i++)
        address.b[i] &= (uint8_t) ~(r.first.b[i] ^ r.last.b[i]);
    const size_t len = addr_render(&address, network);
    return err_set(e, ERR_BAD_VALUE, "", "\"%.*s\" is no CIDR, since bits behind the prefix are set: write %.*s/%.*s for the range",
                   STR_ARG(str_cut_utf8(text, VALUE_SHOWN)), (int) len, network, STR_ARG(length));
}

/* The most helpful words for what is neither an address nor a CIDR. */
static bool no_address(struct str text, struct err *e)
{
    struct str shown = str_cut_utf8(text, VALUE_SHOWN);
    size_t zone = str_find_byte(text, '%'), slash = str_find_byte(text, '/');
    struct addr before;

    if (zone != SIZE_MAX && addr_parse(str_sub(text, 0, zone), &before))
        return err_set(e, ERR_EXPR_NEVER_MATCHES, "",
                       "\"%.*s\" can never match: a client's address has no zone; write %.*s", STR_ARG(shown),
                       STR_ARG(str_sub(text, 0, zone)));
    if (slash != SIZE_MAX && addr_parse(str_sub(text, 0, slash), &before))
        return no_cidr(text, before, str_sub(text, slash + 1, text.len), e);
    return err_set(e, ERR_BAD_VALUE, "", "\"%.*s\" is no address such as 192.0.2.1 or 2001:db8::1", STR_ARG(shown));
}

/* For a range behind an operator that compares with one value; what: "address". */
static bool no_range(enum op op, const char *what, struct str text, struct err *e)
{
    const struct operator_info *info = operator_info(op);
    bool has_twin = op == OP_EQ || op == OP_NE;

    return err_set(e, ERR_EXPR_TYPE, "", "%s compares with one %s: for several use %s {%.*s}", info->name, what,
                   operator_info(has_twin && info->negated ? OP_NOT_IN : OP_IN)->name,
                   STR_ARG(str_cut_utf8(text, VALUE_SHOWN)));
}

bool value_read_addresses(struct value *v, enum op op, struct err *e)
{
    size_t dots = str_find(v->text, STR(".."));
    struct addr single;

    if (dots != SIZE_MAX ? !read_address_range(v->text, dots, &v->range, e) : !addr_parse_cidr(v->text, &v->range))
        return dots != SIZE_MAX ? false : no_address(v->text, e);
    if (operator_info(op)->set || addr_parse(v->text, &single))
        return true;
    return no_range(op, "address", v->text, e);
}

/* ---- whole numbers ---- */

static bool no_int(struct str text, const char *why, struct err *e)
{
    return err_set(e, ERR_BAD_VALUE, "", "\"%.*s\" is no whole number: %s", STR_ARG(str_cut_utf8(text, VALUE_SHOWN)),
                   why);
}

/* Decimal, as a person would write it down: no '+', no leading zeros, no -0. */
static bool read_int(struct str text, int64_t *out, struct err *e)
{
    bool negative = str_starts(text, STR("-"));
    struct str digits = str_sub(text, negative, text.len);
    uint64_t limit = (uint64_t)INT64_MAX + negative, n = 0;

    for (size_t i = 0; i < digits.len; i++)
        if (!ascii_is_digit(digits.p[i]))
            return no_int(text, "write decimal digits only, such as 64496", e);
    if (digits.len == 0)
        return no_int(text, "write decimal digits, such as 64496", e);
    if (digits.p[0] == '0' && (negative || digits.len > 1))
        return no_int(text, "leave out the zero that it begins with", e);
    for (size_t i = 0; i < digits.len; i++) {
        uint64_t digit = (uint64_t)(digits.p[i] - '0');

        if (n > (limit - digit) / 10)
            return no_int(text, "it does not fit 64 bits", e);
        n = n * 10 + digit;
    }
    *out = negative ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}

bool value_read_int(struct value *v, enum op op, struct err *e)
{
    size_t dots = str_find(v->text, STR(".."));
    int64_t first, last;

    if (dots == SIZE_MAX) {
        if (!read_int(v->text, &first, e))
            return false;
        last = first;
    } else if (!read_int(str_sub(v->text, 0, dots), &first, e) ||
               !read_int(str_sub(v->text, dots + 2, v->text.len), &last, e)) {
        return false;
    }
    if (first > last)
        return err_set(e, ERR_BAD_VALUE, "", "\"%.*s\" ends before it begins: swap its numbers",
                       STR_ARG(str_cut_utf8(v->text, VALUE_SHOWN)));
    if (dots != SIZE_MAX && !operator_info(op)->set)
        return no_range(op, "number", v->text, e);
    v->ints.first = first;
    v->ints.last = last;
    return true;
}

/* ---- the rest ---- */

static bool read_truth(struct value *v, struct err *e)
{
    v->truth = str_eq(v->text, STR("true"));
    if (v->truth || str_eq(v->text, STR("false")))
        return true;
    return err_set(e, ERR_EXPR_TYPE, "", "\"%.*s\" is no truth value: write true or false",
                   STR_ARG(str_cut_utf8(v->text, VALUE_SHOWN)));
}

static bool wildcard_ok(struct str text, struct err *e)
{
    struct wildcard w;
    struct arena scratch;
    bool ok;

    arena_init(&scratch, WILDCARD_BLOCK_BYTES, 0);
    ok = wildcard_compile(text, true, &scratch, &w, e);
    arena_release(&scratch);
    return ok;
}

bool literal_read(struct value *v, enum field f, enum op op, struct err *e)
{
    switch (field_info(f)->type) {
    case T_IP:
        return value_read_addresses(v, op, e);
    case T_INT:
        return value_read_int(v, op, e);
    case T_BOOL:
        return read_truth(v, e);
    case T_SIGNAL:
        return signal_find(v->text, &v->signal) || signal_unknown(v->text, e);
    default:
        return (op != OP_WILDCARD && op != OP_STRICT_WILDCARD) || wildcard_ok(v->text, e);
    }
}

const char *literal_form(enum field f)
{
    switch (field_info(f)->type) {
    case T_IP:
        return "an address such as 192.0.2.1";
    case T_INT:
        return "a whole number such as 64496";
    case T_BOOL:
        return "true or false";
    case T_SIGNAL:
        return "the name of a signal in quotes, such as \"no_user_agent\"";
    default:
        return "a string in quotes";
    }
}

/* ---- keys ---- */

static bool header_key_ok(struct str key, struct err *e)
{
    struct str shown = str_cut_utf8(key, VALUE_SHOWN);

    if (!header_name_ok(key))
        return err_set(e, ERR_EXPR_KEY, "",
                       "no header has the name \"%.*s\": write an RFC 9110 token such as x-api-key", STR_ARG(shown));
    if (str_eq_nocase(key, STR("host")))
        return err_set(e, ERR_RESERVED, "", "the header \"%.*s\" belongs to the connection: use http.host",
                       STR_ARG(shown));
    if (str_eq_nocase(key, STR("x-forwarded-for")))
        return err_set(e, ERR_RESERVED, "", "the header \"%.*s\" belongs to the edge: use http.x_forwarded_for",
                       STR_ARG(shown));
    if (header_name_reserved(key))
        return err_set(e, ERR_RESERVED, "",
                       "the header \"%.*s\" belongs to the edge or the connection: no rule reads it", STR_ARG(shown));
    return true;
}

bool literal_key_ok(enum field f, struct str key, struct err *e)
{
    const struct field_info *info = field_info(f);

    if (f == FIELD_HTTP_QUERY && key.p != NULL)
        return err_set(e, ERR_EXPR_KEY, "", "%s takes no key: one parameter is http.request.uri.args[\"%.*s\"]", info->name,
                       STR_ARG(str_cut_utf8(key, VALUE_SHOWN)));
    if (info->key == KEY_NONE && key.p != NULL)
        return err_set(e, ERR_EXPR_KEY, "", "%s takes no key: leave out [\"%.*s\"]", info->name,
                       STR_ARG(str_cut_utf8(key, VALUE_SHOWN)));
    if (info->key != KEY_NONE && key.p == NULL)
        return err_set(e, ERR_EXPR_KEY, "", "%s needs a key: write %s[\"name\"]", info->name, info->name);
    if (key.len > KEY_MAX_BYTES)
        return err_set(e, ERR_EXPR_KEY, "", "the key has %zu bytes: at most %d are allowed", key.len, KEY_MAX_BYTES);
    switch (info->key) {
    case KEY_NONE:
        return true;
    case KEY_HEADER:
        return header_key_ok(key, e);
    case KEY_COOKIE:
        return str_is_token(key) ||
               err_set(e, ERR_EXPR_KEY, "", "no cookie has the name \"%.*s\": write an RFC 9110 token such as session",
                       STR_ARG(str_cut_utf8(key, VALUE_SHOWN)));
    case KEY_PARAMETER:
    case KEY_CLAIM:
        break;
    }
    return key.len > 0 || err_set(e, ERR_EXPR_KEY, "", "%s takes a key of at least one character", info->name);
}
