/* The sizes that the SPOE contract allows (schemas/wire.def): what a policy may produce, and what a request can have, is bounded by them. */
#ifndef COMMON_POLICY_WIRE_MAX_PRIV_H
#define COMMON_POLICY_WIRE_MAX_PRIV_H

enum {
#define WIRE_ARG(id, name, type, max_len, need, fetch) WIRE_ARG_##id##_MAX = (max_len),
#define WIRE_VAR(id, scope, name, type, max_len, meaning) WIRE_VAR_##id##_MAX = (max_len),
#include "schemas/wire.def"
};

#endif
