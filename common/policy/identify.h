/* The first look at a request: what it asks for in the one form that everything later relies on, and what is refused at once. */
#ifndef COMMON_POLICY_IDENTIFY_H
#define COMMON_POLICY_IDENTIFY_H

#include "common/http/path.h"
#include "common/policy/ingress.h"
#include "common/policy/policy.h"

struct identify_input {
    struct str method, url; /* as sent */
    const struct headers *headers;
    /* The client as ingress_identify found it; NULL: src is the client (simulate), and viewer facts are the caller's to set. */
    const struct ingress_client *client;
    struct addr src;
    bool has_src;
    struct str http_version; /* "1.1" and newer: there must be a Host; empty: not asked (simulate) */
};

struct identity {
    struct expr_facts facts;
    struct str forward_uri; /* path and query to forward; equals the sent ones when nothing had to change */
    bool uri_changed;       /* against the origin-form of the url as sent */
    enum decision refused;  /* DECISION_ALLOW: go on; else IDENTITY, PATH, METHOD, BAD_REQUEST (all 400 bad_request), UNAVAILABLE (no memory) */
    enum path_verdict path_verdict;
    enum identity_refusal identity_refusal;
};

/* Order of refusals: client address (IDENTITY), path, method (a token without lower-case letters), what makes the host doubtful (BAD_REQUEST:
 * several Host headers of different values, an absolute target that names another host than Host does or carries userinfo, bytes in the target that
 * HTTP/1 could not carry, no Host where the version demands one, a Host that is no host[:port], Transfer-Encoding in HTTP/1.0, a header value with a control
 * character other than the tab): an upstream could pick the other one. No Host header reads as the empty host. Facts that could be read are filled in even
 * when refused, for the record: host and method as far as they go, path as sent when it has no normal form. forward_uri and the facts' query are empty
 * when refused. Borrows from input and the arena. */
void identify(const struct identify_input *in, struct arena *a, struct identity *out);

/* Names are lower case. Edge: what no client may say and no rule sees (X-Edge-*, twins with '_' for '-' included). Stripped: what HAProxy deletes behind
 * the call (schemas/stripped_headers.def, and the n_own lower-case names of the deployment's own). */
bool identify_is_edge_header(struct str name);
bool identify_is_stripped(struct str name, const struct str *own, size_t n_own);

/* The version of a client's connection as rules compare it: "2.0" for "2.0", "HTTP/2" and "HTTP/2.0"; empty for anything but
 * 1.0, 1.1, 2.0 and 3.0 in these forms. */
struct str identify_http_version(struct str s);

#endif
