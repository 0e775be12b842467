/* What a tree reads, and whom it leaves out by what the client chooses. */
#include "common/expr/expr_priv.h"

/* negated: an odd number of negations stands around x. Recursion ends: a tree is at most EXPR_NESTING_MAX groups deep. */
static void collect(const struct expr *x, bool negated, struct expr_traits *out)
{
    const struct field_info *info = field_info(x->condition.field);

    if (x->is_group) {
        for (size_t i = 0; i < x->group.n_rules; i++)
            collect(x->group.rules[i], negated != x->group.negated, out);
        return;
    }
    negated = negated != operator_info(x->condition.op)->negated;
    out->reads_client = out->reads_client || info->client;
    out->excludes_client = out->excludes_client || (info->client && negated);
    out->reads_claims = out->reads_claims || info->source == EXPR_SOURCE_TOKEN;
    out->reads_locale = out->reads_locale || info->source == EXPR_SOURCE_LOCALE;
    out->reads_signals = out->reads_signals || x->condition.field == FIELD_CLIENT_SIGNALS;
    out->reads_verified_bot = out->reads_verified_bot || x->condition.field == FIELD_CLIENT_VERIFIED_BOT;
}

void expr_traits(const struct expr *x, struct expr_traits *out)
{
    *out = (struct expr_traits){0};
    collect(x, false, out);
}
