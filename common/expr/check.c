/* What only meaning can refuse: a field, signal or operator that the phase or the deployment does not have, and literals
 * that the field can never have. What is legal but surely not meant becomes a warning. */
#include "common/expr/literal_priv.h"

#include <stdio.h>

enum { VALUE_SHOWN = 100, SCRATCH_BLOCK_BYTES = 4096, TEXT_SHOWN = 200 };

struct checker {
    const struct expr_context *context;
    struct errlist *errors, *warnings;
    struct arena scratch;
    bool ok;
};

/* Notes e in l at the context's path and, for a tree that came from JSON, at the condition's member below that. */
static void note(const struct checker *k, struct errlist *l, const struct condition *c, const char *member,
                 struct pos pos, struct err *e)
{
    struct buf b;

    e->line = pos.line;
    e->column = pos.column;
    buf_init(&b, e->path, sizeof(e->path) - 1);
    buf_put_cstr(&b, k->context->path);
    if (pos.line == 0) {
        buf_put(&b, c->pointer);
        buf_put_cstr(&b, member);
    }
    e->path[b.len] = '\0';
    errlist_add_err(l, e);
}

static void refuse(struct checker *k, const struct condition *c, const char *member, struct pos pos, struct err *e)
{
    k->ok = false;
    note(k, k->errors, c, member, pos, e);
}

/* ---- what the phase and the deployment have ---- */

static bool has_source(const struct expr_deployment *d, enum expr_source s)
{
    return !expr_source_is_viewer(s) || (d->sources >> s & 1) != 0;
}

static bool is_unreadable(const struct expr_deployment *d, struct str name)
{
    for (size_t i = 0; i < d->n_unreadable; i++)
        if (header_names_alike(d->unreadable[i], name))
            return true;
    return false;
}

static void check_field(struct checker *k, const struct condition *c)
{
    const struct field_info *info = field_info(c->field);
    const struct expr_deployment *d = k->context->deployment;
    struct err e = {0};

    if ((info->phases & k->context->phase) == 0) {
        err_set(&e, ERR_EXPR_FIELD_UNAVAILABLE, "", "%s is not known yet when these rules are asked", info->name);
        refuse(k, c, "/field", c->pos, &e);
    } else if (!has_source(d, info->source)) {
        err_set(&e, ERR_EXPR_FIELD_UNAVAILABLE, "",
                "%s is not available: this deployment has no source for it; name a header for \"%s\" in VIEWER_HEADERS",
                info->name, expr_source_name(info->source));
        refuse(k, c, "/field", c->pos, &e);
    } else if (info->key == KEY_HEADER && is_unreadable(d, c->key)) {
        err_set(&e, ERR_RESERVED, "", "the header \"%.*s\" is a source of this deployment: no rule reads it",
                STR_ARG(str_cut_utf8(c->key, VALUE_SHOWN)));
        refuse(k, c, "/key", c->pos, &e);
    } else if (c->op == OP_MATCHES && !d->allow_regex) {
        err_set(&e, ERR_EXPR_REGEX, "",
                "this deployment allows no regular expressions: use wildcard, or set "
                "ALLOW_REGEX=true");
        refuse(k, c, "/operator", c->pos, &e);
    }
    if (c->field == FIELD_HTTP_URI || c->field == FIELD_HTTP_FULL_URI) {
        e = (struct err){0};
        err_set(&e, ERR_RAW_URI, "",
                "%s is the address as sent: other spellings of a path evade this; "
                "http.request.uri.path has one spelling",
                info->name);
        note(k, k->warnings, c, "/field", c->pos, &e);
    }
}

/* ---- literals ---- */

static bool never_matches(struct str literal, const char *reason, struct err *e)
{
    return err_set(e, ERR_EXPR_NEVER_MATCHES, "", "\"%.*s\" can never match: %s",
                   STR_ARG(str_cut_utf8(literal, VALUE_SHOWN)), reason);
}

/* Where a star is most likely meant as one of a wildcard. contains, or a star alone, asks for a star plainly enough. */
static bool is_stray_star(const struct condition *c, struct str literal)
{
    const bool is_plain = c->op != OP_WILDCARD && c->op != OP_STRICT_WILDCARD && c->op != OP_CONTAINS;
    const bool is_globbed = c->field == FIELD_HTTP_HOST || c->field == FIELD_HTTP_PATH || c->field == FIELD_HTTP_USER_AGENT;

    return is_plain && is_globbed && literal.len > 1 && str_find_byte(literal, '*') != SIZE_MAX;
}

/* s is the part of literal that is held to what the field can have; of a wildcard it is what stands around a star. A
 * fault goes to e, a warning to w. */
static bool check_part(const struct checker *k, const struct condition *c, struct str literal, struct str s,
                       enum part part, struct err *e, struct err *w)
{
    bool folded = c->op == OP_WILDCARD;
    const char *reason;

    if (meaning_lacks_slash(c->field, s, part)) {
        if (k->context->schema > 1)
            return never_matches(literal, "a path begins with /: write it so", e);
        err_set(w, ERR_PATH_WITHOUT_SLASH, "", "\"%.*s\" can never match: a path begins with /; write it so",
                STR_ARG(str_cut_utf8(literal, VALUE_SHOWN)));
        return true;
    }
    reason = meaning_refuses(c->field, s, part, folded);
    if (reason != NULL)
        return never_matches(literal, reason, e);
    if (c->field == FIELD_HTTP_HEADERS_NAMES && part == WHOLE && is_unreadable(k->context->deployment, s))
        return never_matches(literal, "rules do not see this header: it is a source of this deployment", e);
    if (is_stray_star(c, literal))
        err_set(w, ERR_LITERAL_STAR, "", "%s takes the * in \"%.*s\" for a star and nothing else: write wildcard when it is to stand for any text",
                operator_info(c->op)->name, STR_ARG(str_cut_utf8(literal, VALUE_SHOWN)));
    if (c->field == FIELD_HTTP_VERSION && s.len > 0 && !meaning_is_version(s, part))
        err_set(w, ERR_UNKNOWN_VERSION, "", "no request has the HTTP version \"%.*s\": write 1.0, 1.1, 2.0 or 3.0",
                STR_ARG(str_cut_utf8(literal, VALUE_SHOWN)));
    return true;
}

