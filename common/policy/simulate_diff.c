/* What differs between two results of simulate. */
#include "common/policy/simulate_priv.h"

/* A result has three levels of objects; a name in it is that of a header at most. */
enum { LEVELS_MAX = 8, PATH_MAX_BYTES = 2048 };

static void put_escaped(struct buf *path, const char *name)
{
    buf_put_byte(path, '/');
    for (; *name; name++) {
        if (*name == '~')
            buf_put_cstr(path, "~0");
        else if (*name == '/')
            buf_put_cstr(path, "~1");
        else
            buf_put_byte(path, *name);
    }
}

static json_t *or_null(json_t *value)
{
    return value ? json_incref(value) : json_null();
}

static bool add_difference(json_t *out, const struct buf *path, json_t *a, json_t *b)
{
    return json_array_append_new(out, json_pack("{s:s%, s:o, s:o}", "path", path->p, path->len, "a", or_null(a), "b", or_null(b))) == 0;
}

static bool compare(json_t *out, struct buf *path, json_t *a, json_t *b, int levels);

/* A member of a or b; one that both have is looked at once, with a's. */
static bool compare_member(json_t *out, struct buf *path, const char *name, json_t *a, json_t *b, int levels)
{
    size_t len = path->len;

    put_escaped(path, name);
    bool ok = !path->full && compare(out, path, a, b, levels);
    path->len = len;
    return ok;
}

static bool compare(json_t *out, struct buf *path, json_t *a, json_t *b, int levels)
{
    const char *name;
    json_t *value;
    bool ok = true;

    if (a == b || (a && b && json_equal(a, b)))
        return true;
    if (!json_is_object(a) || !json_is_object(b) || levels == 0)
        return add_difference(out, path, a, b);
    json_object_foreach(a, name, value) ok = compare_member(out, path, name, value, json_object_get(b, name), levels - 1) && ok;
    json_object_foreach(b, name, value) ok = (json_object_get(a, name) || compare_member(out, path, name, NULL, value, levels - 1)) && ok;
    return ok;
}

json_t *simulate_differences(const json_t *a, const json_t *b)
{
    char storage[PATH_MAX_BYTES];
    struct buf path;
    json_t *differences = json_array(), *out = json_object();

    buf_init(&path, storage, sizeof storage);
    /* jansson has no const form of what only looks */
    bool ok = compare(differences, &path, (json_t *) (uintptr_t) a, (json_t *) (uintptr_t) b, LEVELS_MAX);
    ok = simulate_put(out, "same", json_boolean(json_array_size(differences) == 0)) && ok;
    ok = simulate_put(out, "differences", differences) && ok;
    return simulate_finished(out, ok);
}
