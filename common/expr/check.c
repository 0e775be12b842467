/* What only meaning can refuse: a field that the phase does not have, and literals that the field can never equal,
 * hold, begin or end with. Such a rule would look active and do nothing. */
#include "common/expr/expr_priv.h"

#include <stdio.h>

/* Which part of the field's value a literal is compared with. A negated operator is the negation of its positive form,
 * so its literal is held to the same rules: a `ne` that is always true is as dead as an `eq` that never is. */
enum part { WHOLE, BEGINNING, ENDING, INSIDE };

static enum part part_of(enum op op)
{
    if (op == OP_CONTAINS)
        return INSIDE;
    if (op == OP_STARTS_WITH)
        return BEGINNING;
    return op == OP_ENDS_WITH ? ENDING : WHOLE;
}

static bool has_byte(struct str s, char byte)
{
    return str_find_byte(s, byte) != SIZE_MAX;
}

static bool is_address_byte(char c)
{
    return ascii_is_digit(c) || (c >= 'a' && c <= 'f') || c == ':' || c == '.';
}

/* Each of the next three says why v can never be that part of the field's value, and what would be right; NULL: it can.
 */

/* Only an IPv6 address keeps a ':' once the port is off. */
static const char *host_reason(struct str v, enum part part)
{
    static const char *const no_port = "http.host has no port: leave it out";
    struct addr whole;

    for (size_t i = 0; i < v.len; i++)
        if (ascii_lower(v.p[i]) != v.p[i])
            return "http.host is always lower case: write it so";
    if (has_byte(v, '[') || has_byte(v, ']'))
        return "http.host has no brackets: write an IPv6 address without them";
    if ((part == WHOLE || part == ENDING) && str_ends(v, STR(".")))
        return "http.host has no dot at its end: leave it out";
    if (!has_byte(v, ':'))
        return NULL;
    for (size_t i = 0; i < v.len; i++)
        if (!is_address_byte(v.p[i]))
            return no_port;
    return part == WHOLE && !addr_parse(v, &whole) ? no_port : NULL;
}

/* Every other method is refused before rules are asked. */
static const char *method_reason(struct str v, enum part part)
{
    (void)part;
    for (size_t i = 0; i < v.len; i++) {
        if (!ascii_is_tchar(v.p[i]))
            return "a method is an RFC 9110 token such as GET";
        if (v.p[i] >= 'a' && v.p[i] <= 'z')
            return "a method is upper case (others are refused with 400): write it so";
    }
    return v.len == 0 ? "a method has at least one character" : NULL;
}

/* Whether v has a whole "." or ".." segment: one that a '/' or the end of the path bounds on either side. */
static bool has_dot_segment(struct str v, enum part part)
{
    bool ends_path = part == WHOLE || part == ENDING;

    for (size_t from = str_find_byte(v, '/'); from < v.len;) {
        struct str rest = str_sub(v, from + 1, v.len);
        size_t slash = str_find_byte(rest, '/');
        struct str segment = str_sub(rest, 0, slash);

        if ((str_eq(segment, STR(".")) || str_eq(segment, STR(".."))) && (slash != SIZE_MAX || ends_path))
            return true;
        from = slash == SIZE_MAX ? v.len : from + 1 + slash;
    }
    return false;
}

/* Holds v against common/http/path.h: what normalisation removes or the edge refuses is in no path that a rule sees. */
static const char *path_reason(struct str v, enum part part)
{
    if ((part == WHOLE || part == BEGINNING) && !str_starts(v, STR("/")))
        return "a path begins with /: write it so";
    if (has_byte(v, '\\'))
        return "a path with a backslash is refused with 400";
    if (has_byte(v, ';'))
        return "rules see paths without their ;parameters: leave them out";
    if (str_find(v, STR("//")) != SIZE_MAX)
        return "rules see // as /: write it so";
    if (has_dot_segment(v, part))
        return "rules see paths without . segments, and .. is refused with 400: leave them out";
    return NULL;
}

static const char *never_matches(enum field f, struct str v, enum part part)
{
    if (f == FIELD_HTTP_HOST)
        return host_reason(v, part);
    if (f == FIELD_HTTP_METHOD)
        return method_reason(v, part);
    return f == FIELD_HTTP_PATH ? path_reason(v, part) : NULL;
}

enum { VALUE_SHOWN = 100 };

/* An empty beginning, ending or inside is refused whatever the field: it matches always, and `true` is the one way to
 * say so. An empty host is what a request without Host has, so that can be asked for. */
static bool check_value(const struct condition *c, const struct value *v, struct err *e)
{
    enum part part = part_of(c->op);
    const char *reason;

    if (part != WHOLE && v->text.len == 0)
        return err_set(e, ERR_BAD_VALUE, "", "%s an empty text is always so: leave the condition out",
                       operator_info(c->op)->name);
    reason = never_matches(c->field, v->text, part);
    if (reason == NULL)
        return true;
    return err_set(e, ERR_EXPR_NEVER_MATCHES, "", "\"%.*s\" can never match: %s",
                   STR_ARG(str_cut_utf8(v->text, VALUE_SHOWN)), reason);
}

/* Notes e at path and, for a tree that came from JSON, at its member below that. */
static void note(struct errlist *errors, const char *path, const struct condition *c, const char *member,
                 struct pos pos, struct err *e)
{
    struct buf b;

    e->line = pos.line;
    e->column = pos.column;
    buf_init(&b, e->path, sizeof(e->path) - 1);
    buf_put_cstr(&b, path);
    if (pos.line == 0) {
        buf_put(&b, c->pointer);
        buf_put_cstr(&b, member);
    }
    e->path[b.len] = '\0';
    errlist_add_err(errors, e);
}

static bool check_condition(const struct condition *c, enum expr_phase phase, const char *path, struct errlist *errors)
{
    bool ok = true;

    if ((field_info(c->field)->phases & phase) == 0) {
        struct err e = {0};

        ok = err_set(&e, ERR_EXPR_FIELD_UNAVAILABLE, "", "%s is not known yet when these rules are asked",
                     field_info(c->field)->name);
        note(errors, path, c, "/field", c->pos, &e);
    }
    for (size_t i = 0; i < c->n_values; i++) {
        struct err e = {0};
        char member[32] = "/value";

        if (check_value(c, &c->values[i], &e))
            continue;
        ok = false;
        if (operator_info(c->op)->set)
            snprintf(member, sizeof(member), "/value/%zu", i);
        note(errors, path, c, member, c->values[i].pos, &e);
    }
    return ok;
}

/* Recursion ends: a tree is at most EXPR_NESTING_MAX groups deep. */
bool expr_check(const struct expr *x, const struct expr_context *context, struct errlist *errors, struct errlist *warnings)
{
    bool ok = true;

    if (!x->is_group)
        return check_condition(&x->condition, context->phase, context->path, errors);
    for (size_t i = 0; i < x->group.n_rules; i++)
        ok = expr_check(x->group.rules[i], context, errors, warnings) && ok;
    return ok;
}
