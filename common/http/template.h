/* Response templates: literal text and the placeholders {{retry_after}}, {{request_id}}, {{status}}, cut once,
 * rendered by appends. */
#ifndef COMMON_HTTP_TEMPLATE_H
#define COMMON_HTTP_TEMPLATE_H

#include "common/base/arena.h"
#include "common/base/err.h"

enum { TEMPLATE_RENDERED_MAX = 32 * 1024, TEMPLATE_REQUEST_ID_MAX = 128 };

enum template_part_kind { TEMPLATE_LITERAL, TEMPLATE_RETRY_AFTER, TEMPLATE_REQUEST_ID, TEMPLATE_STATUS };

struct template_part {
    enum template_part_kind kind;
    struct str text; /* of a literal */
};

struct template {
    struct str name;
    int status; /* 400-599 */
    struct str content_type;
    struct template_part *parts;
    size_t n_parts;
    size_t rendered_max; /* with the longest values of all placeholders */
};

struct template_values {
    uint32_t retry_after_s;
    struct str request_id;
};

/* Cuts body into parts borrowed from it; out->name is left to the caller, content_type is borrowed. Placeholders are
 * written without blanks; "{{" always begins one. Faults (at path, the body's): an unknown or unclosed placeholder,
 * a body or a rendered maximum over TEMPLATE_RENDERED_MAX, control characters other than tab, CR, LF, not UTF-8; for
 * a JSON content type a body that is not JSON with every value (a number may stand inside a string or as one, the
 * request id only inside a string). Content types: application/json, application/problem+json, text/html,
 * text/plain, each with optional "; charset=utf-8", in any case (checked by template_content_type_ok, reported by
 * the caller at its own path). */
MUSTUSE bool template_compile(struct str body, int status, struct str content_type, struct arena *a,
                              struct template *out, const char *path, struct err *e);
bool template_content_type_ok(struct str content_type);
/* What stands for the request id in a page that HAProxy finishes; a page holds no other "{{". */
#define TEMPLATE_REQUEST_ID_MARK "{{request_id}}"
/* The page with everything but the request id, at most rendered_max bytes like any rendering. False: no memory. */
MUSTUSE bool template_page(const struct template *t, uint32_t retry_after_s, struct arena *a, struct str *out);
/* A request id beyond TEMPLATE_REQUEST_ID_MAX is cut, so that rendered_max holds. */
void template_render(const struct template *t, const struct template_values *v, struct buf *out);

#endif
