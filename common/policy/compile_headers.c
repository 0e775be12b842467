/* Request header rules of a document. */
#include "common/base/varint.h"
#include "common/policy/compile_words_priv.h"
#include "common/policy/warnings_priv.h"
#include "common/policy/wire_max_priv.h"

/* What an operation takes, beside "op". */
static const struct {
    const char *name;
    const char *members[3];
} op_table[] = {
    [HEADER_SET] = {"set", {"name", "value", NULL}},    [HEADER_ADD] = {"add", {"name", "value", NULL}},
    [HEADER_REMOVE] = {"remove", {"name", NULL, NULL}}, [HEADER_COPY] = {"copy", {"from", "to", NULL}},
    [HEADER_RENAME] = {"rename", {"from", "to", NULL}}, [HEADER_FORWARD] = {"forward", {"mode", "names", NULL}},
};

static const char *const op_names[] = {"set", "add", "remove", "copy", "rename", "forward", NULL};

static bool takes(enum header_op_kind kind, const char *member)
{
    const char *const *m = op_table[kind].members;

    return strcmp(member, "op") == 0 || strcmp(member, m[0]) == 0 || (m[1] && strcmp(member, m[1]) == 0);
}

/* Members that other operations have. */
static void refuse_others(const struct jx *op, enum header_op_kind kind)
{
    const char *const *members = op_table[kind].members;

    for (const char *const *name = policy_members(OBJECT_OP); *name; name++) {
        struct jx member = jx_member(op, *name);
        if (member.value && !takes(kind, *name))
            jx_fault(&member, ERR_UNKNOWN_MEMBER, "the operation \"%s\" takes no \"%s\": it takes %s%s%s", op_table[kind].name, *name, members[0],
                     members[1] ? " and " : "", members[1] ? members[1] : "");
    }
}

static void take_name(struct compile *c, const struct jx *op, const char *member, enum name_use use, struct str *out)
{
    struct jx j = jx_member(op, member);
    struct str name;

    if (jx_need_str(&j, &name))
        compile_header_name(c, &j, name, use, out);
}

/* Leaves name empty where it is faulty. */
static void compile_op(struct compile *c, const struct jx *op, struct header_op *out)
{
    struct jx kind = jx_member(op, "op"), value = jx_member(op, "value"), to = jx_member(op, "to");
    int i = 0;

    if (!jx_is_object(op))
        return;
    policy_only(op, OBJECT_OP);
    if (!kind.value)
        jx_fault(&kind, ERR_MISSING, "is required: set, add, remove, copy, rename or forward");
    if (!jx_enum(&kind, op_names, &i))
        return;
    out->kind = (enum header_op_kind) i;
    refuse_others(op, out->kind);
    switch (out->kind) {
    case HEADER_SET:
    case HEADER_ADD:
        take_name(c, op, "name", NAME_WRITTEN, &out->name);
        compile_value(c, &value, &out->parts, &out->n_parts);
        break;
    case HEADER_REMOVE:
        take_name(c, op, "name", NAME_WRITTEN, &out->name);
        break;
    case HEADER_COPY:
    case HEADER_RENAME:
        take_name(c, op, "from", out->kind == HEADER_COPY ? NAME_READ : NAME_WRITTEN, &out->from);
        take_name(c, op, "to", NAME_WRITTEN, &out->name);
        if (out->from.len > 0 && str_eq(out->from, out->name))
            jx_fault(&to, ERR_CONFLICT, "is the header that it is taken from: name another one");
        break;
    case HEADER_FORWARD:
        if (compile_forward(c, op, &out->filter))
            compile_forward_warning(c, op, &out->filter);
        break;
    }
}

/* --- What a request's lists can come to --- */

