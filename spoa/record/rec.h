/* The agent's part of an access record: written into the ACK, carried by HAProxy, read back when the request has ended. */
#ifndef SPOA_RECORD_REC_H
#define SPOA_RECORD_REC_H

#include "common/policy/policy.h"

/* Version 1, one blank between parts, printable ASCII:
 *   1 <agent> <config_version> <decision> <client ip> <rate rule> <config rules> <header rules>
 * A part that is empty is "-"; rule ids are joined by ','. What does not fit REC_MAX ends in ",+<ids left out>". */
enum { REC_VERSION = 1, REC_MAX = 6144, REC_IDS_MAX = 2400 };

struct rec {
    unsigned agent;
    int64_t config_version;
    enum decision decision;
    struct str client_ip;
    struct str rate_rule;
    struct str config_rules, header_rules; /* as joined; "-" reads as empty */
};

/* The ids of a policy's rules that hits names, joined; "-" when there are none. ids: reads rule i's id. */
typedef struct str (*rec_id_of)(const struct policy *p, size_t i);
void rec_put_ids(struct buf *b, const struct policy *p, const struct rule_hits *hits, rec_id_of id_of);

/* Borrows from text. False for another version or shape; *out is undefined then. */
MUSTUSE bool rec_parse(struct str text, struct rec *out);

#endif
