/* Reads expressions as people write them: or, and, not from loose to tight, one function a level. */
#include "common/expr/hints_priv.h"
#include "common/expr/literal_priv.h"

enum { TOKEN_SHOWN = 64 };

struct parser {
    struct lexer lexer;
    struct token token; /* the next one that is not consumed */
    struct builder builder;
    unsigned n_open; /* parentheses around the token */
    struct err *e;
};

/* Nodes or values in the order read, before their number is known. */
struct link {
    const struct expr *rule;
    struct value value;
    struct link *next;
};

struct list {
    struct link *first, *last;
    size_t n;
};

static struct link *list_add(struct parser *p, struct list *l)
{
    struct link *link = ARENA_NEW(p->builder.arena, struct link);

    if (link == NULL) {
        fail_at(p->e, p->token.pos, ERR_NO_MEMORY, "no memory for this expression");
        return NULL;
    }
    *(l->first == NULL ? &l->first : &l->last->next) = link;
    l->last = link;
    l->n++;
    return link;
}

MUSTUSE static bool advance(struct parser *p)
{
    return lexer_next(&p->lexer, &p->token, p->e);
}

static bool is_word(const struct parser *p, const char *word)
{
    return p->token.kind == TOKEN_WORD && str_eq(p->token.text, str_of(word));
}

/* "... , not X", X being what stands there instead. */
static bool expected(struct parser *p, const char *what)
{
    struct str found = str_cut_utf8(p->token.text, TOKEN_SHOWN);

    if (p->token.kind == TOKEN_END)
        return fail_at(p->e, p->token.pos, ERR_EXPR_SYNTAX, "the expression ends here, but needs %s", what);
    return fail_at(p->e, p->token.pos, ERR_EXPR_SYNTAX, "expected %s, found %.*s", what, STR_ARG(found));
}

MUSTUSE static bool take(struct parser *p, enum token_kind kind, const char *what)
{
    return p->token.kind == kind ? advance(p) : expected(p, what);
}

static bool is_quoted(enum field f)
{
    return field_info(f)->type == T_STRING || field_info(f)->type == T_SIGNAL;
}

static bool parse_value(struct parser *p, struct condition *c, struct value *v)
{
    const char *field = field_info(c->field)->name, *form = literal_form(c->field);
    struct str shown;

    *v = (struct value){.text = p->token.kind == TOKEN_STRING ? p->token.value : p->token.text, .pos = p->token.pos};
    shown = str_cut_utf8(v->text, TOKEN_SHOWN);
    if (p->token.kind == TOKEN_KEY_OPEN && field_info(c->field)->type == T_IP)
        return fail_at(p->e, v->pos, ERR_EXPR_SYNTAX, "an address has no brackets: leave them out");
    if (p->token.kind != TOKEN_STRING && p->token.kind != TOKEN_WORD)
        return expected(p, form);
    if (!is_quoted(c->field) && p->token.kind == TOKEN_STRING)
        return fail_at(p->e, v->pos, ERR_EXPR_TYPE, "%s takes %s, and no quotes: write %.*s", field, form,
                       STR_ARG(shown));
    if (is_quoted(c->field) && p->token.kind == TOKEN_WORD)
        return fail_at(p->e, v->pos, ERR_EXPR_TYPE, "%s takes %s: write \"%.*s\"", field, form, STR_ARG(shown));
    return literal_read(v, c->field, c->op, p->e) ? advance(p) : place(p->e, v->pos);
}

static bool parse_set(struct parser *p, struct condition *c)
{
    struct list list = {0};
    struct value *values;
    size_t n = 0;

    if (p->token.kind != TOKEN_SET_OPEN)
        return fail_at(p->e, p->token.pos, ERR_EXPR_SYNTAX, "%s takes a set: write its values in { }, parted by blanks",
                       operator_info(c->op)->name);
    if (!advance(p))
        return false;
    if (p->token.kind == TOKEN_SET_CLOSE)
        return fail_at(p->e, p->token.pos, ERR_EXPR_SYNTAX, "a set needs at least one value");
    while (p->token.kind != TOKEN_SET_CLOSE) {
        struct link *link;

        if (p->token.kind == TOKEN_COMMA || p->token.kind == TOKEN_END)
            return expected(p, "a value or }: a set's values are parted by blanks");
        link = list_add(p, &list);
        if (link == NULL || !parse_value(p, c, &link->value))
            return false;
    }
    values = ARENA_NEW_N(p->builder.arena, list.n, struct value);
    if (values == NULL)
        return fail_at(p->e, c->pos, ERR_NO_MEMORY, "no memory for this set");
    for (const struct link *link = list.first; link != NULL; link = link->next)
        values[n++] = link->value;
    c->values = values;
    c->n_values = n;
    return advance(p);
}

