/* Templates: cut at their placeholders once, checked with the shortest and the longest values, rendered by appends. */
#include "common/http/template.h"

#include "common/base/jx.h"

enum { RETRY_AFTER_MAX_DIGITS = 10, STATUS_DIGITS = 3, SHOWN_MAX = 40 };

static const struct {
    struct str text;
    enum template_part_kind kind;
    size_t max_bytes;
} placeholders[] = {
    {{"retry_after", sizeof("retry_after") - 1}, TEMPLATE_RETRY_AFTER, RETRY_AFTER_MAX_DIGITS},
    {{"request_id", sizeof("request_id") - 1}, TEMPLATE_REQUEST_ID, TEMPLATE_REQUEST_ID_MAX},
    {{"status", sizeof("status") - 1}, TEMPLATE_STATUS, STATUS_DIGITS},
};
_Static_assert(sizeof(TEMPLATE_REQUEST_ID_MARK) - 1 <= TEMPLATE_REQUEST_ID_MAX, "a page with the mark is no longer than one with an id");
enum { N_PLACEHOLDERS = sizeof(placeholders) / sizeof(placeholders[0]) };

static bool check_text(struct str body, const char *path, struct err *e)
{
    if (body.len > TEMPLATE_RENDERED_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED, path, "the body has %zu bytes; at most %d are allowed", body.len,
                       TEMPLATE_RENDERED_MAX);
    if (!str_is_utf8(body))
        return err_set(e, ERR_BAD_VALUE, path, "the body is not UTF-8");
    for (size_t i = 0; i < body.len; i++) {
        unsigned char c = (unsigned char)body.p[i];
        if ((c < 0x20 && c != '\t' && c != '\r' && c != '\n') || c == 0x7f)
            return err_set(e, ERR_BAD_VALUE, path,
                           "control character 0x%02x at byte %zu; only tab, CR and LF are allowed", (unsigned)c, i + 1);
    }
    return true;
}

/* rest begins with "{{". Sets which to a row of placeholders and cuts it off. */
static bool take_placeholder(struct str body, struct str *rest, size_t *which, const char *path, struct err *e)
{
    size_t at = body.len - rest->len + 1;
    struct str inside = str_sub(*rest, 2, rest->len);
    size_t end = str_find(inside, STR("}}"));
    if (end == SIZE_MAX)
        return err_set(e, ERR_BAD_VALUE, path, "the {{ at byte %zu is not closed by }}", at);
    struct str name = str_sub(inside, 0, end);
    for (size_t i = 0; i < N_PLACEHOLDERS; i++) {
        if (str_eq(name, placeholders[i].text)) {
            *which = i;
            *rest = str_sub(inside, end + 2, inside.len);
            return true;
        }
    }
    size_t shown = 0;
    while (shown < name.len && shown < SHOWN_MAX && ascii_is_tchar(name.p[shown]))
        shown++;
    return err_set(
        e, ERR_BAD_VALUE, path,
        "unknown placeholder {{%.*s%s at byte %zu; write {{retry_after}}, {{request_id}} or {{status}}, without blanks",
        (int)shown, name.p, shown == name.len ? "}}" : "...", at);
}

/* Walks the body; parts NULL only counts. */
static bool cut(struct str body, struct template_part *parts, struct template *t, const char *path, struct err *e)
{
    t->n_parts = t->rendered_max = 0;
    for (struct str rest = body; rest.len > 0;) {
        struct template_part part = {.kind = TEMPLATE_LITERAL, .text = str_sub(rest, 0, str_find(rest, STR("{{")))};
        size_t max_bytes = part.text.len;
        if (max_bytes > 0) {
            rest = str_sub(rest, max_bytes, rest.len);
        } else {
            size_t which = 0;
            if (!take_placeholder(body, &rest, &which, path, e))
                return false;
            part.kind = placeholders[which].kind;
            max_bytes = placeholders[which].max_bytes;
        }
        if (parts != NULL)
            parts[t->n_parts] = part;
        t->n_parts++;
        t->rendered_max += max_bytes;
    }
    if (t->rendered_max > TEMPLATE_RENDERED_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED, path, "rendered, the body can have %zu bytes; at most %d are allowed",
                       t->rendered_max, TEMPLATE_RENDERED_MAX);
    return true;
}

