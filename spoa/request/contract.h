/* The contract version of schemas/wire.def, for the two ends of a request: DECODE and the ACK. */
#ifndef SPOA_REQUEST_CONTRACT_H
#define SPOA_REQUEST_CONTRACT_H

enum {
#define WIRE_CONTRACT(n) CONTRACT_VERSION = (n),
#include "schemas/wire.def"
};

#endif
