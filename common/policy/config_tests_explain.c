/* Why a rule is missing in a result, or stands there, and which rule set a setting or the block: the condition that decided it, as a sentence. */
#include "common/policy/config_tests_priv.h"

/* A condition and a value are cut in sentences. */
enum { SENTENCE_MAX = 1024, PART_MAX = 200 };

static bool has_text(const json_t *list, const json_t *text)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), (json_t *) (uintptr_t) text))
            return true;
    return false;
}

static const json_t *find_entry(const json_t *explained, const char *list, const json_t *id)
{
    const json_t *entries = json_object_get(json_object_get(explained, "explain"), list);

    for (size_t i = 0; i < json_array_size(entries); i++)
        if (json_equal(json_object_get(json_array_get(entries, i), "id"), (json_t *) (uintptr_t) id))
            return json_array_get(entries, i);
    return NULL;
}

static void put_cut(struct buf *b, const char *text, size_t len)
{
    struct str cut = str_cut_utf8((struct str){text, len}, PART_MAX);

    buf_put(b, cut);
    if (cut.len < len)
        buf_put_cstr(b, "...");
}

static void put_value(struct buf *b, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

    if (!value || json_is_null(value))
        buf_put_cstr(b, "nothing");
    else if (text)
        put_cut(b, text, strlen(text));
    else
        b->full = true; /* no memory: a sentence without it would be another one */
    free(text);
}

/* The condition that made the tree what it is: in a group the first that came out as the group needed. NULL: the tree has none. *more: others had to
 * come out the same. */
static const json_t *deciding(const json_t *tree, bool *more)
{
    const json_t *rules;

    while ((rules = json_object_get(tree, "rules")) != NULL) {
        const json_t *result = json_object_get(tree, "result"), *found = NULL;
        bool negated = json_is_true(json_object_get(tree, "not"));
        bool is_and = strcmp(json_string_value(json_object_get(tree, "combinator")), "and") == 0;
        bool inner = json_is_true(result) != negated;
        for (size_t i = 0; i < json_array_size(rules) && !found; i++) {
            const json_t *r = json_object_get(json_array_get(rules, i), "result");
            if (json_is_boolean(result) ? json_is_boolean(r) && json_is_true(r) == inner : json_is_string(r))
                found = json_array_get(rules, i);
        }
        *more = *more || (json_is_boolean(result) && is_and == inner && json_array_size(rules) > 1);
        tree = found;
    }
    return tree;
}

static void put_condition(struct buf *b, const json_t *entry)
{
    bool more = false;
    const json_t *leaf = deciding(json_object_get(entry, "condition"), &more), *result = json_object_get(leaf, "result");
    const json_t *text = json_object_get(leaf, "text");

    if (!leaf) {
        buf_put_cstr(b, "its expression is true for every request");
        return;
    }
    put_cut(b, json_string_value(text), json_string_length(text));
    buf_put_cstr(b, json_is_true(result) ? " is true" : json_is_false(result) ? " is false" : " cannot be judged");
    buf_put_cstr(b, ": the request has ");
    put_value(b, json_object_get(leaf, "value"));
    if (more)
        buf_put_cstr(b, json_is_true(result) ? "; its other conditions hold too" : "; none of the alternatives holds");
}

/* Why a limit that matches does not count the request, by the reason of its explanation. */
static const struct {
    const char *reason, *sentence;
} limit_reasons[] = {
    {"missing_key", "it matches, but a part of its key has no value in this request"},
    {"missing_value", "it matches, but the request has no value of what it tells apart (distinct_of)"},
    {"counts_answers", "it counts answers (count_statuses), which a simulation does not have"},
    {"cap", "it matches, but a request counts in at most 5 limits beside those of all requests, and others come first"},
    {"rejected", "it matches, but the request is answered 400 because another limit's key has no value"},
};
_Static_assert(POLICY_LIMITED_RULES_MAX == 5, "as the sentence says");

static const char *limit_sentence(const json_t *reason)
{
    for (size_t i = 0; json_is_string(reason) && i < sizeof limit_reasons / sizeof limit_reasons[0]; i++)
        if (strcmp(json_string_value(reason), limit_reasons[i].reason) == 0)
            return limit_reasons[i].sentence;
    return NULL;
}

