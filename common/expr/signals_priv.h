/* What client.signals looks at of a request: some headers, and what its User-Agent says. */
#ifndef COMMON_EXPR_SIGNALS_PRIV_H
#define COMMON_EXPR_SIGNALS_PRIV_H

#include "common/expr/values_priv.h"

enum { SCANNED_MAX = 512 };

/* Kinds of words, as bits. */
enum kind { KIND_OTHER = 0, KIND_TOOL = 1, KIND_SCANNER = 2, KIND_CRAWLER = 4, KIND_HEADLESS = 8 };

struct browser {
    struct str token;
    unsigned oldest, fetch_metadata, client_hints; /* versions: major * 100 + minor */
};

/* The headers that are looked for, all in one pass. */
enum wanted {
    USER_AGENT,
    ACCEPT,
    ACCEPT_LANGUAGE,
    ACCEPT_ENCODING,
    SEC_FETCH_SITE,
    SEC_CH_UA,
    SEC_CH_UA_PLATFORM,
    N_WANTED,
};

/* What the rows' functions look at. */
struct client {
    const struct expr_facts *facts;
    const struct header *headers[N_WANTED]; /* NULL: not sent */
    char lower[SCANNED_MAX];
    struct str user_agent; /* lower case, cut */
    unsigned kinds;
    const struct browser *browser; /* NULL: claims to be none, or says itself that it is no person's */
    unsigned version;              /* major * 100 + minor */
};

void signals_client_read(const struct expr_facts *f, struct client *c);

/* Most words differ in their first bytes: a call to compare them costs more than doing it. */
static inline bool begins_with(struct str s, struct str word)
{
    size_t i = 0;

    if (s.len < word.len)
        return false;
    while (i < word.len && s.p[i] == word.p[i])
        i++;
    return i == word.len;
}

#endif
