/* What a test expects: which members and values can be expected at all. */
#include "common/policy/compile_priv.h"
#include "common/policy/config_tests_priv.h"
#include "common/policy/members.h"

const char *const config_tests_lists[] = {"config_rules", "rate_limit_rules", "request_header_rules", NULL};

static void check_texts(const struct jx *list)
{
    struct str text;

    for (size_t i = 0; i < jx_array_len(list); i++) {
        struct jx item = jx_item(list, i);
        jx_str(&item, &text);
    }
}

static void check_names(const struct jx *list)
{
    struct str name;

    for (size_t i = 0; i < jx_array_len(list); i++) {
        struct jx item = jx_item(list, i);
        if (jx_str(&item, &name))
            compile_check_name(&item, name);
    }
}

/* A text or null. */
static void check_nullable(const struct jx *j)
{
    struct str text;

    if (jx_has(j))
        jx_str(j, &text);
}

static void check_rejected(const struct jx *j)
{
    static const char *const names[] = {"path", "method", "identity", "block", "auth", "missing_key", "preflight", NULL};
    int i;

    if (jx_has(j))
        jx_enum(j, names, &i);
}

/* Of an object only what it lists is compared. False: there is none. */
static bool take_object(const struct jx *j)
{
    if (!j->value || !jx_is_object(j))
        return false;
    if (json_object_size(j->value) == 0)
        jx_fault(j, ERR_BAD_VALUE, "lists nothing, so that it cannot fail: list what must come, null for what must be absent, or leave it out");
    return true;
}

static void check_responses(const struct jx *responses)
{
    const char *kinds[KIND_N + 1] = {NULL};
    void *iter = NULL;
    struct jx member;
    struct str name;

    if (!take_object(responses))
        return;
    for (int k = 0; k < KIND_N; k++)
        kinds[k] = kind_name((enum kind) k);
    jx_only(responses, kinds);
    while (compile_next_member(responses, &iter, &member))
        if (jx_str(&member, &name))
            compile_check_name(&member, name);
}

static void check_settings(const struct jx *settings)
{
    static const char *const names[] = {"auth_mode",        "auth_accepted",     "cors_policy",       "locale", "responses", "body_limit",
                                        "upstream_timeout", "body_read_timeout", "ratelimit_headers", "block",  NULL};
    static const char *const auth[] = {"none", "optional", "required", NULL};
    static const char *const block[] = {"none", "log", "block", NULL};
    int i;
    bool flag;
    int64_t number;
    uint64_t ms;

    if (!take_object(settings))
        return;
    jx_only(settings, names);
    struct jx mode = jx_member(settings, "auth_mode"), accepted = jx_member(settings, "auth_accepted"), cors = jx_member(settings, "cors_policy"),
              locale = jx_member(settings, "locale"), responses = jx_member(settings, "responses"), body_limit = jx_member(settings, "body_limit"),
              upstream = jx_member(settings, "upstream_timeout"), body_read = jx_member(settings, "body_read_timeout"),
              headers = jx_member(settings, "ratelimit_headers"), blocked = jx_member(settings, "block");
    jx_enum(&mode, auth, &i);
    check_names(&accepted);
    check_nullable(&cors);
    jx_bool(&locale, &flag);
    check_responses(&responses);
    jx_int(&body_limit, 0, INT64_MAX, &number);
    jx_duration_ms(&upstream, 0, UINT64_MAX, &ms);
    jx_duration_ms(&body_read, 0, UINT64_MAX, &ms);
    jx_bool(&headers, &flag);
    jx_enum(&blocked, block, &i);
}

/* Whether an earlier member of the same object has this name in another case. */
static bool is_repeated(const struct jx *member)
{
    void *iter = NULL;
    struct jx other;

    while (compile_next_member(member->parent, &iter, &other) && !str_eq(other.key, member->key))
        if (str_eq_nocase(other.key, member->key))
            return true;
    return false;
}

static void check_headers(const struct jx *headers)
{
    void *iter = NULL;
    struct jx member;
    struct str value;

    if (!take_object(headers))
        return;
    while (compile_next_member(headers, &iter, &member)) {
        if (!header_name_ok(member.key))
            jx_fault(&member, ERR_BAD_VALUE, "no header name");
        else if (is_repeated(&member))
            jx_fault(&member, ERR_DUPLICATE, "this header is expected above already: its case makes no difference");
        if (json_is_array(member.value))
            check_texts(&member);
        else if (jx_has(&member))
            jx_str(&member, &value);
    }
}

void config_tests_check_expect(const struct jx *expect)
{
    int64_t number;

    if (!expect->value)
        jx_fault(expect, ERR_MISSING, "is required: what must come of the request");
    if (!expect->value || !jx_is_object(expect))
        return;
    if (json_object_size(expect->value) == 0)
        jx_fault(expect, ERR_BAD_VALUE, "expects nothing, so that the test cannot fail: list at least one key of what simulate prints");
    policy_only(expect, OBJECT_TEST_EXPECT);
    struct jx rejected = jx_member(expect, "rejected"), status = jx_member(expect, "status"), settings = jx_member(expect, "settings"),
              upstream = jx_member(expect, "upstream_headers"), response = jx_member(expect, "response_headers"), locale = jx_member(expect, "locale");
    check_rejected(&rejected);
    jx_int(&status, 0, 599, &number);
    for (size_t i = 0; config_tests_lists[i]; i++) {
        struct jx list = jx_member(expect, config_tests_lists[i]);
        check_names(&list);
    }
    check_settings(&settings);
    check_headers(&upstream);
    check_headers(&response);
    check_nullable(&locale);
}
