/* The canonical JSON form of a tree. */
#include "common/expr/expr_priv.h"

static json_t *string_json(struct str s)
{
    return json_stringn(s.p, s.len);
}

static json_t *value_json(enum field f, const struct value *v)
{
    if (field_info(f)->type == T_BOOL)
        return json_boolean(v->truth);
    if (field_info(f)->type == T_INT && str_find(v->text, STR("..")) == SIZE_MAX)
        return json_integer(v->ints.first);
    return string_json(v->text);
}

static json_t *values_json(const struct condition *c)
{
    json_t *array;

    if (!operator_info(c->op)->set)
        return value_json(c->field, c->values);
    array = json_array();
    for (size_t i = 0; i < c->n_values && array != NULL; i++) {
        if (json_array_append_new(array, value_json(c->field, &c->values[i])) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static bool put_condition(json_t *object, const struct condition *c)
{
    return json_object_set_new(object, "field", json_string(field_info(c->field)->name)) == 0 &&
           (c->key.p == NULL || json_object_set_new(object, "key", string_json(c->key)) == 0) &&
           json_object_set_new(object, "operator", json_string(operator_info(c->op)->name)) == 0 &&
           json_object_set_new(object, "value", values_json(c)) == 0;
}

static bool put_group(json_t *object, const struct group *g)
{
    json_t *rules = json_array();

    if (json_object_set_new(object, "combinator", json_string(combinator_names[g->combinator])) != 0 ||
        (g->negated && json_object_set_new(object, "not", json_true()) != 0) || rules == NULL) {
        json_decref(rules);
        return false;
    }
    for (size_t i = 0; i < g->n_rules; i++) {
        if (json_array_append_new(rules, expr_to_json(g->rules[i])) != 0) {
            json_decref(rules);
            return false;
        }
    }
    return json_object_set_new(object, "rules", rules) == 0;
}

/* Recursion ends: a tree is at most EXPR_NESTING_MAX groups deep. */
json_t *expr_to_json(const struct expr *x)
{
    json_t *object = json_object();
    bool ok = object != NULL && (x->is_group ? put_group(object, &x->group) : put_condition(object, &x->condition));

    if (!ok) {
        json_decref(object);
        return NULL;
    }
    return object;
}
