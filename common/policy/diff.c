/* Compares two policies in their canonical form. */
#include "common/policy/diff.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/policy/format.h"
#include "common/policy/policy.h"

enum { SECTION_MAX = 64, PATH_MAX_BYTES = 256 };

/* Lists and maps whose parts have names. */
static const struct section {
    const char *path; /* from the policy */
    bool is_list;     /* of objects with an "id" */
    bool ordered;     /* the order decides */
} sections[] = {
    {"global.responses", false, false},     {"global.cors_policies", false, false}, {"auth.issuers", true, false},
    {"config_rules", true, true},           {"rate_limit_rules", true, true},       {"request_header_rules", true, true},
};
enum { N_SECTIONS = sizeof sections / sizeof sections[0] };

struct diff {
    json_t *changes;
    const char *prefix; /* "" or "candidate." */
    bool failed;        /* no memory */
};

/* Where a comparison is: a section's part, or the policy itself. */
struct place {
    const char *section, *id; /* id NULL: the policy */
    char path[PATH_MAX_BYTES];
    size_t len;
};

static void add(struct diff *d, json_t *change)
{
    d->failed |= json_array_append_new(d->changes, change) != 0;
}

static json_t *new_change(const struct diff *d, const char *what, const char *section, const char *id)
{
    char full[SECTION_MAX];
    snprintf(full, sizeof full, "%s%s", d->prefix, section);
    json_t *change = json_pack("{s:s, s:s}", "change", what, "section", full);
    if (id != NULL && json_object_set_new(change, "id", json_string(id)) != 0) {
        json_decref(change);
        return NULL;
    }
    return change;
}

static void put(struct diff *d, json_t *change, const char *name, json_t *value)
{
    d->failed |= value != NULL && json_object_set(change, name, value) != 0;
}

static void changed(struct diff *d, const struct place *at, json_t *old, json_t *new)
{
    json_t *change = new_change(d, "changed", at->section, at->id);
    d->failed |= json_object_set_new(change, "path", json_stringn(at->path, at->len)) != 0;
    put(d, change, "old", old);
    put(d, change, "new", new);
    add(d, change);
}

static void added_or_removed(struct diff *d, const char *what, const struct section *s, const char *id, json_t *value)
{
    json_t *change = new_change(d, what, s->path, id);
    put(d, change, "value", value);
    add(d, change);
}

/* Appends a step to the path and returns the length to go back to; what does not fit is cut, which no policy's own names need. */
static size_t PRINTF_LIKE(2, 3) enter(struct place *at, const char *fmt, ...)
{
    const size_t before = at->len;
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(at->path + before, sizeof at->path - before, fmt, args);
    va_end(args);
    if (n > 0)
        at->len = before + (size_t) n < sizeof at->path ? before + (size_t) n : sizeof at->path - 1;
    return before;
}

static const struct section *find_section(const struct place *at)
{
    for (size_t i = 0; at->id == NULL && i < N_SECTIONS; i++)
        if (str_eq(str_of(sections[i].path), (struct str){at->path, at->len}))
            return &sections[i];
    return NULL;
}

static void compare(struct diff *d, struct place *at, json_t *old, json_t *new);

/* --- parts with names --- */

/* "" where there is none, which compile does not let pass. */
static const char *part_id(json_t *parts, size_t i)
{
    const char *id = json_string_value(json_object_get(json_array_get(parts, i), "id"));
    return id != NULL ? id : "";
}

static json_t *find_part(json_t *parts, const char *id, size_t *index)
{
    for (size_t i = 0; i < json_array_size(parts); i++)
        if (strcmp(part_id(parts, i), id) == 0) {
            *index = i;
            return json_array_get(parts, i);
        }
    return NULL;
}

static void compare_part(struct diff *d, const struct section *s, const char *id, json_t *old, json_t *new)
{
    struct place at = {.section = s->path, .id = id};
    if (old == NULL)
        added_or_removed(d, "added", s, id, new);
    else if (new == NULL)
        added_or_removed(d, "removed", s, id, old);
    else
        compare(d, &at, old, new);
}

static void compare_maps(struct diff *d, const struct section *s, json_t *old, json_t *new)
{
    const char *name;
    json_t *part;
    json_object_foreach(old, name, part) compare_part(d, s, name, part, json_object_get(new, name));
    json_object_foreach(new, name, part) if (json_object_get(old, name) == NULL) compare_part(d, s, name, NULL, part);
}

/* Which of n places, given in the old order for each part in the new one, stay where they are: a longest increasing subsequence. */
static void mark_staying(const size_t *old_place, size_t n, bool *stays)
{
    uint16_t longest[POLICY_RULES_MAX] = {0}, before[POLICY_RULES_MAX] = {0};
    size_t last = 0;
    for (size_t i = 0; i < n; i++) {
        longest[i] = 1;
        before[i] = (uint16_t) i;
        for (size_t k = 0; k < i; k++)
            if (old_place[k] < old_place[i] && longest[k] + 1 > longest[i]) {
                longest[i] = (uint16_t) (longest[k] + 1);
                before[i] = (uint16_t) k;
            }
        if (longest[i] > longest[last])
            last = i;
        stays[i] = false;
    }
    for (size_t i = last; n > 0; i = before[i]) {
        stays[i] = true;
        if (before[i] == i)
            break;
    }
}

