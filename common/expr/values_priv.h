/* Inside common/expr: what is extracted from a request on first use. */
#ifndef COMMON_EXPR_VALUES_PRIV_H
#define COMMON_EXPR_VALUES_PRIV_H

#include "common/expr/expr_priv.h"
#include "common/http/pairs.h"

struct expr_lazy {
    struct arena *arena;
    bool has_arguments, has_cookies, has_signals, has_forwarded_for, has_full_uri, has_locale;
    uint32_t signals;
    struct pairs arguments, cookies;
    struct str forwarded_for, full_uri, user_agent, referer, locale;
};

const struct headers *facts_headers(const struct expr_facts *f); /* never NULL */
bool facts_header_readable(const struct expr_facts *f, struct str name);
void facts_claim(const struct expr_facts *f, struct str name, struct texts *out);
/* Need f->lazy. False: memory is refused. */
MUSTUSE bool facts_arguments(const struct expr_facts *f, const struct pairs **out);
MUSTUSE bool facts_cookies(const struct expr_facts *f, const struct pairs **out);

/* The names that a request has of a keyed field, whether rules may read them or not. */
struct names {
    const char *items; /* structs that begin with the name */
    size_t stride, n;
};
/* False: memory is refused. */
MUSTUSE bool facts_names(const struct expr_facts *f, enum field field, struct names *out);
static inline struct str name_at(const struct names *names, size_t i)
{
    struct str name;

    memcpy(&name, names->items + i * names->stride, sizeof(name));
    return name;
}

/* Every signal that holds, whatever the deployment has sources for (signals.c). */
uint32_t signals_of(const struct expr_facts *f);

#endif
