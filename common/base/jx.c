/* The reader over a parsed document: members by name with their paths, typed values, faults collected. */
#include "common/base/jx.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/base/parse.h"

struct jx jx_root(const json_t *value, struct jx_doc *doc)
{
    return (struct jx){.value = value, .doc = doc};
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        break;
    }
    return "null";
}

static bool fault_type(const struct jx *j, const char *wanted)
{
    jx_fault(j, ERR_BAD_TYPE, "must be %s, not %s", wanted, type_name(j->value));
    return false;
}

/* For containers, which are asked several times: the fault stands in the list once. */
static void fault_type_once(const struct jx *j, const char *wanted)
{
    char path[ERR_PATH_MAX];

    jx_path(j, path);
    for (size_t i = 0; i < j->doc->errors->n; i++)
        if (j->doc->errors->items[i].code == ERR_BAD_TYPE && strcmp(j->doc->errors->items[i].path, path) == 0)
            return;
    fault_type(j, wanted);
}

struct jx jx_member(const struct jx *j, const char *name)
{
    if (j->value != NULL && !json_is_object(j->value))
        fault_type_once(j, "an object");
    return (struct jx){.value = json_object_get(j->value, name), .parent = j, .key = str_of(name), .doc = j->doc};
}

struct jx jx_item(const struct jx *j, size_t index)
{
    return (struct jx){.value = json_array_get(j->value, index), .parent = j, .index = index, .doc = j->doc};
}

size_t jx_array_len(const struct jx *j)
{
    if (j->value != NULL && !json_is_array(j->value))
        fault_type_once(j, "an array");
    return json_array_size(j->value);
}

bool jx_has(const struct jx *j)
{
    return j->value != NULL && !json_is_null(j->value);
}

bool jx_is_object(const struct jx *j)
{
    if (j->value != NULL && !json_is_object(j->value))
        fault_type_once(j, "an object");
    return json_is_object(j->value);
}

/* False when it does not fit; then nothing of it is appended. */
static bool put_segment(struct buf *b, const struct jx *j)
{
    size_t before = b->len;

    buf_put_byte(b, '/');
    if (j->key.p == NULL)
        buf_put_u64(b, j->index);
    for (size_t i = 0; i < j->key.len; i++) {
        if (j->key.p[i] == '~')
            buf_put_cstr(b, "~0");
        else if (j->key.p[i] == '/')
            buf_put_cstr(b, "~1");
        else
            buf_put_byte(b, j->key.p[i]);
    }
    if (b->full)
        b->len = before;
    return !b->full;
}

void jx_path(const struct jx *j, char *out)
{
    const struct jx *chain[JX_DEPTH_MAX + 1];
    struct buf b;
    size_t n = 0;

    for (; j->parent != NULL && n < JX_DEPTH_MAX + 1; j = j->parent)
        chain[n++] = j;
    buf_init(&b, out, ERR_PATH_MAX - 1);
    /* A path that is too long ends at an ancestor that still fits: it stays a valid pointer. */
    while (n > 0 && put_segment(&b, chain[n - 1]))
        n--;
    out[b.len] = '\0';
}

void jx_fault(const struct jx *j, enum err_code code, const char *fmt, ...)
{
    char path[ERR_PATH_MAX], text[ERR_TEXT_MAX] = "";
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    jx_path(j, path);
    errlist_add(j->doc->errors, code, path, "%s", text);
}

static bool is_one_of(struct str s, const char *const *names, int *index)
{
    for (int i = 0; names[i] != NULL; i++)
        if (str_eq(s, str_of(names[i]))) {
            *index = i;
            return true;
        }
    return false;
}

/* "a, b, c", cut where the buffer ends. */
static void join(const char *const *names, char *out, size_t cap)
{
    struct buf b;

    buf_init(&b, out, cap - 1);
    for (const char *const *name = names; *name != NULL; name++) {
        if (name != names)
            buf_put_cstr(&b, ", ");
        buf_put_cstr(&b, *name);
    }
    out[b.len] = '\0';
}

void jx_only(const struct jx *j, const char *const *names)
{
    char list[ERR_TEXT_MAX - 100];
    const char *key;
    json_t *value;
    int index;

    join(names, list, sizeof(list));
    /* The iterator only reads, but jansson has no const form of it. */
    json_object_foreach((json_t *)(uintptr_t)j->value, key, value)
    {
        struct jx member = {.value = value, .parent = j, .key = str_of(key), .doc = j->doc};
        const char *suggestion;

        if (is_one_of(member.key, names, &index))
            continue;
        suggestion = str_nearest(member.key, names);
        /* A member that is there already is not what this one was meant to be. */
        if (suggestion != NULL && json_object_get(j->value, suggestion) == NULL)
            jx_fault(&member, ERR_UNKNOWN_MEMBER, "unknown member \"%.*s\": did you mean \"%s\"?",
                     STR_ARG(str_cut_utf8(member.key, 64)), suggestion);
        else
            jx_fault(&member, ERR_UNKNOWN_MEMBER, "unknown member \"%.*s\": known here are %s",
                     STR_ARG(str_cut_utf8(member.key, 64)), list);
    }
}