/* Notes that name is written, with a value of len bytes: the longest that `set` gives it, all that `add` does. */
static void note_write(struct compile *c, const struct jx *op, struct str name, size_t len, bool adds)
{
    size_t *longest = map_get(&c->header_names, name);
    void *existing;

    if (!longest) {
        longest = ARENA_NEW(&c->scratch, size_t);
        if (!longest || !map_add(&c->header_names, name, longest, &existing)) {
            compile_no_memory(op);
            return;
        }
        c->header_add_bytes += varint_len(name.len) + name.len + 1;
    }
    if (adds) {
        c->header_add_bytes += varint_len(name.len) + name.len + varint_len(len) + len;
    } else if (len > *longest) {
        c->header_add_bytes += varint_len(len) + len - varint_len(*longest) - *longest;
        *longest = len;
    }
}

/* Values from the request count nothing here: how long they are is known when they are there. */
static size_t literal_len(const struct header_op *op)
{
    size_t len = 0;

    for (size_t i = 0; i < op->n_parts; i++)
        len += op->parts[i].kind == VALUE_LITERAL ? op->parts[i].text.len : 0;
    return len;
}

static void note_op(struct compile *c, const struct jx *op, const struct header_op *written)
{
    if (written->name.len == 0)
        return; /* a filter, or faulty */
    note_write(c, op, written->name, written->parts ? literal_len(written) : 0, written->kind == HEADER_ADD);
    if (written->kind == HEADER_RENAME && written->from.len > 0)
        note_write(c, op, written->from, 0, false);
}

static void check_sizes(struct compile *c, const struct jx *rules)
{
    if (c->header_names.n > POLICY_HEADER_NAMES_MAX)
        jx_fault(rules, ERR_LIMIT_EXCEEDED, "the rules write %zu different headers; at most %d are allowed", c->header_names.n, POLICY_HEADER_NAMES_MAX);
    if (c->header_add_bytes + 2 > WIRE_VAR_REQ_ADD_MAX)
        jx_fault(rules, ERR_LIMIT_EXCEEDED, "the headers that the rules write can take %zu bytes together; at most %d are allowed",
                 c->header_add_bytes + 2, WIRE_VAR_REQ_ADD_MAX);
}

/* --- Rules --- */

static void compile_ops(struct compile *c, const struct jx *ops, struct header_rule *out)
{
    size_t n = jx_array_len(ops);

    if (!ops->value)
        jx_fault(ops, ERR_MISSING, "is required: a list of operations");
    else if (json_is_array(ops->value) && n == 0)
        jx_fault(ops, ERR_BAD_VALUE, "is empty: a rule has 1 to %d operations", POLICY_RULE_OPS_MAX);
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
        compile_op(c, &op, &compiled[i]);
        if (c->in_force)
            note_op(c, &op, &compiled[i]);
    }
    out->ops = compiled;
    out->n_ops = n;
}

void compile_header_rules(struct compile *c, const struct jx *rules)
{
    size_t n = compile_n_rules(rules), n_kept = 0;
    struct header_rule *kept = ARENA_NEW_N(&c->policy->arena, n, struct header_rule);
    struct header_note *notes = ARENA_NEW_N(&c->scratch, n, struct header_note);

    if (!kept || !notes) {
        compile_no_memory(rules);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct jx rule = jx_item(rules, i), ops = jx_member(&rule, "ops");
        struct header_rule compiled = {0};
        struct rule_head head = {0};
        if (!jx_is_object(&rule))
            continue;
        compile_members(c, &rule, OBJECT_HEADER_RULE);
        bool in = compile_rule_head(c, &rule, EXPR_HEADERS, c->policy->header_set, &head);
        compile_ops(c, &ops, &compiled);
        if (!in)
            continue;
        compiled.id = head.id;
        compiled.program = head.program;
        kept[n_kept] = compiled;
        notes[n_kept] = (struct header_note){.rule = &kept[n_kept], .index = i};
        n_kept++;
    }
    c->in_force = true;
    check_sizes(c, rules);
    c->policy->header_rules = kept;
    c->policy->n_header_rules = n_kept;
    compile_header_warnings(c, rules, notes, n_kept);
}
