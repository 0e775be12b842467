/* Names of response kinds and decisions, from their tables. */
#include "common/policy/policy.h"

const char *kind_name(enum kind k)
{
    static const char *const names[] = {
#define KIND_ROW(id, name, status) name,
#include "schemas/kinds.def"
#undef KIND_ROW
    };
    return k < KIND_N ? names[k] : "unknown";
}

int kind_status(enum kind k)
{
    static const int statuses[] = {
#define KIND_ROW(id, name, status) status,
#include "schemas/kinds.def"
#undef KIND_ROW
    };
    return k < KIND_N ? statuses[k] : 0;
}

const char *decision_name(enum decision d)
{
    static const char *const names[] = {
#define DECISION_ROW(id, name) name,
#include "schemas/decisions.def"
#undef DECISION_ROW
    };
    return d < DECISION_N ? names[d] : "unknown";
}