static void moved(struct diff *d, const struct section *s, json_t *new, size_t old_index, size_t new_index)
{
    json_t *change = new_change(d, "moved", s->path, part_id(new, new_index));
    d->failed |= json_object_set_new(change, "old", json_integer((json_int_t) old_index + 1)) != 0 ||
                 json_object_set_new(change, "new", json_integer((json_int_t) new_index + 1)) != 0 ||
                 json_object_set_new(change, "behind", new_index > 0 ? json_string(part_id(new, new_index - 1)) : json_null()) != 0;
    add(d, change);
}

static void compare_order(struct diff *d, const struct section *s, json_t *old, json_t *new)
{
    size_t old_place[POLICY_RULES_MAX], new_place[POLICY_RULES_MAX], n = 0;
    bool stays[POLICY_RULES_MAX];
    for (size_t i = 0; i < json_array_size(new) && n < POLICY_RULES_MAX; i++)
        if (find_part(old, part_id(new, i), &old_place[n]) != NULL)
            new_place[n++] = i;
    mark_staying(old_place, n, stays);
    for (size_t i = 0; i < n; i++)
        if (!stays[i])
            moved(d, s, new, old_place[i], new_place[i]);
}

static void compare_lists(struct diff *d, const struct section *s, json_t *old, json_t *new)
{
    size_t index;
    for (size_t i = 0; i < json_array_size(old); i++)
        compare_part(d, s, part_id(old, i), json_array_get(old, i), find_part(new, part_id(old, i), &index));
    for (size_t i = 0; i < json_array_size(new); i++)
        if (find_part(old, part_id(new, i), &index) == NULL)
            compare_part(d, s, part_id(new, i), NULL, json_array_get(new, i));
    if (s->ordered)
        compare_order(d, s, old, new);
}

/* --- everything else --- */

static void compare_member(struct diff *d, struct place *at, const char *name, json_t *old, json_t *new)
{
    const size_t before = enter(at, "%s%s", at->len > 0 ? "." : "", name);
    const struct section *s = find_section(at);
    if (s == NULL)
        compare(d, at, old, new);
    else if (s->is_list)
        compare_lists(d, s, old, new);
    else
        compare_maps(d, s, old, new);
    at->len = before;
}

static bool all_objects(const json_t *list)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) if (!json_is_object(item)) return false;
    return true;
}

/* A section that one side does not have is compared as if it were empty, so that its parts are added or removed one by one. */
static bool goes_deeper(const struct place *at, json_t *old, json_t *new)
{
    if (json_is_object(old) && json_is_object(new))
        return true;
    const bool is_whole_policy = at->id == NULL && (at->len == 0 || strncmp(at->path, "global", at->len) == 0 || strncmp(at->path, "auth", at->len) == 0);
    return is_whole_policy && (json_is_object(old) || json_is_object(new));
}

/* Recursion is as deep as the documents, which jx_parse bounds. */
static void compare(struct diff *d, struct place *at, json_t *old, json_t *new)
{
    const char *name;
    json_t *part;
    if (goes_deeper(at, old, new)) {
        json_object_foreach(old, name, part) compare_member(d, at, name, part, json_object_get(new, name));
        json_object_foreach(new, name, part) if (json_object_get(old, name) == NULL) compare_member(d, at, name, NULL, part);
    } else if (json_is_array(old) && json_array_size(old) == json_array_size(new) && all_objects(old) && all_objects(new)) {
        for (size_t i = 0; i < json_array_size(old); i++) {
            const size_t before = enter(at, "[%zu]", i);
            compare(d, at, json_array_get(old, i), json_array_get(new, i));
            at->len = before;
        }
    } else if (old == NULL || new == NULL ? old != new : !json_equal(old, new)) {
        changed(d, at, old, new);
    }
}

static void compare_policies(struct diff *d, json_t *old, json_t *new, const char *prefix)
{
    struct place at = {.section = ""};
    d->prefix = prefix;
    compare(d, &at, old, new);
}

static void compare_canaries(struct diff *d, json_t *old, json_t *new)
{
    static const char *const members[] = {"canary_percent", "canary_expires_at"};
    json_t *old_policy = json_object_get(old, "candidate"), *new_policy = json_object_get(new, "candidate");
    struct place at = {.section = ""};
    d->prefix = "";
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        compare_member(d, &at, members[i], json_object_get(old, members[i]), json_object_get(new, members[i]));
    if (old_policy != NULL && new_policy != NULL)
        compare_policies(d, old_policy, new_policy, "candidate.");
    else
        compare_member(d, &at, "candidate", old_policy, new_policy);
}

json_t *policy_diff(const json_t *old, const json_t *new)
{
    json_t *a = policy_canonical(old, FORMAT_AS_TEXT), *b = policy_canonical(new, FORMAT_AS_TEXT);
    struct diff d = {.changes = json_array(), .failed = a == NULL || b == NULL};
    if (!d.failed && d.changes != NULL) {
        json_t *a_active = json_object_get(a, "active"), *b_active = json_object_get(b, "active");
        compare_policies(&d, a_active != NULL ? a_active : a, b_active != NULL ? b_active : b, "");
        compare_canaries(&d, a_active != NULL ? a : NULL, b_active != NULL ? b : NULL);
    }
    json_decref(a);
    json_decref(b);
    if (d.failed) {
        json_decref(d.changes);
        return NULL;
    }
    return d.changes;
}
