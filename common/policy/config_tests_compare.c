/* A test's expectation against what simulate found: only what is listed is compared. */
#include "common/base/parse.h"
#include "common/policy/config_tests_priv.h"

enum { PATH_LEN_MAX = 1024 };

/* A comparison of one result; path is where it is at. */
struct comparing {
    json_t *failures;
    struct buf path;
    bool ok; /* there was memory */
};

/* Names here are those of members, kinds and headers, none of which has a '/' in it. */
static void enter(struct comparing *c, struct str name)
{
    buf_put_byte(&c->path, '/');
    for (size_t i = 0; i < name.len; i++) {
        if (name.p[i] == '~')
            buf_put_cstr(&c->path, "~0");
        else
            buf_put_byte(&c->path, name.p[i]);
    }
}

static json_t *or_null(json_t *value)
{
    return value ? json_incref(value) : json_null();
}

static void fail(struct comparing *c, json_t *want, json_t *got)
{
    json_t *failure = json_object();
    bool ok = !c->path.full && simulate_put(failure, "path", simulate_text(buf_str(&c->path)));

    ok = simulate_put(failure, "want", or_null(want)) && ok;
    ok = simulate_put(failure, "got", or_null(got)) && ok;
    c->ok = json_array_append_new(c->failures, failure) == 0 && ok && c->ok;
}

static bool same_duration(const json_t *want, const json_t *got)
{
    uint64_t a, b;
    struct err e;

    err_clear(&e);
    return parse_duration_ms((struct str){json_string_value(want), json_string_length(want)}, &a, "", &e) &&
           parse_duration_ms((struct str){json_string_value(got), json_string_length(got)}, &b, "", &e) && a == b;
}

static bool same_header(json_t *want, json_t *got)
{
    if (json_is_null(want) || (json_is_array(want) && json_array_size(want) == 0) || !got)
        return !json_is_string(want) && json_array_size(want) == 0 && !got;
    if (json_is_array(want) && json_array_size(want) == 1)
        return json_equal(json_array_get(want, 0), got);
    return json_equal(want, got);
}

static bool is_duration(const char *setting)
{
    return strcmp(setting, "upstream_timeout") == 0 || strcmp(setting, "body_read_timeout") == 0;
}

static void compare_settings(struct comparing *c, json_t *want, json_t *got)
{
    const size_t len = c->path.len;
    const char *name;
    json_t *value;

    json_object_foreach(want, name, value)
    {
        json_t *there = json_object_get(got, name);
        enter(c, str_of(name));
        if (strcmp(name, "responses") == 0)
            compare_settings(c, value, there);
        else if (!json_equal(value, there) && !(is_duration(name) && same_duration(value, there)))
            fail(c, value, there);
        c->path.len = len;
    }
}

static void compare_headers(struct comparing *c, json_t *want, json_t *got)
{
    const size_t len = c->path.len;
    const char *name, *other;
    json_t *value, *there;

    json_object_foreach(want, name, value)
    {
        json_t *found = NULL;
        json_object_foreach(got, other, there) if (str_eq_nocase(str_of(name), str_of(other))) found = there;
        enter(c, str_of(name));
        if (!same_header(value, found))
            fail(c, value, found);
        c->path.len = len;
    }
}

json_t *config_tests_compare(const json_t *expect, const json_t *result)
{
    char storage[PATH_LEN_MAX];
    struct comparing c = {.failures = json_array(), .ok = true};
    const char *key;
    json_t *want;

    buf_init(&c.path, storage, sizeof storage);
    json_object_foreach((json_t *) (uintptr_t) expect, key, want) /* only read, but jansson iterates no const object */
    {
        json_t *got = json_object_get(result, key);
        c.path.len = 0;
        enter(&c, str_of(key));
        if (strcmp(key, "settings") == 0)
            compare_settings(&c, want, got);
        else if (strcmp(key, "upstream_headers") == 0 || strcmp(key, "response_headers") == 0)
            compare_headers(&c, want, got);
        else if (!json_equal(want, got))
            fail(&c, want, got);
    }
    return simulate_finished(c.failures, c.ok);
}
