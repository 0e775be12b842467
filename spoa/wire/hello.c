/* Reads HAPROXY-HELLO and writes AGENT-HELLO. */
#include "spoa/wire/hello_priv.h"

struct offer {
    struct str versions, capabilities;
    uint64_t frame_size;
    bool has_versions, has_frame_size, has_capabilities, healthcheck;
};

/* The next item of a comma list without the blanks around it. False: no more. */
static bool next_item(struct str *list, struct str *item)
{
    size_t comma;

    if (list->p == NULL)
        return false;
    comma = str_find_byte(*list, ',');
    *item = str_trim(str_sub(*list, 0, comma));
    *list = comma == SIZE_MAX ? STR_NONE : str_sub(*list, comma + 1, list->len);
    return true;
}

/* "2.N": who speaks a minor version speaks all before it, so 2.0 too. */
static bool is_version_2(struct str item)
{
    if (!str_starts(item, STR("2.")) || item.len == 2)
        return false;
    for (size_t i = 2; i < item.len; i++)
        if (!ascii_is_digit(item.p[i]))
            return false;
    return true;
}

static bool offers_version_2(struct str versions)
{
    struct str item;

    while (next_item(&versions, &item))
        if (is_version_2(item))
            return true;
    return false;
}

static bool offers_pipelining(struct str capabilities)
{
    struct str item;

    while (next_item(&capabilities, &item))
        if (str_eq(item, STR("pipelining")))
            return true;
    return false;
}

/* A negative size is as good as none: 0 is refused as too small later. */
static bool read_size(const struct spop_value *value, uint64_t *out)
{
    if (value->type == SPOP_UINT32 || value->type == SPOP_UINT64)
        *out = value->u;
    else if (value->type == SPOP_INT32 || value->type == SPOP_INT64)
        *out = value->i < 0 ? 0 : (uint64_t)value->i;
    else
        return false;
    return true;
}

static bool read_text(const struct spop_value *value, struct str *out, bool *has)
{
    if (value->type != SPOP_STR)
        return false;
    *out = value->s;
    *has = true;
    return true;
}

/* False: the value has another type than the name asks for. */
static bool read_item(struct offer *o, struct str name, const struct spop_value *value)
{
    if (str_eq(name, STR("supported-versions")))
        return read_text(value, &o->versions, &o->has_versions);
    if (str_eq(name, STR("capabilities")))
        return read_text(value, &o->capabilities, &o->has_capabilities);
    if (str_eq(name, STR("max-frame-size"))) {
        o->has_frame_size = true;
        return read_size(value, &o->frame_size);
    }
    if (str_eq(name, STR("healthcheck"))) {
        if (value->type != SPOP_BOOL)
            return false;
        o->healthcheck = value->b;
    }
    return true;
}

static enum spop_status refuse(struct err *e, enum spop_status status, const char *what)
{
    (void)err_set(e, ERR_PROTOCOL, "", "HELLO refused: %s", what);
    return status;
}

enum spop_status spop_hello_read(const struct spop_frame *frame, struct spop_hello *out, struct err *e)
{
    struct offer o = {0};
    struct str rest = frame->payload, name;
    struct spop_value value;

    if ((frame->flags & SPOP_FLAG_FIN) == 0)
        return refuse(e, SPOP_STATUS_FRAGMENTED, "it is a fragment");
    if (frame->stream_id != 0 || frame->frame_id != 0)
        return refuse(e, SPOP_STATUS_INVALID, "its stream and frame id must be 0");
    while (rest.len != 0)
        if (!spop_get_kv(&rest, &name, &value) || !read_item(&o, name, &value))
            return refuse(e, SPOP_STATUS_INVALID, "an item is cut or of the wrong type");
    if (!o.has_versions)
        return refuse(e, SPOP_STATUS_NO_VERSION, "supported-versions is missing");
    if (!o.has_frame_size)
        return refuse(e, SPOP_STATUS_NO_FRAME_SIZE, "max-frame-size is missing");
    if (!o.has_capabilities)
        return refuse(e, SPOP_STATUS_NO_CAPABILITIES, "capabilities is missing");
    if (!offers_version_2(o.versions))
        return refuse(e, SPOP_STATUS_BAD_VERSION, "supported-versions has no 2.x");
    if (o.frame_size < SPOP_FRAME_MIN)
        return refuse(e, SPOP_STATUS_BAD_FRAME_SIZE, "max-frame-size is below 256");
    *out = (struct spop_hello){
        .frame_max = o.frame_size < SPOP_FRAME_MAX ? (size_t)o.frame_size : SPOP_FRAME_MAX,
        .pipelining = offers_pipelining(o.capabilities),
        .healthcheck = o.healthcheck,
    };
    return SPOP_STATUS_NORMAL;
}

void spop_hello_answer(struct buf *b, const struct spop_hello *hello)
{
    size_t begin = spop_put_begin(b, SPOP_AGENT_HELLO, 0, 0);

    spop_put_kv_str(b, "version", STR("2.0"));
    spop_put_kv_u32(b, "max-frame-size", (uint32_t)hello->frame_max);
    spop_put_kv_str(b, "capabilities", hello->pipelining ? STR("pipelining") : STR(""));
    spop_put_end(b, begin);
}
