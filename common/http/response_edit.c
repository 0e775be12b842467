/* Collects what is changed on a response and tells it as HAProxy's lists. */
#include "common/http/response_edit.h"

#include "common/base/varint.h"

enum { LIST_END_MAX = 2 };

void response_edit_clear(struct response_edit *e)
{
    e->cors = e->full = false;
    e->n_deleted = e->n_added = 0;
}

void response_edit_delete(struct response_edit *e, struct str name)
{
    if (e->n_deleted == RESPONSE_DELETED_MAX)
        e->full = true;
    else
        e->deleted[e->n_deleted++] = name;
}

void response_edit_add(struct response_edit *e, struct str name, struct str value)
{
    if (e->n_added == RESPONSE_ADDED_MAX)
        e->full = true;
    else
        e->added[e->n_added++] = (struct header){.name = name, .value = value};
}

static bool deletions(const struct response_edit *e, struct arena *a, struct str *out)
{
    size_t size = LIST_END_MAX;
    struct buf b;

    *out = STR_NONE;
    if (e->n_deleted == 0)
        return true;
    for (size_t i = 0; i < e->n_deleted; i++)
        size += VARINT_MAX_LEN + e->deleted[i].len;
    if (!arena_take_buf(a, size, &b))
        return false;
    for (size_t i = 0; i < e->n_deleted; i++)
        headers_put_del(&b, e->deleted[i]);
    headers_end_del(&b);
    *out = buf_str(&b);
    return true;
}

static bool additions(const struct response_edit *e, struct arena *a, struct str *out)
{
    size_t size = LIST_END_MAX;
    struct buf b;

    *out = STR_NONE;
    if (e->n_added == 0)
        return true;
    for (size_t i = 0; i < e->n_added; i++)
        size += 2 * VARINT_MAX_LEN + e->added[i].name.len + e->added[i].value.len;
    if (!arena_take_buf(a, size, &b))
        return false;
    for (size_t i = 0; i < e->n_added; i++)
        headers_put_add(&b, e->added[i].name, e->added[i].value);
    headers_end_add(&b);
    *out = buf_str(&b);
    return true;
}

bool response_edit_lists(const struct response_edit *e, struct arena *a, struct str *deleted, struct str *added)
{
    return !e->full && deletions(e, a, deleted) && additions(e, a, added);
}
