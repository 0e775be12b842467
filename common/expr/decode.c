/* Reads a tree from its JSON form, strictly: every fault is noted at its place, and one fault refuses the whole. */
#include "common/expr/literal_priv.h"

#include <stdio.h>

/* Everything in a tree takes at least two bytes of its canonical text; what can't fit is refused before it takes
 * memory. */
enum { PARTS_MAX = EXPR_TEXT_MAX / 2, INT_TEXT_MAX = 24 };

struct decoder {
    struct builder builder;
    const struct jx *root;
    size_t n_parts;
};

static const struct expr *note(const struct jx *j, const struct err *e)
{
    struct err at_place = *e;

    jx_path(j, at_place.path);
    errlist_add_err(j->doc->errors, &at_place);
    return NULL;
}

static bool count_part(struct decoder *d, const struct jx *j)
{
    if (++d->n_parts == PARTS_MAX + 1)
        jx_fault(j, ERR_LIMIT_EXCEEDED, "the expression's canonical text is longer than %d bytes", EXPR_TEXT_MAX);
    return d->n_parts <= PARTS_MAX;
}

static bool is_string(const struct jx *j, struct str *out)
{
    if (!json_is_string(j->value))
        return false;
    *out = (struct str){json_string_value(j->value), json_string_length(j->value)};
    return true;
}

static bool need(const struct jx *j)
{
    if (j->value == NULL)
        jx_fault(j, ERR_MISSING, "is required");
    return j->value != NULL;
}

/* A name of a vocabulary. */
static bool decode_name(const struct jx *j, struct str *out)
{
    if (!need(j))
        return false;
    if (is_string(j, out))
        return true;
    jx_fault(j, ERR_BAD_TYPE, "must be a string");
    return false;
}

/* Of a field that is known. */
static bool decode_key(struct decoder *d, const struct jx *leaf, struct condition *c)
{
    struct jx key = jx_member(leaf, "key");
    struct err e = {0};
    struct str text;

    if (key.value != NULL) {
        if (!is_string(&key, &text)) {
            if (field_info(c->field)->key == KEY_NONE)
                jx_fault(&key, ERR_EXPR_KEY, "%s takes no key: leave it out", field_info(c->field)->name);
            else
                jx_fault(&key, ERR_BAD_TYPE, "must be a string");
            return false;
        }
        if (!arena_copy_str(d->builder.arena, text, &c->key))
            err_set(&e, ERR_NO_MEMORY, "", "no memory for this key");
    }
    if (e.code == ERR_NONE && literal_key_ok(c->field, c->key, &e))
        return true;
    note(&key, &e);
    return false;
}

static bool decode_field(struct decoder *d, const struct jx *leaf, struct condition *c)
{
    struct jx field = jx_member(leaf, "field");
    struct err e = {0};
    struct str name;

    if (!decode_name(&field, &name))
        return false;
    if (!field_find(name, &c->field)) {
        field_unknown(name, &e);
        note(&field, &e);
        return false;
    }
    return decode_key(d, leaf, c);
}

static bool decode_operator(const struct jx *leaf, struct condition *c)
{
    struct jx member = jx_member(leaf, "operator");
    struct err e = {0};
    struct str name;

    if (!decode_name(&member, &name))
        return false;
    if (operator_find(name, &c->op))
        return true;
    operator_unknown(name, &e);
    note(&member, &e);
    return false;
}

/* The text of a literal, as it would stand in an expression's text without quotes and escapes. False when j is of another
 * JSON type than the field takes. storage holds what is no string of the document. */
static bool literal_text(const struct jx *j, const struct condition *c, char storage[static INT_TEXT_MAX],
                         struct str *out)
{
    unsigned type = field_info(c->field)->type;

    if (type == T_BOOL) {
        *out = json_is_true(j->value) ? STR("true") : STR("false");
        return json_is_boolean(j->value);
    }
    if (type == T_INT && json_is_integer(j->value)) {
        int n = snprintf(storage, INT_TEXT_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(j->value));

        *out = (struct str){storage, (size_t)n};
        return true;
    }
    return is_string(j, out) && (type != T_INT || str_find(*out, STR("..")) != SIZE_MAX);
}

