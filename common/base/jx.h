/* Strict JSON: jansson behind a reader that knows the path of every value and reports all faults at once. */
#ifndef COMMON_BASE_JX_H
#define COMMON_BASE_JX_H

#include <jansson.h>

#include "common/base/arena.h"
#include "common/base/err.h"

enum { JX_DOCUMENT_MAX_BYTES = 8 * 1024 * 1024, JX_DEPTH_MAX = 64 };

/* Reads one document: RFC 8259, UTF-8, no duplicate keys, no NUL, nothing behind it, at most max_bytes, JX_DEPTH_MAX
 * levels and a million values (checked before jansson sees it, so that its recursion and memory are bounded). On failure e
 * has line and column (of the last byte of what is wrong), and for what looks like YAML a hint that JSON is wanted. The
 * caller owns the result (json_decref). */
MUSTUSE bool jx_parse(struct str text, size_t max_bytes, json_t **out, struct err *e);
/* The bytes of a file of at most max_bytes: absent, empty, a directory, unreadable and too large are told apart in words. The
 * caller owns *out (free). */
MUSTUSE bool jx_read(const char *file, size_t max_bytes, char **out, size_t *len, struct err *e);
/* Both. */
MUSTUSE bool jx_load(const char *file, size_t max_bytes, json_t **out, struct err *e);

/* A place in a document. Cheap to copy; parents live on the callers' stacks. */
struct jx {
    const json_t *value;       /* NULL: absent */
    const struct jx *parent;   /* NULL: root */
    struct str key;            /* member name, for children of an object */
    size_t index;              /* for children of an array */
    struct jx_doc *doc;
};

struct jx_doc {
    struct arena *arena;       /* strings that are taken are copied here */
    struct errlist *errors;
};

struct jx jx_root(const json_t *value, struct jx_doc *doc);
/* Member of an object; its value is NULL when absent. If j is not an object the fault is noted once and the child is absent. */
struct jx jx_member(const struct jx *j, const char *name);
struct jx jx_item(const struct jx *j, size_t index);
size_t jx_array_len(const struct jx *j); /* 0 and a fault when it is not an array; 0 when absent */
bool jx_has(const struct jx *j);         /* present and not null */

/* RFC 6901, escaped; out holds ERR_PATH_MAX bytes. */
void jx_path(const struct jx *j, char *out);
void jx_fault(const struct jx *j, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Every member must be one of names (NULL-terminated); each other one is a fault that suggests the nearest name. */
void jx_only(const struct jx *j, const char *const *names);
bool jx_is_object(const struct jx *j); /* notes a fault when it is present and something else */

/* Each returns false and notes a fault when the value is present but of another type (null is one: ask jx_has before,
 * where it is allowed) or out of range; when it is absent
 * it returns false without a fault and leaves *out (so the caller's default stays). jx_need_* make absence a fault. */
bool jx_str(const struct jx *j, struct str *out);
bool jx_bool(const struct jx *j, bool *out);
bool jx_int(const struct jx *j, int64_t min, int64_t max, int64_t *out);
bool jx_duration_ms(const struct jx *j, uint64_t min_ms, uint64_t max_ms, uint64_t *out_ms);
bool jx_need_str(const struct jx *j, struct str *out);
bool jx_need_int(const struct jx *j, int64_t min, int64_t max, int64_t *out);
bool jx_need_duration_ms(const struct jx *j, uint64_t min_ms, uint64_t max_ms, uint64_t *out_ms);
/* One of names (NULL-terminated): *out is its index; else a fault that lists them. */
bool jx_enum(const struct jx *j, const char *const *names, int *out);

#endif
