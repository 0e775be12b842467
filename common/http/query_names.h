/* Names of a query's parameters, for logs: what routes are grouped by, without anything that could be a secret. */
#ifndef COMMON_HTTP_QUERY_NAMES_H
#define COMMON_HTTP_QUERY_NAMES_H

#include "common/base/str.h"

enum {
    QUERY_NAMES_MAX = 32,
    QUERY_NAME_LEN_MAX = 64,
    QUERY_NAMES_PAIRS_MAX = 256, /* looked at; those behind them are counted as dropped */
};

struct query_names {
    struct str items[QUERY_NAMES_MAX]; /* sorted, each once; of the query, or of decoded */
    size_t n;
    uint64_t n_dropped;
    char decoded[QUERY_NAMES_MAX][QUERY_NAME_LEN_MAX];
};

/* query: without its '?'; pairs are found and decoded as query_parse does, and what is none there is none here. Dropped are pairs without '=' (which can
 * be a bare token), names that do not match [A-Za-z0-9_.[\]-]{1,64}, and each pair whose name is not among the first QUERY_NAMES_MAX different
 * ones. Takes no memory; out lives no longer than query and itself, and is not to be copied. */
void query_names(struct str query, struct query_names *out);

#endif
