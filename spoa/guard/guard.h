/* What an agent keeps of its clients from one policy to the next, in bounded memory, shared by all its workers. */
#ifndef SPOA_GUARD_GUARD_H
#define SPOA_GUARD_GUARD_H

#include "common/policy/policy.h"
#include "spoa/guard/backstop.h"
#include "spoa/guard/locales.h"

/* Of one policy; workers reach it by their lease. Parts are shared between the guards of policies that set them alike. */
struct guard {
    struct backstop *backstop;    /* NULL: the policy sets none */
    struct locale_cache *locales; /* NULL: the policy has no locale */
    /* The publisher's alone. */
    size_t *n_backstop, *n_locales;       /* guards that share them */
    const struct locale_matcher *matcher; /* the policy's, which locales are remembered of */
};

/* All of these: publisher's thread only. before: the guard of the policy that was published last, NULL: none; what both policies set alike is
 * taken over with all that it knows, what is set otherwise begins anew. before may be gone before out
 * is; p must be there as long as out. False: no memory; nothing has changed. */
MUSTUSE bool guard_new(struct guard **out, const struct policy *p, const struct guard *before, struct err *e);
/* Frees the parts that no other guard shares. Nobody may use it any more. */
void guard_free(struct guard **g);

#endif
