/* Fingerprints of a TLS ClientHello: JA3 (md5 of five lists) and JA4 (FoxIO's description, TLS over TCP). Pure functions, any thread. */
#ifndef COMMON_NET_CLIENT_HELLO_H
#define COMMON_NET_CLIENT_HELLO_H

#include "common/base/str.h"

/* HELLO_CAPTURE: bytes that HAProxy keeps of the six lists together (tune.ssl.capture-buffer-size; `make lint` compares). */
enum { JA3_LEN = 32, JA4_LEN = 36, HELLO_CAPTURE = 1024, ALPN_NAME_MAX = 255 };

/* Numbers in order of receipt, GREASE (RFC 8701) included. formats has one byte a number, the others two. */
struct hello_list {
    uint16_t v[HELLO_CAPTURE];
    size_t n;
};
struct client_hello {
    uint16_t version; /* of the hello itself */
    struct hello_list ciphers, extensions, groups, formats, versions, signatures;
    bool has_alpn;          /* the first protocol offered is known; empty when none was */
    size_t alpn_len;
    uint8_t alpn[ALPN_NAME_MAX];
};

/* text: argument `hello` of schemas/wire.def: version in decimal, then seven fields in hex, separated by one blank: ciphers extensions groups formats
 * versions signatures, and the first protocol offered: empty where there is none, "-" where nobody looked. It is believed where it agrees with the
 * extensions.
 * False: not of that form, or so long that HAProxy may have cut it: no fingerprint of a part. *out is then undefined. */
MUSTUSE bool client_hello_read(struct str text, struct client_hello *out);
/* 32 lower-case hex digits. False: no md5 here. */
MUSTUSE bool client_hello_ja3(const struct client_hello *h, char out[static JA3_LEN]);
/* "t13d1516h2_8daaf6152771_02713d6af862". False: the first protocol offered is not known (absent rather than wrong), or no sha256 here. */
MUSTUSE bool client_hello_ja4(const struct client_hello *h, char out[static JA4_LEN]);

#endif
