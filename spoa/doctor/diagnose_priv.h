/* The parts of a diagnosis: agents one by one, and the way of the request. */
#ifndef SPOA_DOCTOR_DIAGNOSE_PRIV_H
#define SPOA_DOCTOR_DIAGNOSE_PRIV_H

#include "spoa/doctor/diagnose.h"

void doctor_say(struct doctor_report *out, const char *name, bool ok, const char *fmt, ...) PRINTF_LIKE(4, 5);
void diagnose_agent(const struct doctor_evidence *e, size_t i, struct doctor_report *out);
void diagnose_proof(const struct doctor_evidence *e, struct doctor_report *out);
/* HAProxy itself answered the question for /readyz, whatever it said. */
bool health_is_haproxys(const struct doctor_evidence *e);
/* ... namely that no agent passes its check. */
bool health_has_no_agent(const struct doctor_evidence *e);

#endif