bool jx_str(const struct jx *j, struct str *out)
{
    if (j->value == NULL)
        return false;
    if (!json_is_string(j->value))
        return fault_type(j, "a string");
    if (!arena_copy_str(j->doc->arena, (struct str){json_string_value(j->value), json_string_length(j->value)}, out)) {
        jx_fault(j, ERR_NO_MEMORY, "no memory for this text");
        return false;
    }
    return true;
}

bool jx_bool(const struct jx *j, bool *out)
{
    if (j->value == NULL)
        return false;
    if (!json_is_boolean(j->value))
        return fault_type(j, "true or false");
    *out = json_is_true(j->value);
    return true;
}

bool jx_int(const struct jx *j, int64_t min, int64_t max, int64_t *out)
{
    int64_t value;

    if (j->value == NULL)
        return false;
    if (json_is_real(j->value)) {
        jx_fault(j, ERR_BAD_VALUE, "must be a whole number, written without a point or exponent");
        return false;
    }
    if (!json_is_integer(j->value))
        return fault_type(j, "a whole number");
    value = json_integer_value(j->value);
    if (value < min || value > max) {
        jx_fault(j, ERR_BAD_VALUE, "%jd is out of range: must be between %jd and %jd", (intmax_t)value, (intmax_t)min,
                 (intmax_t)max);
        return false;
    }
    *out = value;
    return true;
}

bool jx_duration_ms(const struct jx *j, uint64_t min_ms, uint64_t max_ms, uint64_t *out_ms)
{
    char path[ERR_PATH_MAX], min[32], max[32];
    struct err e;
    uint64_t ms;

    if (j->value == NULL)
        return false;
    if (!json_is_string(j->value))
        return fault_type(j, "a duration text such as \"30s\"");
    err_clear(&e);
    jx_path(j, path);
    if (!parse_duration_ms((struct str){json_string_value(j->value), json_string_length(j->value)}, &ms, path, &e)) {
        errlist_add_err(j->doc->errors, &e);
        return false;
    }
    if (ms < min_ms || ms > max_ms) {
        jx_fault(j, ERR_BAD_VALUE, "\"%.32s\" is out of range: must be between %.*s and %.*s",
                 json_string_value(j->value), (int)parse_render_duration(min_ms, min, sizeof(min)), min,
                 (int)parse_render_duration(max_ms, max, sizeof(max)), max);
        return false;
    }
    *out_ms = ms;
    return true;
}

/* Absence is a fault, unless it only follows from an ancestor of another type, which is one already. */
static bool needed(const struct jx *j)
{
    const struct jx *below = j, *ancestor = j->parent;

    if (j->value != NULL)
        return true;
    while (ancestor != NULL && ancestor->value == NULL) {
        below = ancestor;
        ancestor = ancestor->parent;
    }
    if (ancestor == NULL || (below->key.p != NULL ? json_is_object(ancestor->value) : json_is_array(ancestor->value)))
        jx_fault(j, ERR_MISSING, "is required");
    return false;
}

bool jx_need_str(const struct jx *j, struct str *out)
{
    return needed(j) && jx_str(j, out);
}

bool jx_need_int(const struct jx *j, int64_t min, int64_t max, int64_t *out)
{
    return needed(j) && jx_int(j, min, max, out);
}

bool jx_need_duration_ms(const struct jx *j, uint64_t min_ms, uint64_t max_ms, uint64_t *out_ms)
{
    return needed(j) && jx_duration_ms(j, min_ms, max_ms, out_ms);
}

bool jx_enum(const struct jx *j, const char *const *names, int *out)
{
    char list[ERR_TEXT_MAX - 150];
    struct str text;

    if (j->value == NULL)
        return false;
    join(names, list, sizeof(list));
    if (!json_is_string(j->value)) {
        jx_fault(j, ERR_BAD_TYPE, "must be a string, not %s: one of %s", type_name(j->value), list);
        return false;
    }
    text = (struct str){json_string_value(j->value), json_string_length(j->value)};
    if (is_one_of(text, names, out))
        return true;
    jx_fault(j, ERR_BAD_VALUE, "\"%.*s\" is none of: %s", STR_ARG(str_cut_utf8(text, 64)), list);
    return false;
}
