/* CONFIG: the config rules that match set this request's settings. */
#include "spoa/request/request.h"

/* For struct expr_facts: once, when the first reader asks. */
static struct str choose_locale(void *ctx, struct str accept_language)
{
    struct request *r = ctx;
    const struct locale_matcher *m = r->policy->locale.matcher;
    bool hit;
    size_t chosen = locale_cache_choose(r->lease->guard->locales, m, accept_language, clock_mono_us(r->context->settings.clock) / 1000, &hit);
    counter_add(&r->context->counters.plain[hit ? METRIC_LOCALE_HIT : METRIC_LOCALE_MISS], 1);
    return locale_tag(m, chosen);
}

enum step_result step_config(struct request *r)
{
    if (!policy_config(r->policy, &r->view, &r->arena, &r->settings, &r->config_hits))
        return request_fail(r, METRIC_INTERNAL);
    r->has_settings = true;
    if (r->settings.locale) {
        r->view.facts.locale = choose_locale;
        r->view.facts.locale_ctx = r;
    }
    return STEP_NEXT;
}
