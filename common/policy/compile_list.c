/* Lists of texts. */
#include "common/policy/compile_priv.h"

/* False when text is in the list already, or there was no memory. */
static bool is_new(const struct jx *j, struct str text, const struct str *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(items[i], text)) {
            jx_fault(j, ERR_DUPLICATE, "\"%.*s\" is in this list already", STR_ARG(str_cut_utf8(text, 64)));
            return false;
        }
    return true;
}

bool compile_list(struct compile *c, const struct jx *j, const struct list_rules *rules, struct str_list *out)
{
    size_t n = jx_array_len(j), n_kept = 0, n_faults = c->errors->n + c->errors->n_dropped;

    if (!json_is_array(j->value))
        return false;
    if (n == 0 && rules->min > 0)
        jx_fault(j, ERR_BAD_VALUE, "is empty: name at least one %s", rules->what);
    if (n > rules->max) {
        jx_fault(j, ERR_LIMIT_EXCEEDED, "%zu entries; at most %zu are allowed", n, rules->max);
        return false;
    }
    struct str *items = ARENA_NEW_N(&c->policy->arena, n, struct str);
    if (!items) {
        compile_no_memory(j);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct jx item = jx_item(j, i);
        struct str text;
        if (jx_str(&item, &text) && rules->read(c, &item, &text) && is_new(&item, text, items, n_kept))
            items[n_kept++] = text;
    }
    *out = (struct str_list){items, n_kept};
    return c->errors->n + c->errors->n_dropped == n_faults;
}

bool compile_need_list(struct compile *c, const struct jx *j, const struct list_rules *rules, struct str_list *out)
{
    if (j->value)
        return compile_list(c, j, rules, out);
    jx_fault(j, ERR_MISSING, "is required: a list of at least one %s", rules->what);
    return false;
}

bool compile_lower(struct compile *c, const struct jx *j, struct str *text)
{
    const bool ok = arena_copy_lower(&c->policy->arena, *text, text);

    if (!ok)
        compile_no_memory(j);
    return ok;
}

bool compile_read_header_name(struct compile *c, const struct jx *j, struct str *name)
{
    if (header_name_ok(*name))
        return compile_lower(c, j, name);
    jx_fault(j, ERR_BAD_VALUE, "\"%.*s\" is no header name: use letters, digits and !#$%%&'*+-.^_`|~", STR_ARG(str_cut_utf8(*name, 64)));
    return false;
}