static bool parse_single(struct parser *p, struct condition *c)
{
    struct value *value = ARENA_NEW(p->builder.arena, struct value);

    if (p->token.kind == TOKEN_SET_OPEN)
        return fail_at(p->e, p->token.pos, ERR_EXPR_SYNTAX, "%s takes one value, no set: for several use in {...}",
                       operator_info(c->op)->name);
    if (value == NULL)
        return fail_at(p->e, c->pos, ERR_NO_MEMORY, "no memory for this value");
    c->values = value;
    c->n_values = 1;
    return parse_value(p, c, value);
}

/* ["..."] behind a field, if it is there; *pos is where it begins. */
static bool parse_key(struct parser *p, struct str *key, struct pos *pos)
{
    *key = STR_NONE;
    *pos = p->token.pos;
    if (p->token.kind != TOKEN_KEY_OPEN)
        return true;
    if (!advance(p))
        return false;
    if (p->token.kind == TOKEN_WORD)
        return fail_at(p->e, p->token.pos, ERR_EXPR_KEY, "a key stands in quotes: write [\"%.*s\"]",
                       STR_ARG(str_cut_utf8(p->token.text, TOKEN_SHOWN)));
    *key = p->token.value;
    *pos = p->token.pos;
    return take(p, TOKEN_STRING, "a key in quotes, such as [\"x-api-key\"]") &&
           take(p, TOKEN_KEY_CLOSE, "] behind the key");
}

/* name or name["key"]; the token is what follows the name. */
static bool parse_field(struct parser *p, const struct token *name, struct condition *c)
{
    struct pos key_pos;

    if (!field_find(name->text, &c->field)) {
        if (hint_condition(name, p->e))
            return false;
        field_unknown(name->text, p->e);
        return place(p->e, name->pos);
    }
    if (!parse_key(p, &c->key, &key_pos))
        return false;
    return literal_key_ok(c->field, c->key, p->e) || place(p->e, c->key.p != NULL ? key_pos : name->pos);
}

/* name(field, value); the token is the opening parenthesis. */
static bool parse_call(struct parser *p, const struct token *name, struct condition *c)
{
    struct token field;

    if (!operator_find(name->text, &c->op)) {
        if (field_find(name->text, &c->field))
            return expected(p, "an operator behind the field");
        if (!hint_condition(name, p->e))
            function_unknown(name->text, p->e);
        return place(p->e, name->pos);
    }
    if (!operator_info(c->op)->call)
        return fail_at(p->e, name->pos, ERR_EXPR_SYNTAX, "%s is no function: write field %s value",
                       operator_info(c->op)->name, operator_info(c->op)->name);
    if (!advance(p))
        return false;
    field = p->token;
    if (!take(p, TOKEN_WORD, "a field") || !parse_field(p, &field, c))
        return false;
    if (!operator_takes(c->op, c->field, p->e))
        return place(p->e, name->pos);
    return take(p, TOKEN_COMMA, "a comma behind the field") && parse_single(p, c) && take(p, TOKEN_CLOSE, ")");
}

/* Whether the condition ends behind its field. */
static bool ends_here(const struct parser *p)
{
    return p->token.kind == TOKEN_END || p->token.kind == TOKEN_CLOSE || is_word(p, "and") || is_word(p, "or");
}

static bool unknown_operator(struct parser *p, const struct token *op, const char *field)
{
    if (str_eq_nocase(op->text, STR("not")))
        return fail_at(p->e, op->pos, ERR_EXPR_UNKNOWN_OPERATOR,
                       "\"not\" stands before the field: write not %s ..., or not_in", field);
    if (str_eq_nocase(op->text, STR("is")) && is_word(p, "not"))
        return fail_at(p->e, op->pos, ERR_EXPR_UNKNOWN_OPERATOR, "\"is not\" is written ne");
    if (str_eq_nocase(op->text, STR("exists")) || str_eq_nocase(op->text, STR("present")))
        return fail_at(p->e, op->pos, ERR_EXPR_UNKNOWN_OPERATOR,
                       "whether a header, cookie, parameter or claim is there is asked by wildcard \"*\"");
    if (hint_signs(op, p->e))
        return false;
    operator_unknown(op->text, p->e);
    return place(p->e, op->pos);
}

/* field operator value; the token is what follows the field's name. */
static bool parse_comparison(struct parser *p, const struct token *name, struct condition *c)
{
    const struct operator_info *info;
    const char *field;
    struct token op;

    if (!parse_field(p, name, c))
        return false;
    field = field_info(c->field)->name;
    if (field_info(c->field)->type == T_BOOL && ends_here(p))
        return fail_at(p->e, name->pos, ERR_EXPR_SYNTAX, "%s is compared with true or false: write %s eq true", field,
                       field);
    op = p->token;
    if (!take(p, TOKEN_WORD, "an operator behind the field"))
        return false;
    if (!operator_find(op.text, &c->op))
        return unknown_operator(p, &op, field);
    info = operator_info(c->op);
    if (info->call)
        return fail_at(p->e, op.pos, ERR_EXPR_SYNTAX, "%s is a function: write %s(%s, \"text\")", info->name,
                       info->name, field);
    if (!operator_takes(c->op, c->field, p->e))
        return place(p->e, op.pos);
    return info->set ? parse_set(p, c) : parse_single(p, c);
}