static const char *json_form(enum field f, bool is_set)
{
    switch (field_info(f)->type) {
    case T_IP:
        return "addresses, each in a string";
    case T_INT:
        return is_set ? "whole numbers, and ranges \"1..9\" in strings" : "a whole number, no string";
    case T_BOOL:
        return "true or false, no string";
    default:
        return "strings";
    }
}

static bool decode_value(struct decoder *d, const struct jx *j, const struct condition *c, struct value *v)
{
    char storage[INT_TEXT_MAX];
    struct err e = {0};
    struct str text;

    if (!count_part(d, j))
        return false;
    if (!literal_text(j, c, storage, &text)) {
        jx_fault(j, ERR_EXPR_TYPE, "%s takes %s", field_info(c->field)->name,
                 json_form(c->field, operator_info(c->op)->set));
        return false;
    }
    if (text.len > EXPR_TEXT_MAX)
        err_set(&e, ERR_LIMIT_EXCEEDED, "", "longer than a whole expression's %d bytes", EXPR_TEXT_MAX);
    else if (!arena_copy_str(d->builder.arena, text, &v->text))
        err_set(&e, ERR_NO_MEMORY, "", "no memory for this value");
    else if (literal_read(v, c->field, c->op, &e))
        return true;
    note(j, &e);
    return false;
}

static bool decode_set(struct decoder *d, const struct jx *value, struct condition *c, struct value *values)
{
    bool ok = true;

    for (size_t i = 0; i < c->n_values; i++) {
        struct jx item = jx_item(value, i);

        ok = decode_value(d, &item, c, &values[i]) && ok;
    }
    return ok;
}

static bool decode_values(struct decoder *d, const struct jx *leaf, struct condition *c)
{
    struct jx value = jx_member(leaf, "value");
    bool is_set = operator_info(c->op)->set;
    struct value *values;

    if (!need(&value))
        return false;
    if (is_set != json_is_array(value.value)) {
        jx_fault(&value, ERR_EXPR_TYPE, "%s takes %s", operator_info(c->op)->name,
                 is_set ? "an array" : "one value, no array");
        return false;
    }
    c->n_values = is_set ? json_array_size(value.value) : 1;
    if (c->n_values == 0) {
        jx_fault(&value, ERR_BAD_VALUE, "a set needs at least one value");
        return false;
    }
    if (c->n_values > PARTS_MAX) {
        jx_fault(&value, ERR_LIMIT_EXCEEDED, "the expression's canonical text is longer than %d bytes", EXPR_TEXT_MAX);
        return false;
    }
    values = ARENA_NEW_N(d->builder.arena, c->n_values, struct value);
    if (values == NULL) {
        jx_fault(&value, ERR_NO_MEMORY, "no memory for this set");
        return false;
    }
    c->values = values;
    return is_set ? decode_set(d, &value, c, values) : decode_value(d, &value, c, values);
}

/* Where the leaf stands below the expression, for the faults that expr_check finds later. */
static bool decode_pointer(struct decoder *d, const struct jx *leaf, struct condition *c)
{
    char root[ERR_PATH_MAX], path[ERR_PATH_MAX];

    jx_path(d->root, root);
    jx_path(leaf, path);
    return arena_copy_str(d->builder.arena, str_of(path + strlen(root)), &c->pointer);
}

static const struct expr *decode_leaf(struct decoder *d, const struct jx *j)
{
    static const char *const members[] = {"field", "key", "operator", "value", NULL};
    struct condition c = {0};
    struct err e = {0};
    const struct expr *x;
    bool has_field, has_operator;

    jx_only(j, members);
    has_field = decode_field(d, j, &c);
    has_operator = decode_operator(j, &c);
    if (!has_field || !has_operator)
        return NULL;
    if (!operator_takes(c.op, c.field, &e)) {
        struct jx op = jx_member(j, "operator");

        return note(&op, &e);
    }
    if (!decode_values(d, j, &c))
        return NULL;
    if (!decode_pointer(d, j, &c))
        err_set(&e, ERR_NO_MEMORY, "", "no memory for this condition");
    else if (ast_condition(&d->builder, &c, &x, &e))
        return x;
    return note(j, &e);
}

static const struct expr *decode_node(struct decoder *d, const struct jx *j, unsigned level);

