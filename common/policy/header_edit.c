/* Request header rules at work: operations on a copy of the headers, then the difference as the lists that HAProxy applies. */
#include "common/base/varint.h"
#include "common/policy/policy.h"
#include "common/policy/wire_max_priv.h"

struct change {
    struct str name;
    size_t at; /* when all operations are done: the first header of that name; the number of headers when there is none */
};

/* The working copy, and the names that an operation has touched. */
struct edit {
    struct header *items;
    size_t n;
    struct change *changed;
    size_t n_changed;
};

static bool edit_init(struct edit *e, const struct headers *h, size_t n_ops, struct arena *a)
{
    e->items = ARENA_NEW_N(a, h->n + n_ops, struct header);
    e->changed = ARENA_NEW_N(a, n_ops, struct change);
    if (!e->items || !e->changed)
        return false;
    for (size_t i = 0; i < h->n; i++)
        e->items[i] = h->items[i];
    e->n = h->n;
    e->n_changed = 0;
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

static void set_header(struct edit *e, const struct header_op *op)
{
    size_t kept = find_name(e->items, e->n, op->name, 0);

    for (size_t i = kept + 1; i < e->n; i++)
        if (!str_eq_nocase(e->items[i].name, op->name))
            e->items[kept++] = e->items[i];
    e->items[kept++] = (struct header){.name = op->name, .value = op->parts[0].text};
    e->n = kept;
    mark_changed(e, op->name);
}

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

static bool list_buf(struct buf *b, size_t len, size_t max, struct arena *a)
{
    char *storage = len <= max ? arena_take_bytes(a, len) : NULL;

    if (storage)
        buf_init(b, storage, len);
    return storage != NULL;
}

static bool put_lists(const struct edit *e, struct arena *a, struct header_edit *out)
{
    size_t del_len = 1, add_len = 2, at;
    struct buf del, add;
    struct str value;

    for (size_t i = 0; i < e->n_changed; i++) {
        const struct change *c = &e->changed[i];
        size_t name_len = varint_len(c->name.len) + c->name.len;
        del_len += name_len;
        for (at = c->at; next_value(e->items, e->n, c->name, &at, &value);)
            add_len += name_len + varint_len(value.len) + value.len;
    }
    if (!list_buf(&del, del_len, WIRE_VAR_REQ_DEL_MAX, a) || !list_buf(&add, add_len, WIRE_VAR_REQ_ADD_MAX, a))
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

static bool find_hits(const struct policy *p, const struct request_view *r, struct arena *a, struct rule_hits *hits, size_t *n_ops)
{
    struct expr_run run;

    if (!expr_run_init(&run, p->header_set, &r->facts, a))
        return false;
    for (size_t i = 0; i < p->n_header_rules; i++) {
        /* An expression that can't be judged does not match here: a header asserts something to the upstream. */
        if (expr_run(&run, p->header_rules[i].program) != MATCH_YES)
            continue;
        hits->index[hits->n++] = (uint16_t) i;
        *n_ops += p->header_rules[i].n_ops;
    }
    return true;
}

bool policy_headers(const struct policy *p, const struct request_view *r, struct arena *a, struct header_edit *out, struct rule_hits *hits)
{
    struct header_edit done = {.result = *r->headers};
    struct rule_hits found;
    struct edit e;
    size_t n_ops = 0;

    found.n = 0;
    if (!find_hits(p, r, a, &found, &n_ops))
        return false;
    if (n_ops > 0) {
        if (!edit_init(&e, r->headers, n_ops, a))
            return false;
        for (size_t i = 0; i < found.n; i++) {
            const struct header_rule *rule = &p->header_rules[found.index[i]];
            for (size_t j = 0; j < rule->n_ops; j++)
                set_header(&e, &rule->ops[j]);
        }
        drop_unchanged(&e, r->headers);
        if (e.n_changed > 0) {
            done.result = (struct headers){.items = e.items, .n = e.n};
            if (!put_lists(&e, a, &done))
                return false;
        }
    }
    *out = done;
    memcpy(hits->index, found.index, found.n * sizeof found.index[0]);
    hits->n = found.n;
    return true;
}
