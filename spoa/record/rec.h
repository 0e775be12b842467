/* The agent's part of an access record: written into the ACK, carried by HAProxy, read back when the request has ended. */
#ifndef SPOA_RECORD_REC_H
#define SPOA_RECORD_REC_H

#include "common/policy/policy.h"

/* Version 3, one blank between parts, printable ASCII:
 *   3 <agent> <cohort> <config_version> <decision> <auth> <client ip> <country> <asnum> <ja4> <signals> <limits> <config rules> <header rules>
 *   <counted> <subjects> <trace> <request id> <method> <host> <query keys> <keys dropped> <user agent> <path>
 * An empty part is "-". cohort: a (active) or c (candidate). signals: client.signals in hex. Lists are joined by ','; an item is <id> or <id>:<value>; one
 * that begins with '!' is the rule that decided (of limits: that refused, or would have; of config rules: whose block setting counted). Items that do not
 * fit REC_IDS_MAX bytes of a list are left out, never the one that decided, and it ends in "+<how many>" as its last item.
 *   limits     rules that were evaluated, then those that matched and were not: <id>:<letters of schemas/rule_counts.def>; without letters the one that
 *              refused a missing key
 *   counted    rules that count answers by their status, which only the end tells: <id>:<subject, 32 hex digits>
 *   subjects   of one in COUNTS_SAMPLED_LIMITS limited requests: <id>:<subject, 32 hex digits>:<display, the inside of a JSON string>
 *   trace      <trace id, 32 hex digits>:<span id, 16>:<1 sampled, 0 not>
 *   query keys names of the query's parameters, sorted, each once, joined by ','; keys dropped: names that are not logged
 * method (at most 32 bytes of it), host (255), user agent (512) and path (3072) are the inside of JSON strings: what is not printable ASCII, a blank, '"'
 * and '\\' are escapes of JSON (RFC 8259 section 7), a byte that is no UTF-8 is \\ufffd, so that a log line takes them as they are. Where what stands
 * before leaves less room they are cut, but for the first 256 bytes of the path. */
enum {
    REC_VERSION = 3,
    REC_MAX = 6144,
    REC_IDS_MAX = 800,
    REC_METHOD_MAX = 32,
    REC_HOST_MAX = 255,
    REC_KEYS_MAX = 1024,
    REC_USER_AGENT_MAX = 512,
    REC_PATH_MAX = 3072,
    REC_QUERY_KEYS = 32
};

struct rec_trace {
    struct str trace_id, span_id; /* empty: none */
    bool sampled;
};

struct rec {
    unsigned agent;
    enum cohort cohort;
    int64_t config_version;
    enum decision decision;
    struct str auth; /* verified, cached, missing, invalid, pass_no_keys; empty: off */
    struct str client_ip, country, asnum, ja4;
    uint32_t signals; /* 0 also where the config phase was not reached */
    struct str limits, config_rules, header_rules, counted, subjects; /* lists, for rec_next */
    struct rec_trace trace;
    struct str request_id;
    struct str method, host, user_agent, path; /* the inside of JSON strings */
    struct str query_keys;
    uint64_t n_query_keys_dropped;
};

/* One item of a list. */
struct rec_item {
    struct str id;
    struct str value; /* behind the id's ':'; empty without one */
    bool decided;
};
/* Takes the next item off list; false at its end, with *n_left_out the items that did not fit. */
bool rec_next(struct str *list, struct rec_item *item, uint64_t *n_left_out);

/* Appends at most max bytes of text as the inside of a JSON string of printable ASCII without blanks, never a part of an escape; "-" when text is
 * empty. room: bytes that b may take for it. */
void rec_put_text(struct buf *b, struct str text, size_t max, size_t room);
/* The same of a text in an item of a list: ',' is an escape, too. */
void rec_put_item_text(struct buf *b, struct str text, size_t room);

/* False: no decision has that name; *out is untouched then. */
MUSTUSE bool rec_decision_find(struct str name, enum decision *out);

/* Reads no further than to the agent. False: text does not begin as one of this version does. */
MUSTUSE bool rec_agent(struct str text, unsigned *out);
/* Borrows from text. False for another version or shape (an id that is no name, a subject that is no hex, a text that is no inside of a JSON
 * string, ...): what it takes can stand in a line as it is. *out is undefined then. */
MUSTUSE bool rec_parse(struct str text, struct rec *out);

#endif
