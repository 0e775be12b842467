/* The canonical JSON form of a tree. */
#include "common/expr/expr_priv.h"

static json_t *string_json(struct str s)
{
    return json_stringn(s.p, s.len);
}

static json_t *values_json(const struct condition *c)
{
    json_t *array;

    if (!operator_info(c->op)->set)
        return string_json(c->values->text);
    array = json_array();
    for (size_t i = 0; i < c->n_values && array != NULL; i++) {
        if (json_array_append_new(array, string_json(c->values[i].text)) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static bool put_condition(json_t *object, const struct condition *c)
{
    return json_object_set_new(object, "field", json_string(field_info(c->field)->name)) == 0 &&
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
