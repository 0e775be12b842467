/* What filters of request headers let pass. */
#ifndef COMMON_POLICY_FORWARD_PRIV_H
#define COMMON_POLICY_FORWARD_PRIV_H

#include "common/policy/policy.h"

/* Names that no filter drops, whatever their case: the connection's and the edge's own, which the edge itself sees to, and trace context. */
bool forward_always_keeps(struct str name);
/* Whether filter lets a header of that name pass, whatever its case: beside those above an allowlist keeps the handshake of a WebSocket. */
bool forward_keeps(const struct forward_filter *filter, struct str name);

#endif