static bool parse_condition(struct parser *p, const struct expr **out)
{
    struct token name = p->token;
    struct condition c = {.pos = name.pos};

    if (!take(p, TOKEN_WORD, "a condition such as http.host eq \"example.com\", or true"))
        return false;
    if (!(p->token.kind == TOKEN_OPEN ? parse_call(p, &name, &c) : parse_comparison(p, &name, &c)))
        return false;
    return ast_condition(&p->builder, &c, out, p->e) || place(p->e, name.pos);
}

static bool parse_joined(struct parser *p, enum combinator joined_by, const struct expr **out);

static bool parse_parentheses(struct parser *p, const struct expr **out)
{
    struct pos open = p->token.pos;

    if (++p->n_open > EXPR_NESTING_MAX)
        return fail_at(p->e, open, ERR_LIMIT_EXCEEDED, "nested deeper than %d parentheses", EXPR_NESTING_MAX);
    if (!advance(p) || !parse_joined(p, OR, out))
        return false;
    p->n_open--;
    if (p->token.kind == TOKEN_END)
        return fail_at(p->e, open, ERR_EXPR_SYNTAX, "this parenthesis is never closed");
    return !hint_joint(&p->token, p->e) && take(p, TOKEN_CLOSE, "and, or, or )");
}

/* [not]... followed by true, (...) or a condition. */
static bool parse_term(struct parser *p, const struct expr **out)
{
    struct pos start = p->token.pos;
    size_t n_nots = 0;
    bool ok;

    for (; is_word(p, "not"); n_nots++)
        if (!advance(p))
            return false;
    if (p->token.kind == TOKEN_OPEN)
        ok = parse_parentheses(p, out);
    else if (is_word(p, "true"))
        ok = ast_group(&p->builder, AND, NULL, 0, out, p->e) && advance(p);
    else
        ok = parse_condition(p, out);
    for (; ok && n_nots > 0; n_nots--)
        ok = ast_negate(&p->builder, *out, out, p->e);
    return ok || place(p->e, start);
}

static bool accept_word(struct parser *p, const char *word, bool *accepted)
{
    *accepted = is_word(p, word);
    return !*accepted || advance(p);
}

/* Terms with `and` between, or such lists with `or` between. Recursion is bounded by EXPR_NESTING_MAX parentheses. */
static bool parse_joined(struct parser *p, enum combinator joined_by, const struct expr **out)
{
    struct pos start = p->token.pos;
    struct list list = {0};
    const struct expr **rules;
    bool more;
    size_t n = 0;

    do {
        const struct expr *rule;
        struct link *link;

        if (!(joined_by == OR ? parse_joined(p, AND, &rule) : parse_term(p, &rule)))
            return false;
        link = list_add(p, &list);
        if (link == NULL)
            return false;
        link->rule = rule;
        if (!accept_word(p, joined_by == OR ? "or" : "and", &more))
            return false;
    } while (more);
    rules = ARENA_NEW_N(p->builder.arena, list.n, const struct expr *);
    if (rules == NULL)
        return fail_at(p->e, start, ERR_NO_MEMORY, "no memory for this expression");
    for (const struct link *link = list.first; link != NULL; link = link->next)
        rules[n++] = link->rule;
    return ast_group(&p->builder, joined_by, rules, n, out, p->e) || place(p->e, start);
}

bool expr_parse(struct str text, struct arena *a, const struct expr **out, struct err *e)
{
    struct parser p = {.builder = {.arena = a}, .e = e};
    const struct expr *x;
    struct str copy;

    if (!lexer_init(&p.lexer, text, a, e))
        return false;
    if (!arena_copy_str(a, text, &copy))
        return err_set(e, ERR_NO_MEMORY, "", "no memory for this expression");
    p.lexer.text = copy;
    if (!advance(&p))
        return false;
    if (p.token.kind == TOKEN_END)
        return fail_at(e, p.token.pos, ERR_EXPR_SYNTAX, "the expression is empty: write true to match every request");
    if (!parse_joined(&p, OR, &x))
        return false;
    if (p.token.kind != TOKEN_END)
        return !hint_joint(&p.token, e) && expected(&p, "and, or, or the end");
    if (!ast_fits(x, e))
        return false;
    *out = x;
    return true;
}
