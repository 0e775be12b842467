/* Request header rules of a document. */
#include "common/policy/compile_priv.h"

#include "common/base/varint.h"
#include "common/policy/wire_max_priv.h"

/* False when there was a fault. */
static bool compile_name(struct compile *c, const struct jx *j, struct str *out)
{
    struct str name;
    char *lower;

    if (!jx_need_str(j, &name))
        return false;
    if (!header_name_ok(name)) {
        jx_fault(j, ERR_BAD_VALUE, "\"%.*s\" is no header name: use letters, digits and !#$%%&'*+-.^_`|~", STR_ARG(str_cut_utf8(name, 64)));
        return false;
    }
    if (header_name_reserved(name)) {
        jx_fault(j, ERR_RESERVED, "\"%.*s\" belongs to the edge or to the connection: no rule writes it", STR_ARG(str_cut_utf8(name, 64)));
        return false;
    }
    lower = arena_take_bytes(&c->policy->arena, name.len);
    if (!lower) {
        compile_no_memory(j);
        return false;
    }
    for (size_t i = 0; i < name.len; i++)
        lower[i] = ascii_lower(name.p[i]);
    *out = (struct str){lower, name.len};
    return true;
}

static bool compile_value(struct compile *c, const struct jx *j, struct header_op *out)
{
    struct value_part *part = ARENA_NEW(&c->policy->arena, struct value_part);

    if (!part) {
        compile_no_memory(j);
        return false;
    }
    if (!jx_need_str(j, &part->text))
        return false;
    out->parts = part;
    out->n_parts = 1;
    if (!header_value_ok(part->text)) {
        jx_fault(j, ERR_BAD_VALUE, "no header value: at most 8 KiB, without control characters and without blanks at its ends");
        return false;
    }
    if (str_find(part->text, STR("{{")) != SIZE_MAX) {
        jx_fault(j, ERR_UNSUPPORTED, "placeholders are not supported by this build: write a value without \"{{\"");
        return false;
    }
    return true;
}

/* False when the operation is no part of the policy: it is faulty. */
static bool compile_op(struct compile *c, const struct jx *op, struct header_op *out)
{
    static const char *const op_names[] = {"set", "add", "remove", "copy", "rename", "forward", NULL};
    static const char *const names[] = {"op", "name", "value", NULL};
    struct jx kind = jx_member(op, "op"), name = jx_member(op, "name"), value = jx_member(op, "value");
    int i = 0;

    if (!jx_is_object(op))
        return false;
    if (!kind.value) {
        jx_fault(&kind, ERR_MISSING, "is required: \"set\"");
        return false;
    }
    if (!jx_enum(&kind, op_names, &i))
        return false;
    if (i != 0) {
        jx_fault(&kind, ERR_UNSUPPORTED, "\"%s\" is not supported by this build: only \"set\" is", op_names[i]);
        return false;
    }
    jx_only(op, names);
    bool ok = compile_name(c, &name, &out->name);
    return compile_value(c, &value, out) && ok;
}

/* Adds up the most that one request's additions can take. */
static void note_write(struct compile *c, const struct jx *op, const struct header_op *written)
{
    size_t *longest = map_get(&c->header_names, written->name), len = written->parts[0].text.len;
    void *existing;

    if (!longest) {
        longest = ARENA_NEW(&c->scratch, size_t);
        if (!longest || !map_add(&c->header_names, written->name, longest, &existing)) {
            compile_no_memory(op);
            return;
        }
        c->header_add_bytes += varint_len(written->name.len) + written->name.len + 1;
    }
    if (len > *longest) {
        c->header_add_bytes += varint_len(len) + len - varint_len(*longest) - *longest;
        *longest = len;
    }
}

static void check_sizes(struct compile *c, const struct jx *rules)
{
    if (c->header_names.n > POLICY_HEADER_NAMES_MAX)
        jx_fault(rules, ERR_LIMIT_EXCEEDED, "the rules write %zu different headers; at most %d are allowed", c->header_names.n, POLICY_HEADER_NAMES_MAX);
    if (c->header_add_bytes + 2 > WIRE_VAR_REQ_ADD_MAX)
        jx_fault(rules, ERR_LIMIT_EXCEEDED, "the headers that the rules write can take %zu bytes together; at most %d are allowed",
                 c->header_add_bytes + 2, WIRE_VAR_REQ_ADD_MAX);
}

static void compile_ops(struct compile *c, const struct jx *ops, bool enabled, struct header_rule *out)
{
    size_t n = jx_array_len(ops);

    if (!ops->value)
        jx_fault(ops, ERR_MISSING, "is required: a list of operations");
    if (n > POLICY_RULE_OPS_MAX) {
        jx_fault(ops, ERR_LIMIT_EXCEEDED, "%zu operations; at most %d are allowed in a rule", n, POLICY_RULE_OPS_MAX);
        return;
    }
    struct header_op *compiled = ARENA_NEW_N(&c->policy->arena, n, struct header_op);
    if (!compiled) {
        compile_no_memory(ops);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct jx op = jx_item(ops, i);
        if (!compile_op(c, &op, &compiled[out->n_ops]))
            continue;
        if (enabled)
            note_write(c, &op, &compiled[out->n_ops]);
        out->n_ops++;
    }
    out->ops = compiled;
}

void compile_header_rules(struct compile *c, const struct jx *rules)
{
    static const char *const names[] = {"id", "enabled", "expression", "ops", NULL};
    size_t n = compile_n_rules(rules), n_kept = 0;
    struct header_rule *kept = ARENA_NEW_N(&c->policy->arena, n, struct header_rule);

    if (!kept) {
        compile_no_memory(rules);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct jx rule = jx_item(rules, i), ops = jx_member(&rule, "ops");
        struct header_rule compiled = {0};
        struct rule_head head = {0};
        if (!jx_is_object(&rule))
            continue;
        jx_only(&rule, names);
        bool in = compile_rule_head(c, &rule, EXPR_HEADERS, c->policy->header_set, &head);
        compile_ops(c, &ops, in, &compiled);
        if (!in)
            continue;
        compiled.id = head.id;
        compiled.program = head.program;
        kept[n_kept++] = compiled;
    }
    check_sizes(c, rules);
    c->policy->header_rules = kept;
    c->policy->n_header_rules = n_kept;
}
