/* Fingerprints of a TLS ClientHello: JA3 (md5 of five lists) and JA4 (FoxIO's description, TCP). Pure functions, any thread. */
#ifndef COMMON_NET_CLIENT_HELLO_H
#define COMMON_NET_CLIENT_HELLO_H

#include "common/base/str.h"

enum { JA3_LEN = 32, JA4_LEN = 36, HELLO_LIST_MAX = 512 };

/* What HAProxy captured of a hello: numbers in order of receipt, GREASE (RFC 8701) included. A list that was longer than the capture buffer or than
 * HELLO_LIST_MAX makes the hello unusable (client_hello_read is false), never a fingerprint of a part. */
struct hello_list {
    uint16_t v[HELLO_LIST_MAX];
    size_t n;
};
struct client_hello {
    uint16_t version; /* of the hello itself */
    struct hello_list ciphers, extensions, groups, formats, versions, signatures;
    bool has_alpn;        /* known: the first protocol offered, empty when none was */
    struct str alpn_first;
};

/* text: argument `hello` of schemas/wire.def: version in decimal, then six lists in hex (ciphers extensions groups formats versions signatures),
 * separated by one blank, "-" for an empty one. False: not of that form. */
MUSTUSE bool client_hello_read(struct str text, struct client_hello *out);
/* 32 lower-case hex digits. */
MUSTUSE bool client_hello_ja3(const struct client_hello *h, char out[static JA3_LEN]);
/* "t13d1516h2_8daaf6152771_02713d6af862". False where the first protocol offered is not known: absent rather than wrong. */
MUSTUSE bool client_hello_ja4(const struct client_hello *h, char out[static JA4_LEN]);

#endif
