/* Warnings about filters, and about rules of each phase. */
#ifndef COMMON_POLICY_WARNINGS_PRIV_H
#define COMMON_POLICY_WARNINGS_PRIV_H

#include "common/policy/compile_priv.h"

/* Of an allowlist at j, in force, that leaves out what most upstreams need. */
void compile_forward_warning(struct compile *c, const struct jx *j, const struct forward_filter *filter);

/* Rules as the warnings see them, once those that are enabled are compiled. index: the place in the document. */
struct rate_note {
    const struct rate_rule *rule;
    const struct expr *x;
    size_t index;
};
struct header_note {
    const struct header_rule *rule;
    size_t index;
};
void compile_rate_warnings(struct compile *c, const struct jx *rules, const struct rate_note *notes, size_t n);
void compile_header_warnings(struct compile *c, const struct jx *rules, const struct header_note *notes, size_t n);

#endif
