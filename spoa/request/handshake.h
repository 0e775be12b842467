/* What our own TLS handshake says about the client: fingerprints of its hello, its certificate. */
#ifndef SPOA_REQUEST_HANDSHAKE_H
#define SPOA_REQUEST_HANDSHAKE_H

#include "common/expr/expr.h"
#include "spoa/request/request.h"

/* Fills ja3, ja4 and cert of out and clears the rest. What is not known, or not in the form that the contract says, is absent. Certificate texts are
 * borrowed from args, fingerprints are in a. A worker's thread. False: no memory. */
MUSTUSE bool handshake_facts(const struct request_args *args, struct arena *a, struct expr_viewer *out);

#endif
