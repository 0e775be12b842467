/* What other readers than expressions ask of a request: the same values, the first of each. */
#include "common/expr/values_priv.h"

static bool first_text(const struct texts *texts, struct str *value)
{
    if (texts->n == 0)
        return false;
    *value = texts->items[0];
    return true;
}

static bool first_pair(const struct pairs *pairs, struct str name, struct str *value)
{
    for (size_t i = 0; i < pairs->n; i++)
        if (str_eq(pairs->items[i].name, name)) {
            *value = pairs->items[i].value;
            return true;
        }
    return false;
}

bool expr_facts_header(const struct expr_facts *f, struct str name, struct str *value)
{
    return facts_header_readable(f, name) && headers_get(facts_headers(f), name, value);
}

bool expr_facts_argument(const struct expr_facts *f, struct str name, struct str *value)
{
    const struct pairs *pairs;

    return f->lazy != NULL && facts_arguments(f, &pairs) && first_pair(pairs, name, value);
}

bool expr_facts_cookie(const struct expr_facts *f, struct str name, struct str *value)
{
    const struct pairs *pairs;

    return f->lazy != NULL && facts_cookies(f, &pairs) && first_pair(pairs, name, value);
}

bool expr_facts_claim(const struct expr_facts *f, struct str name, struct str *value)
{
    struct texts texts;

    facts_claim(f, name, &texts);
    return first_text(&texts, value);
}

/* Those whose source the deployment does not have are left out: what is not observed is no hint. */
static uint32_t observed_signals(const struct expr_facts *f)
{
    uint32_t observed = 0;

    for (size_t i = 0; i < SIGNAL_N; i++) {
        enum expr_source source = signal_info((enum signal_id)i)->source;

        if (f->deployment == NULL || !expr_source_is_viewer(source) || (f->deployment->sources >> source & 1) != 0)
            observed |= UINT32_C(1) << i;
    }
    return observed & signals_of(f);
}

uint32_t expr_facts_signals(const struct expr_facts *f)
{
    if (f->lazy == NULL)
        return observed_signals(f);
    if (!f->lazy->has_signals)
        f->lazy->signals = observed_signals(f);
    f->lazy->has_signals = true;
    return f->lazy->signals;
}