static bool check_wildcard(struct checker *k, const struct condition *c, struct str literal, struct err *e,
                           struct err *w)
{
    struct wildcard wildcard;

    if (!wildcard_compile(literal, c->op == OP_STRICT_WILDCARD, &k->scratch, &wildcard, e))
        return false;
    if (wildcard.n_pieces == 1)
        return check_part(k, c, literal, wildcard.pieces[0], WHOLE, e, w);
    for (size_t i = 0; i < wildcard.n_pieces; i++) {
        bool is_last = i + 1 == wildcard.n_pieces;
        enum part part = i == 0 ? BEGINNING : is_last ? ENDING : INSIDE;

        if (wildcard.pieces[i].len > 0 && !check_part(k, c, literal, wildcard.pieces[i], part, e, w))
            return false;
    }
    return true;
}

/* An empty beginning, ending or inside is refused whatever the field: it is in every value. */
static bool check_inexact(const struct checker *k, const struct condition *c, struct str literal, enum part part,
                          struct err *e, struct err *w)
{
    if (literal.len == 0)
        return err_set(e, ERR_BAD_VALUE, "", "%s an empty text is always so: %s", operator_info(c->op)->name,
                       field_info(c->field)->absent == ABSENT_MISSING ? "for any value at all write wildcard \"*\""
                                                                      : "leave the condition out");
    return check_part(k, c, literal, literal, part, e, w);
}

static bool check_text(struct checker *k, const struct condition *c, struct str literal, struct err *e, struct err *w)
{
    const struct regex *regex;

    switch (c->op) {
    case OP_EQ:
    case OP_NE:
    case OP_IN:
    case OP_NOT_IN:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
    case OP_N:
        return check_part(k, c, literal, literal, WHOLE, e, w);
    case OP_CONTAINS:
        return check_inexact(k, c, literal, INSIDE, e, w);
    case OP_STARTS_WITH:
        return check_inexact(k, c, literal, BEGINNING, e, w);
    case OP_ENDS_WITH:
        return check_inexact(k, c, literal, ENDING, e, w);
    case OP_WILDCARD:
    case OP_STRICT_WILDCARD:
        return check_wildcard(k, c, literal, e, w);
    case OP_MATCHES:
        break;
    }
    return !k->context->deployment->allow_regex || regex_compile(literal, &k->scratch, &regex, e);
}

static bool check_value(struct checker *k, const struct condition *c, const struct value *v, struct err *e,
                        struct err *w)
{
    const char *reason;

    switch (field_info(c->field)->type) {
    case T_STRING:
        return check_text(k, c, v->text, e, w);
    case T_INT:
        reason = meaning_refuses_int(c->field, v, c->op);
        return reason == NULL || never_matches(v->text, reason, e);
    case T_SIGNAL:
        if (has_source(k->context->deployment, signal_info(v->signal)->source))
            return true;
        return err_set(e, ERR_EXPR_FIELD_UNAVAILABLE, "",
                       "the signal \"%s\" is not available: it needs a header for \"%s\" in VIEWER_HEADERS",
                       signal_info(v->signal)->name, expr_source_name(signal_info(v->signal)->source));
    default:
        return true;
    }
}

static void check_condition(struct checker *k, const struct condition *c)
{
    check_field(k, c);
    for (size_t i = 0; i < c->n_values; i++) {
        struct err e = {0}, w = {0};
        char member[32] = "/value";

        if (operator_info(c->op)->set)
            snprintf(member, sizeof(member), "/value/%zu", i);
        if (!check_value(k, c, &c->values[i], &e, &w))
            refuse(k, c, member, c->values[i].pos, &e);
        else if (w.code != ERR_NONE)
            note(k, k->warnings, c, member, c->values[i].pos, &w);
    }
}

/* Recursion ends: a tree is at most EXPR_NESTING_MAX groups deep. */
static void check_tree(struct checker *k, const struct expr *x)
{
    if (!x->is_group)
        check_condition(k, &x->condition);
    else
        for (size_t i = 0; i < x->group.n_rules; i++)
            check_tree(k, x->group.rules[i]);
}

static void warn_of_contradiction(const struct checker *k, const struct expr *x)
{
    static const struct condition whole = {.n_values = 0};
    const struct condition *at;
    char storage[2 * TEXT_SHOWN];
    struct err e = {0};
    struct buf text;

    buf_init(&text, storage, sizeof(storage));
    if (!contradiction_find(x, &at, &text))
        return;
    err_set(&e, ERR_NEVER_TRUE, "", "this never matches: %.*s", STR_ARG(buf_str(&text)));
    if (at == NULL)
        at = &whole;
    note(k, k->warnings, at, "", at->pos, &e);
}

bool expr_check(const struct expr *x, const struct expr_context *context, struct errlist *errors,
                struct errlist *warnings)
{
    struct checker k = {.context = context, .errors = errors, .warnings = warnings, .ok = true};

    arena_init(&k.scratch, SCRATCH_BLOCK_BYTES, 0);
    check_tree(&k, x);
    if (k.ok)
        warn_of_contradiction(&k, x);
    arena_release(&k.scratch);
    return k.ok;
}
