/* Names and values in the order sent, as queries and cookies hold them. */
#ifndef COMMON_HTTP_PAIRS_H
#define COMMON_HTTP_PAIRS_H

#include "common/base/str.h"

struct pair {
    struct str name, value;
};

struct pairs {
    const struct pair *items;
    size_t n;
};

#endif