static void put_missing(struct buf *b, const json_t *entry, const json_t *rejected)
{
    const char *of_limit = limit_sentence(json_object_get(entry, "reason"));

    if (!entry && json_is_string(rejected)) {
        buf_printf(b, "the request was answered before these rules (rejected: %s), or there is no such rule", json_string_value(rejected));
    } else if (!entry) {
        buf_put_cstr(b, "there is no such rule in this phase");
    } else if (json_is_false(json_object_get(entry, "enabled"))) {
        buf_put_cstr(b, "it is disabled");
    } else if (of_limit) {
        buf_put_cstr(b, of_limit);
    } else {
        buf_put_cstr(b, "it does not match: ");
        put_condition(b, entry);
    }
}

static bool add_rule(json_t *rules, json_t *id, struct buf *sentence)
{
    json_t *rule = sentence->full ? NULL : json_pack("{s:O, s:o}", "id", id, "reason", simulate_text(buf_str(sentence)));

    return json_array_append_new(rules, rule) == 0;
}

static json_t *deciding_rules(const json_t *failure, const char *list, const json_t *explained)
{
    const json_t *want = json_object_get(failure, "want"), *got = json_object_get(failure, "got");
    json_t *rules = json_array();
    char storage[SENTENCE_MAX];
    struct buf b;
    bool ok = true;

    for (size_t i = 0; i < json_array_size(want); i++) {
        json_t *id = json_array_get(want, i);
        if (has_text(got, id))
            continue;
        buf_init(&b, storage, sizeof storage);
        put_missing(&b, find_entry(explained, list, id), json_object_get(explained, "rejected"));
        ok = add_rule(rules, id, &b) && ok;
    }
    for (size_t i = 0; i < json_array_size(got); i++) {
        json_t *id = json_array_get(got, i);
        if (has_text(want, id))
            continue;
        buf_init(&b, storage, sizeof storage);
        buf_put_cstr(&b, "it matches: ");
        put_condition(&b, find_entry(explained, list, id));
        ok = add_rule(rules, id, &b) && ok;
    }
    return simulate_finished(rules, ok);
}

/* The id of the rule that set what a failure at path is about; NULL: none did. */
static json_t *setter(const char *path, const json_t *explained)
{
    const json_t *set_by = json_object_get(json_object_get(explained, "explain"), "set_by"), *rejected = json_object_get(explained, "rejected");
    const struct str settings = STR("/settings/"), responses = STR("/settings/responses/"), at = str_of(path);

    if (strcmp(path, "/rejected") == 0 || strcmp(path, "/status") == 0)
        return json_is_string(rejected) && strcmp(json_string_value(rejected), "block") == 0 ? json_object_get(set_by, "block") : NULL;
    if (str_starts(at, responses))
        return json_object_get(json_object_get(set_by, "responses"), path + responses.len);
    return str_starts(at, settings) ? json_object_get(set_by, path + settings.len) : NULL;
}

static json_t *setting_rule(const char *path, json_t *id, const json_t *explained)
{
    json_t *rules = json_array();
    char storage[SENTENCE_MAX];
    struct buf b;

    buf_init(&b, storage, sizeof storage);
    buf_put_cstr(&b, str_starts(str_of(path), STR("/settings/")) ? "it sets this: " : "it blocks: ");
    put_condition(&b, find_entry(explained, "config_rules", id));
    return simulate_finished(rules, add_rule(rules, id, &b));
}

bool config_tests_explain(json_t *failures, const json_t *explained)
{
    json_t *failure;
    bool ok = true;
    size_t i;

    json_array_foreach(failures, i, failure)
    {
        const char *path = json_string_value(json_object_get(failure, "path"));
        json_t *id = setter(path, explained);

        if (json_is_string(id))
            ok = simulate_put(failure, "rules", setting_rule(path, id, explained)) && ok;
        for (size_t k = 0; config_tests_lists[k]; k++)
            if (strcmp(path + 1, config_tests_lists[k]) == 0)
                ok = simulate_put(failure, "rules", deciding_rules(failure, config_tests_lists[k], explained)) && ok;
    }
    return ok;
}
