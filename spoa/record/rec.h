/* The agent's part of an access record: written into the ACK, carried by HAProxy, read back when the request has ended. */
#ifndef SPOA_RECORD_REC_H
#define SPOA_RECORD_REC_H

#include "common/policy/policy.h"

/* Version 2, one blank between parts, printable ASCII:
 *   2 <agent> <config_version> <decision> <client ip> <rate rule> <config rules> <header rules> <request id> <method> <host> <path>
 * A part that is empty is "-"; rule ids are joined by ','. Ids that do not fit REC_IDS_MAX end in ",+<ids left out>". method (at most 32 bytes of
 * it), host (255) and path (3072, less where the rest leaves less room) are the inside of JSON strings: what is not printable ASCII, a blank, '"'
 * and '\\' are escapes of JSON (RFC 8259 section 7), a byte that is no UTF-8 is \\ufffd, so that a log line takes them as they are. */
enum { REC_VERSION = 2, REC_MAX = 6144, REC_IDS_MAX = 1200, REC_METHOD_MAX = 32, REC_HOST_MAX = 255, REC_PATH_MAX = 3072 };

struct rec {
    unsigned agent;
    int64_t config_version;
    enum decision decision;
    struct str client_ip;
    struct str rate_rule;
    struct str config_rules, header_rules; /* as joined; "-" reads as empty */
    struct str request_id;
    struct str method, host, path; /* the inside of JSON strings */
};

/* Appends at most max bytes of text as the inside of a JSON string of printable ASCII without blanks, never a part of an escape; "-" when text is
 * empty. room: bytes that b may take for it. */
void rec_put_text(struct buf *b, struct str text, size_t max, size_t room);
/* The ids of a policy's rules that hits names, joined; "-" when there are none. ids: reads rule i's id. */
typedef struct str (*rec_id_of)(const struct policy *p, size_t i);
void rec_put_ids(struct buf *b, const struct policy *p, const struct rule_hits *hits, rec_id_of id_of);

/* False: no decision has that name; *out is untouched then. */
MUSTUSE bool rec_decision_find(struct str name, enum decision *out);

/* Borrows from text. False for another version or shape; *out is undefined then. */
MUSTUSE bool rec_parse(struct str text, struct rec *out);

#endif
