/* How requests reach this deployment: who in front is trusted, and which of its headers say who the client is. Read from settings once, then
 * immutable and readable by any thread; edges and whoever validates policies for them read the same texts. */
#ifndef COMMON_POLICY_INGRESS_H
#define COMMON_POLICY_INGRESS_H

#include "common/expr/expr.h"
#include "common/net/client_ip.h"

enum { INGRESS_SECRETS_MAX = 8, INGRESS_SECRET_MAX = 256 };

/* The settings as written; "" or NULL where unset. */
struct ingress_text {
    const char *client_ip_source, *trusted_proxies, *viewer_headers, *secret_header, *secrets;
    bool trust_any_peer; /* ranges of everybody may be trusted */
    bool allow_regex;
    bool tls_here;         /* TLS ends at this edge */
    bool ja3, ja4;         /* these are computed from its handshakes */
    bool client_certs;     /* it asks clients for certificates */
    bool look_only;        /* for a command that only looks at a policy: INGRESS_SECRET is not asked for, and no CLIENT_IP_SOURCE is the peer */
};

enum client_ip_source { CLIENT_IP_PEER, CLIENT_IP_HEADER, CLIENT_IP_FORWARDED_FOR };

struct ingress {
    enum client_ip_source source;
    enum client_ip_form form;
    struct str client_ip_header;        /* lower case; empty for the peer */
    struct str viewer[EXPR_N_SOURCES];  /* lower-case header of a viewer source; empty: not from a header */
    bool reads_headers;                 /* any of the above: then the peer must be trusted */
    bool handshake;                     /* viewer facts come from our own TLS handshake: TLS ends here, the client is the peer, no viewer header is mapped */
    struct addr_set trusted;
    struct str secret_header;           /* empty: none is asked for */
    struct str secrets[INGRESS_SECRETS_MAX]; /* each in INGRESS_SECRET_MAX bytes, zeros behind it; wiped with the arena */
    size_t n_secrets;
    size_t secret_bytes;                /* what is compared of each: the longest, rounded up so that the time shows little of its length */
    /* Every header that only the front may write, secret included, each once: stripped behind the call, unreadable in rules. A viewer source, the
     * client's address and the secret share the bytes of their name with its place here. */
    struct str *own_headers;
    size_t n_own_headers;
    uint64_t own_lengths;               /* 1 << the length of each, at most 63: most headers of a request need no compare */
    struct expr_deployment deployment;  /* what this means to expressions */
};

enum { INGRESS_PROXIES_MAX = 1024, INGRESS_OWN_MAX = EXPR_N_SOURCES + 2 };

/* Every fault at once; path is "/NAME" of the setting, the text names it, says what is wrong and what would be right, and never quotes a secret.
 * Texts are copied into a. False when there was a fault (no memory: ERR_NO_MEMORY, path ""); *out is untouched then. Warnings, which may be NULL:
 * what can't be meant (nobody trusted, so that every request is refused; a secret shorter than 16 bytes).
 * Names of headers: tokens without '_', which upstreams read as '-' (so that one name had two spellings). Refused are those of
 * schemas/reserved_headers.def but for X-Forwarded-*, which is read before it is stripped, X-Forwarded-Host, and those of schemas/client_headers.def:
 * what is a source never reaches the upstream. The secret's header must be no source too. */
MUSTUSE bool ingress_read(const struct ingress_text *text, struct arena *a, struct ingress *out, struct errlist *errors, struct errlist *warnings);

/* A comma list of addresses and ranges (CIDR), such as that of the trusted proxies; an empty text is an empty set. setting: its name, for faults, one
 * for each entry that can't stay; any_allowed: all of IPv4 or IPv6 may stand in it. *out is what could be read. False: no memory. */
MUSTUSE bool ingress_read_peers(const char *setting, const char *text, bool any_allowed, struct arena *a, struct addr_set *out, struct errlist *errors);

enum identity_refusal {
    IDENTITY_OK,
#define IDENTITY_REFUSAL_ROW(id, name, meaning) IDENTITY_##id,
#include "schemas/identity_refusals.def"
#undef IDENTITY_REFUSAL_ROW
    IDENTITY_REFUSAL_N
};
const char *identity_refusal_name(enum identity_refusal r); /* "" of IDENTITY_OK */

/* The connection that a request came on. */
struct ingress_connection {
    struct addr src;
    bool has_src;
    bool tls;
    struct str http_version;      /* as HAProxy names it */
    struct expr_viewer handshake; /* where tls: certificate and fingerprints, as far as they are known */
};

/* Who the client is and what is known of its connection, in the order secret, peer, address, viewer facts; nothing is known of a client that is refused.
 * Normal forms: ssl true for https or true; versions 1.0 1.1 2.0 3.0; upper-case country and continent; AS numbers from 1, AS before them allowed;
 * well-formed fingerprints, and those only with TLS where ssl has a source; present and verified true for true or 1; texts of a certificate at most 1 KiB
 * of UTF-8. What is malformed or there several times is absent, and so are countries that are none: XX and ZZ (unknown), T1 (Tor): rules compare
 * two letters. headers: names in lower case. Values are borrowed from headers, c and in, or copied into a. */
struct ingress_client {
    enum identity_refusal refusal;
    bool peer_trusted; /* the peer is in TRUSTED_PROXIES */
    struct addr ip;    /* where refusal is IDENTITY_OK */
    struct expr_viewer viewer;
};
/* False: no memory, or more than HEADERS_MAX headers. */
MUSTUSE bool ingress_identify(const struct ingress *in, const struct ingress_connection *c, const struct headers *headers, struct arena *a,
                              struct ingress_client *out);

/* Values of viewer sources in the one form that rules compare, whoever says them; STR_NONE for what is none. A country is two letters, in upper case; XX
 * and ZZ, which ISO 3166-1 reserves for the user and CDNs mean unknown by, are none. False: no memory. */
MUSTUSE bool ingress_country(struct str s, struct arena *a, struct str *out);
struct str ingress_continent(struct str s);

#endif
