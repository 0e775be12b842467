/* Request header rules at work: filters and operations on a copy of the headers, then the difference as the lists that HAProxy applies. */
#include "common/base/varint.h"
#include "common/policy/forward_priv.h"
#include "common/policy/header_value_priv.h"
#include "common/policy/wire_max_priv.h"

/* Headers that a request can have after the rules. */
enum { EDITED_MAX = 2 * HEADERS_MAX };

struct change {
    struct str name;
    size_t at; /* when all operations are done: the first header of that name; the number of headers when there is none */
};

/* The working copy, and the names that a filter or an operation has touched. */
struct edit {
    struct header *items;
    size_t n, max, n_sent; /* n_sent: the first ones, which came with the request */
    struct change *changed;
    size_t n_changed;
    struct arena *arena;
    const struct request_view *request;
};

/* What the matching rules are about to do. */
struct plan {
    struct rule_hits hits;
    size_t n_ops;
    bool filters, copies; /* whether there is a filter, the policy's own included; an operation that can bring in many headers */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool edit_init(struct edit *e, const struct plan *plan, const struct request_view *r, struct arena *a)
{
    size_t n = r->headers->n;
    /* Rules write at most POLICY_HEADER_NAMES_MAX different names; filters and removed twins are among what is there. */
    size_t n_changes = least(2 * plan->n_ops, POLICY_HEADER_NAMES_MAX) + n;

    *e = (struct edit){.n = n, .n_sent = n, .max = plan->copies ? EDITED_MAX : least(n + plan->n_ops, EDITED_MAX), .arena = a, .request = r};
    e->items = ARENA_NEW_N(a, e->max, struct header);
    e->changed = ARENA_NEW_N(a, n_changes, struct change);
    if (!e->items || !e->changed)
        return false;
    for (size_t i = 0; i < n; i++)
        e->items[i] = r->headers->items[i];
    return true;
}

static void mark_changed(struct edit *e, struct str name)
{
    for (size_t i = 0; i < e->n_changed; i++)
        if (str_eq_nocase(e->changed[i].name, name))
            return;
    e->changed[e->n_changed++] = (struct change){.name = name};
}

/* Where the next header of that name stands from `at` on; n when there is none. */
static inline size_t find_name(const struct header *items, size_t n, struct str name, size_t at)
{
    while (at < n && !str_eq_nocase(items[at].name, name))
        at++;
    return at;
}

/* --- Filters and operations; false: no memory, or more than there is room for --- */

static void filter_headers(struct edit *e, const struct forward_filter *filter)
{
    size_t kept = 0;

    if (filter->mode == FORWARD_ALL)
        return;
    for (size_t i = 0; i < e->n; i++) {
        if (forward_keeps(filter, e->items[i].name))
            e->items[kept++] = e->items[i];
        else
            mark_changed(e, e->items[i].name);
    }
    e->n = e->n_sent = kept;
}

/* A twin that the client sent goes too: CGI-style upstreams would take it for the header. spared: a twin that stays, or empty. */
static void remove_header(struct edit *e, struct str name, struct str spared)
{
    size_t kept = 0, n_sent = e->n_sent;

    mark_changed(e, name);
    for (size_t i = 0; i < e->n; i++) {
        const struct header *h = &e->items[i];
        bool is_sent_twin = i < n_sent && header_names_alike(h->name, name) && !str_eq_nocase(h->name, spared);
        if (is_sent_twin || str_eq_nocase(h->name, name)) {
            mark_changed(e, h->name);
            e->n_sent -= i < n_sent;
        } else
            e->items[kept++] = *h;
    }
    e->n = kept;
}

static bool append(struct edit *e, struct str name, struct str value)
{
    if (e->n == e->max)
        return false;
    e->items[e->n++] = (struct header){.name = name, .value = value};
    return true;
}

static bool is_literal(const struct header_op *op)
{
    return op->n_parts == 1 && op->parts[0].kind == VALUE_LITERAL;
}

/* A value with placeholders that comes out empty takes the header away: an empty identity would be worse than none. */
static bool set_header(struct edit *e, const struct header_op *op)
{
    struct str value = op->parts[0].text;

    if (!is_literal(op) && !header_value_render(op->parts, op->n_parts, e->request, e->arena, &value))
        return false;
    remove_header(e, op->name, STR_NONE);
    return (value.len == 0 && !is_literal(op)) || append(e, op->name, value);
}

/* What the request has under that name is put into a list again, so it has to be fit for one. */
static bool add_header(struct edit *e, const struct header_op *op)
{
    struct str value = op->parts[0].text;

    if (!is_literal(op) && !header_value_render(op->parts, op->n_parts, e->request, e->arena, &value))
        return false;
    if (value.len == 0 && !is_literal(op))
        return true;
    for (size_t i = 0; (i = find_name(e->items, e->n, op->name, i)) < e->n; i++)
        if (!header_value_clean(e->items[i].value, e->arena, &e->items[i].value))
            return false;
    mark_changed(e, op->name);
    return append(e, op->name, value);
}

/* All values of from, in order. Without one the target goes, so that no client supplies it by leaving out the source. */
static bool copy_header(struct edit *e, const struct header_op *op)
{
    size_t n;

    remove_header(e, op->name, op->from);
    n = e->n;
    for (size_t i = 0; (i = find_name(e->items, n, op->from, i)) < n; i++) {
        struct str value;
        if (!header_value_clean(e->items[i].value, e->arena, &value) || !append(e, op->name, value))
            return false;
    }
    return true;
}

static bool rename_header(struct edit *e, const struct header_op *op)
{
    if (!copy_header(e, op))
        return false;
    remove_header(e, op->from, STR_NONE);
    return true;
}

static bool apply(struct edit *e, const struct header_op *op)
{
    switch (op->kind) {
    case HEADER_SET:
        return set_header(e, op);
    case HEADER_ADD:
        return add_header(e, op);
    case HEADER_REMOVE:
        remove_header(e, op->name, STR_NONE);
        return true;
    case HEADER_COPY:
        return copy_header(e, op);
    case HEADER_RENAME:
        return rename_header(e, op);
    case HEADER_FORWARD:
        break; /* applied before */
    }
    return true;
}

static void apply_filters(struct edit *e, const struct policy *p, const struct rule_hits *hits)
{
    filter_headers(e, &p->forward);
    for (size_t i = 0; i < hits->n; i++) {
        const struct header_rule *rule = &p->header_rules[hits->index[i]];
        for (size_t k = 0; k < rule->n_ops; k++)
            if (rule->ops[k].kind == HEADER_FORWARD)
                filter_headers(e, &rule->ops[k].filter);
    }
}

static bool apply_ops(struct edit *e, const struct policy *p, const struct rule_hits *hits)
{
    for (size_t i = 0; i < hits->n; i++) {
        const struct header_rule *rule = &p->header_rules[hits->index[i]];
        for (size_t k = 0; k < rule->n_ops; k++)
            if (!apply(e, &rule->ops[k]))
                return false;
    }
    return true;
}

/* --- The difference --- */

/* The next value of name from *at on; false when there is none. */
static inline bool next_value(const struct header *items, size_t n, struct str name, size_t *at, struct str *value)
{
    size_t found = find_name(items, n, name, *at);

    *at = found + 1;
    if (found < n)
        *value = items[found].value;
    return found < n;
}

static bool same_values(const struct headers *before, const struct edit *e, const struct change *c)
{
    size_t i = 0, j = c->at;

    for (;;) {
        struct str old = STR_NONE, new = STR_NONE;
        bool has_old = next_value(before->items, before->n, c->name, &i, &old);
        bool has_new = next_value(e->items, e->n, c->name, &j, &new);
        if (has_old != has_new || !str_eq(old, new))
            return false;
        if (!has_old)
            return true;
    }
}

/* When all operations are done: finds the values of the changed names, and forgets the names whose values came out as they were. */
static void drop_unchanged(struct edit *e, const struct headers *before)
{
    size_t kept = 0;

    for (size_t i = 0; i < e->n_changed; i++) {
        struct change c = e->changed[i];
        c.at = find_name(e->items, e->n, c.name, 0);
        if (!same_values(before, e, &c))
            e->changed[kept++] = c;
    }
    e->n_changed = kept;
}

static bool put_lists(const struct edit *e, struct arena *a, struct header_edit *out)
{
    size_t del_len = 1, add_len = 2, n_added = 0, at;
    struct buf del, add;
    struct str value;

    for (size_t i = 0; i < e->n_changed; i++) {
        const struct change *c = &e->changed[i];
        size_t name_len = varint_len(c->name.len) + c->name.len;
        del_len += name_len;
        for (at = c->at; next_value(e->items, e->n, c->name, &at, &value); n_added++)
            add_len += name_len + varint_len(value.len) + value.len;
    }
    if (n_added > HEADERS_MAX || del_len > WIRE_VAR_REQ_DEL_MAX || add_len > WIRE_VAR_REQ_ADD_MAX)
        return false;
    if (!arena_take_buf(a, del_len, &del) || !arena_take_buf(a, add_len, &add))
        return false;
    for (size_t i = 0; i < e->n_changed; i++) {
        const struct change *c = &e->changed[i];
        headers_put_del(&del, c->name);
        for (at = c->at; next_value(e->items, e->n, c->name, &at, &value);)
            headers_put_add(&add, c->name, value);
    }
    headers_end_del(&del);
    headers_end_add(&add);
    out->del = buf_str(&del);
    out->add = buf_str(&add);
    return true;
}

static void plan_rule(struct plan *plan, const struct header_rule *rule)
{
    plan->n_ops += rule->n_ops;
    for (size_t i = 0; i < rule->n_ops; i++) {
        enum header_op_kind kind = rule->ops[i].kind;
        plan->filters = plan->filters || kind == HEADER_FORWARD;
        plan->copies = plan->copies || kind == HEADER_COPY || kind == HEADER_RENAME;
    }
}

static bool find_hits(const struct policy *p, const struct request_view *r, struct arena *a, struct plan *plan)
{
    struct expr_candidates candidates;
    struct expr_run run;

    if (!expr_run_init(&run, p->header_set, &r->facts, a))
        return false;
    expr_run_worth_asking(&run, &candidates);
    for (size_t i = 0; i < p->n_header_rules; i++) {
        size_t program = p->header_rules[i].program;
        /* An expression that can't be judged does not match here: a header asserts something to the upstream. */
        if (!expr_is_candidate(&candidates, program) || expr_run(&run, program) != MATCH_YES)
            continue;
        plan->hits.index[plan->hits.n++] = (uint16_t) i;
        plan_rule(plan, &p->header_rules[i]);
    }
    return true;
}

bool policy_headers(const struct policy *p, const struct request_view *r, struct arena *a, struct header_edit *out, struct rule_hits *hits)
{
    struct header_edit done = {.result = *r->headers};
    struct plan plan;
    struct edit e;

    plan.hits.n = 0;
    plan.n_ops = 0;
    plan.copies = false;
    plan.filters = p->forward.mode != FORWARD_ALL;
    if (!find_hits(p, r, a, &plan))
        return false;
    if (plan.n_ops > 0 || plan.filters) {
        if (!edit_init(&e, &plan, r, a))
            return false;
        if (plan.filters)
            apply_filters(&e, p, &plan.hits);
        if (!apply_ops(&e, p, &plan.hits))
            return false;
        drop_unchanged(&e, r->headers);
        if (e.n_changed > 0) {
            done.result = (struct headers){.items = e.items, .n = e.n};
            if (!put_lists(&e, a, &done))
                return false;
        }
    }
    *out = done;
    memcpy(hits->index, plan.hits.index, plan.hits.n * sizeof hits->index[0]);
    hits->n = plan.hits.n;
    return true;
}
