/* What an envelope holds beside its policies. */
#include "common/base/parse.h"
#include "common/net/addr.h"
#include "common/policy/compile_priv.h"

enum { KEY_SETS_MAX = 2 * POLICY_ISSUERS_MAX, KEY_SET_MAX_BYTES = 64 * 1024, BOT_SOURCES_MAX = 32, BOT_PREFIXES_MAX = 65536 };

static void check_time(const struct jx *j)
{
    struct str text;
    int64_t ms;

    if (jx_str(j, &text) && !parse_time_ms(text, &ms))
        jx_fault(j, ERR_BAD_VALUE, "must be a time such as \"2026-01-31T12:00:00Z\" (RFC 3339)");
}

/* A share in hundredths of a percent, however it is written. */
static void check_percent(const struct jx *j)
{
    if (!j->value)
        return;
    if (!json_is_number(j->value)) {
        jx_fault(j, ERR_BAD_TYPE, "must be a number from 0 to 100");
        return;
    }
    double percent = json_number_value(j->value), hundredths = percent * 100;
    if (!(percent >= 0 && percent <= 100)) {
        jx_fault(j, ERR_BAD_VALUE, "must be a number from 0 to 100");
        return;
    }
    double nearest = (double) (int64_t) (hundredths + 0.5);
    /* Two decimals are rarely exact in binary: the nearest double is what the text meant. */
    if (nearest / 100 != percent)
        jx_fault(j, ERR_BAD_VALUE, "must have at most two decimals");
}

static void check_canary(struct compile *c, const struct jx *root)
{
    struct jx candidate = jx_member(root, "candidate"), percent = jx_member(root, "canary_percent"), expires_at = jx_member(root, "canary_expires_at");
    const struct jx *belong[] = {&percent, &expires_at};

    check_percent(&percent);
    check_time(&expires_at);
    for (size_t i = 0; i < sizeof belong / sizeof belong[0]; i++) {
        if (candidate.value && !belong[i]->value)
            jx_fault(belong[i], ERR_MISSING, "is required with a candidate");
        if (!candidate.value && belong[i]->value)
            jx_fault(belong[i], ERR_CONFLICT, "there is no candidate that it could be about: add one, or leave it out");
    }
    if (candidate.value)
        compile_unsupported(c, &candidate, "canaries");
}

static void check_jwks(const struct jx *j)
{
    if (!compile_need_object(j))
        return;
    struct jx keys = jx_member(j, "keys");
    if (!keys.value)
        jx_fault(&keys, ERR_MISSING, "is required: the list of keys");
    jx_array_len(&keys);
    size_t n_bytes = json_dumpb(j->value, NULL, 0, JSON_COMPACT);
    if (n_bytes > KEY_SET_MAX_BYTES)
        jx_fault(j, ERR_LIMIT_EXCEEDED, "the keys take %zu bytes; at most %d are allowed", n_bytes, KEY_SET_MAX_BYTES);
}

/* How many entries of a list are to be looked at. */
static size_t n_entries(const struct jx *list, size_t max)
{
    size_t n = jx_array_len(list);

    if (n <= max)
        return n;
    jx_fault(list, ERR_LIMIT_EXCEEDED, "%zu entries; at most %zu are allowed", n, max);
    return max;
}

static void need_https_url(const struct jx *j)
{
    struct str url;

    if (!j->value)
        jx_fault(j, ERR_MISSING, "is required: an https URL");
    compile_https_url(j, &url);
}

static void check_keys(const struct jx *list)
{
    for (size_t i = 0, n = n_entries(list, KEY_SETS_MAX); i < n; i++) {
        struct jx set = jx_item(list, i);
        struct str id;
        if (!jx_is_object(&set))
            continue;
        policy_only(&set, OBJECT_KEYS);
        struct jx issuer_id = jx_member(&set, "issuer_id"), url = jx_member(&set, "jwks_url"), fetched_at = jx_member(&set, "fetched_at"),
                  jwks = jx_member(&set, "jwks");
        if (jx_need_str(&issuer_id, &id))
            compile_check_name(&issuer_id, id);
        need_https_url(&url);
        if (!fetched_at.value)
            jx_fault(&fetched_at, ERR_MISSING, "is required: a time (RFC 3339)");
        check_time(&fetched_at);
        check_jwks(&jwks);
    }
}

static void check_prefixes(const struct jx *list)
{
    struct addr_range range;

    if (!list->value)
        jx_fault(list, ERR_MISSING, "is required: a list of address ranges");
    for (size_t i = 0, n = n_entries(list, BOT_PREFIXES_MAX); i < n; i++) {
        struct jx prefix = jx_item(list, i);
        struct str text;
        if (jx_str(&prefix, &text) && (str_find_byte(text, '/') == SIZE_MAX || !addr_parse_cidr(text, &range)))
            jx_fault(&prefix, ERR_BAD_VALUE, "\"%.*s\" is no address range such as \"192.0.2.0/24\" or \"2001:db8::/32\"",
                     STR_ARG(str_cut_utf8(text, 64)));
    }
}

static void check_verified_bots(const struct jx *list)
{
    for (size_t i = 0, n = n_entries(list, BOT_SOURCES_MAX); i < n; i++) {
        struct jx entry = jx_item(list, i);
        if (!jx_is_object(&entry))
            continue;
        policy_only(&entry, OBJECT_VERIFIED_BOTS);
        struct jx source = jx_member(&entry, "source"), prefixes = jx_member(&entry, "prefixes");
        need_https_url(&source);
        check_prefixes(&prefixes);
    }
}

static size_t count_prefixes(const json_t *list)
{
    const json_t *entry;
    size_t i, n = 0;

    json_array_foreach(list, i, entry) n += json_array_size(json_object_get(entry, "prefixes"));
    return n;
}

void compile_verified_bots(struct compile *c, const struct jx *root)
{
    const json_t *list = json_object_get(root->value, "verified_bots"), *entry, *prefix;
    struct addr_range *ranges = ARENA_NEW_N(&c->policy->arena, count_prefixes(list), struct addr_range);
    size_t i, j, n = 0;

    if (!ranges) {
        compile_no_memory(root);
        return;
    }
    json_array_foreach(list, i, entry)
        json_array_foreach(json_object_get(entry, "prefixes"), j, prefix)
            n += addr_parse_cidr((struct str){json_string_value(prefix), json_string_length(prefix)}, &ranges[n]);
    addr_set_build(&c->policy->verified_bots, ranges, n);
}

void compile_envelope(struct compile *c, const struct jx *root)
{
    struct jx exported_at = jx_member(root, "exported_at"), fleet_size = jx_member(root, "fleet_size"), keys = jx_member(root, "keys"),
              verified_bots = jx_member(root, "verified_bots");
    int64_t n_edges;

    check_time(&exported_at);
    check_canary(c, root);
    jx_int(&fleet_size, 0, INT32_MAX, &n_edges);
    check_keys(&keys);
    check_verified_bots(&verified_bots);
}
