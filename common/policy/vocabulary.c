/* Names of response kinds, decisions, cohorts and signature algorithms, from their tables. */
#include "common/policy/policy.h"

const char *kind_name(enum kind k)
{
    static const char *const names[] = {
#define KIND_ROW(id, name, status, meaning) name,
#include "schemas/kinds.def"
#undef KIND_ROW
    };
    return k < KIND_N ? names[k] : "unknown";
}

int kind_status(enum kind k)
{
    static const int statuses[] = {
#define KIND_ROW(id, name, status, meaning) status,
#include "schemas/kinds.def"
#undef KIND_ROW
    };
    return k < KIND_N ? statuses[k] : 0;
}

const char *decision_name(enum decision d)
{
    static const char *const names[] = {
#define DECISION_ROW(id, name, meaning) name,
#include "schemas/decisions.def"
#undef DECISION_ROW
    };
    return d < DECISION_N ? names[d] : "unknown";
}

const char *cohort_name(enum cohort c)
{
    return c == COHORT_ACTIVE ? "active" : "candidate";
}

const char *jws_algorithm_name(enum jws_algorithm a)
{
    static const char *const names[] = {
#define ALGORITHM_ROW(id, name) name,
#include "schemas/jws_algorithms.def"
#undef ALGORITHM_ROW
    };
    return a < JWS_N ? names[a] : "unknown";
}