static bool is_json(struct str content_type)
{
    struct str type = str_sub(content_type, 0, str_find_byte(content_type, ';'));
    return str_eq_nocase(type, STR("application/json")) || str_eq_nocase(type, STR("application/problem+json"));
}

/* Both ends of what a number can be, since "0{{retry_after}}" or two numbers in a row are JSON with only some
 * values. The sample id begins with no letter of an escape and holds none of hex, so it is JSON only where every id
 * is. */
static bool check_json(const struct template *t, const char *path, struct err *e)
{
    static const uint32_t samples[] = {0, UINT32_MAX};
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        char storage[TEMPLATE_RENDERED_MAX];
        struct buf b;
        buf_init(&b, storage, sizeof(storage));
        struct template_values v = {.retry_after_s = samples[i], .request_id = STR("xyz.X_Z-")};
        template_render(t, &v, &b);
        json_t *json = NULL;
        struct err fault;
        err_clear(&fault);
        if (!jx_parse(buf_str(&b), sizeof(storage), &json, &fault))
            return err_set(e, ERR_BAD_VALUE, path, "not JSON with retry_after %u filled in: %.300s",
                           (unsigned)samples[i], fault.text);
        json_decref(json);
    }
    return true;
}

bool template_content_type_ok(struct str content_type)
{
    static const char *const types[] = {"application/json", "application/problem+json", "text/html", "text/plain"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct str type = str_of(types[i]);
        struct str parameter = str_sub(content_type, type.len, content_type.len);
        if (str_eq_nocase(str_sub(content_type, 0, type.len), type) &&
            (parameter.len == 0 || str_eq_nocase(parameter, STR("; charset=utf-8"))))
            return true;
    }
    return false;
}

bool template_compile(struct str body, int status, struct str content_type, struct arena *a, struct template *out,
                      const char *path, struct err *e)
{
    struct template t = {.status = status, .content_type = content_type};
    if (!check_text(body, path, e) || !cut(body, NULL, &t, path, e))
        return false;
    t.parts = ARENA_NEW_N(a, t.n_parts, struct template_part);
    if (t.parts == NULL)
        return err_set(e, ERR_NO_MEMORY, path, "no memory for the template's %zu parts", t.n_parts);
    if (!cut(body, t.parts, &t, path, e) || (is_json(content_type) && !check_json(&t, path, e)))
        return false;
    out->status = t.status;
    out->content_type = t.content_type;
    out->parts = t.parts;
    out->n_parts = t.n_parts;
    out->rendered_max = t.rendered_max;
    return true;
}

void template_render(const struct template *t, const struct template_values *v, struct buf *out)
{
    for (size_t i = 0; i < t->n_parts; i++) {
        switch (t->parts[i].kind) {
        case TEMPLATE_LITERAL:
            buf_put(out, t->parts[i].text);
            break;
        case TEMPLATE_RETRY_AFTER:
            buf_put_u64(out, v->retry_after_s);
            break;
        case TEMPLATE_REQUEST_ID:
            buf_put(out, str_sub(v->request_id, 0, TEMPLATE_REQUEST_ID_MAX));
            break;
        case TEMPLATE_STATUS:
            buf_put_i64(out, t->status);
            break;
        }
    }
}

bool template_page(const struct template *t, uint32_t retry_after_s, struct arena *a, struct str *out)
{
    const struct template_values values = {.retry_after_s = retry_after_s, .request_id = STR(TEMPLATE_REQUEST_ID_MARK)};
    struct buf b;
    if (!arena_take_buf(a, t->rendered_max, &b))
        return false;
    template_render(t, &values, &b);
    *out = buf_str(&b);
    return true;
}