/* False when a rule is faulty. */
static bool decode_rules(struct decoder *d, const struct jx *rules, const struct expr **out, size_t n, unsigned level)
{
    bool ok = true;

    for (size_t i = 0; i < n; i++) {
        struct jx rule = jx_item(rules, i);

        out[i] = decode_node(d, &rule, level + 1);
        ok = out[i] != NULL && ok;
    }
    return ok;
}

/* False when there is none, or none that fits. */
static bool count_rules(const struct jx *rules, int combinator, size_t *n)
{
    if (!need(rules))
        return false;
    if (!json_is_array(rules->value)) {
        jx_fault(rules, ERR_BAD_TYPE, "must be an array");
        return false;
    }
    *n = json_array_size(rules->value);
    if (*n == 0 && combinator != AND)
        jx_fault(rules, ERR_BAD_VALUE, "an empty group matches every request: its combinator must be \"and\"");
    else if (*n > PARTS_MAX)
        jx_fault(rules, ERR_LIMIT_EXCEEDED, "the expression's canonical text is longer than %d bytes", EXPR_TEXT_MAX);
    else
        return true;
    return false;
}

static const struct expr *decode_group(struct decoder *d, const struct jx *j, unsigned level)
{
    static const char *const members[] = {"combinator", "not", "rules", NULL};
    struct jx combinator = jx_member(j, "combinator"), negation = jx_member(j, "not"), rules = jx_member(j, "rules");
    const struct expr **decoded, *x;
    bool negated = false, has_combinator, has_not;
    int c = AND;
    struct err e = {0};
    size_t n;

    jx_only(j, members);
    has_combinator = need(&combinator) && jx_enum(&combinator, combinator_names, &c);
    has_not = negation.value == NULL || jx_bool(&negation, &negated);
    if (level > EXPR_NESTING_MAX) {
        jx_fault(j, ERR_LIMIT_EXCEEDED, "nested deeper than %d groups", EXPR_NESTING_MAX);
        return NULL;
    }
    if (!count_rules(&rules, c, &n))
        return NULL;
    decoded = ARENA_NEW_N(d->builder.arena, n, const struct expr *);
    if (decoded == NULL) {
        jx_fault(j, ERR_NO_MEMORY, "no memory for this expression");
        return NULL;
    }
    if (!decode_rules(d, &rules, decoded, n, level) || !has_combinator || !has_not)
        return NULL;
    if (!ast_group(&d->builder, (enum combinator)c, decoded, n, &x, &e) ||
        (negated && !ast_negate(&d->builder, x, &x, &e)))
        return note(j, &e);
    return x;
}

/* level: groups around this node, itself included if it is one. Recursion is bounded by EXPR_NESTING_MAX. */
static const struct expr *decode_node(struct decoder *d, const struct jx *j, unsigned level)
{
    if (!count_part(d, j))
        return NULL;
    if (!json_is_object(j->value)) {
        jx_fault(j, ERR_BAD_TYPE, "must be an object: a condition or a group");
        return NULL;
    }
    if (json_object_get(j->value, "combinator") != NULL || json_object_get(j->value, "rules") != NULL)
        return decode_group(d, j, level);
    return decode_leaf(d, j);
}

static const struct expr *decode_text(const struct jx *j, struct str text, struct arena *a)
{
    const struct expr *x;
    struct err e = {0};

    if (expr_parse(text, a, &x, &e))
        return x;
    return note(j, &e);
}

const struct expr *expr_decode(const struct jx *j, struct arena *a)
{
    struct decoder d = {.builder = {.arena = a}, .root = j};
    size_t n_faults = j->doc->errors->n + j->doc->errors->n_dropped;
    const struct expr *x;
    struct str text;
    struct err e = {0};

    if (is_string(j, &text))
        return decode_text(j, text, a);
    /* An absent one is noted only where the object that should have it is there. */
    if (j->value == NULL && !jx_need_str(j, &text))
        return NULL;
    if (!json_is_object(j->value)) {
        jx_fault(j, ERR_BAD_TYPE, "must be an expression: its text, or a condition or group as an object");
        return NULL;
    }
    x = decode_node(&d, j, 1);
    /* A member too many is a fault of its own that leaves the node readable. */
    if (x == NULL || j->doc->errors->n + j->doc->errors->n_dropped != n_faults)
        return NULL;
    return ast_fits(x, &e) ? x : note(j, &e);
}
