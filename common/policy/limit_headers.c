/* The response headers that tell a client its limits. */
#include "common/policy/limits_priv.h"

static const struct str policy_name = {"ratelimit-policy", sizeof "ratelimit-policy" - 1};
static const struct str limit_name = {"ratelimit", sizeof "ratelimit" - 1};

static void put_item(struct buf *b, struct str id, const char *first, uint64_t first_value, const char *second, uint64_t second_value)
{
    if (b->len > 0)
        buf_put_cstr(b, ", ");
    buf_put_byte(b, '"');
    buf_put(b, id);
    buf_put_cstr(b, first);
    buf_put_u64(b, first_value);
    buf_put_cstr(b, second);
    buf_put_u64(b, second_value);
}

bool policy_limit_headers(const struct limit_report *reports, size_t n, struct arena *a, struct response_edit *out)
{
    struct buf policies, limits;

    if (n == 0)
        return true;
    if (!arena_take_buf(a, n * LIMIT_ITEM_MAX, &policies) || !arena_take_buf(a, n * LIMIT_ITEM_MAX, &limits))
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct rate_rule *rule = reports[i].rule;
        put_item(&policies, rule->id, "\";q=", rule->params.limit, ";w=", rate_seconds_up(rule->params.period_ms));
        put_item(&limits, rule->id, "\";r=", reports[i].verdict.remaining, ";t=", rate_seconds_up(reports[i].verdict.reset_ms));
    }
    response_edit_delete(out, policy_name);
    response_edit_delete(out, limit_name);
    response_edit_add(out, policy_name, buf_str(&policies));
    response_edit_add(out, limit_name, buf_str(&limits));
    return true;
}
