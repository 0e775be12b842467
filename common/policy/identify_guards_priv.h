/* Guards of identify(), in a file of their own. Pure functions, any thread. */
#ifndef COMMON_POLICY_IDENTIFY_GUARDS_PRIV_H
#define COMMON_POLICY_IDENTIFY_GUARDS_PRIV_H

#include "common/http/headers.h"

/* RFC 9110 5.5: no value holds a control character but the tab; bytes from 0x80 on pass. HAProxy lets them through but for NUL, CR and LF. */
MUSTUSE bool identify_values_ok(const struct headers *h);

/* RFC 9112 6.1: HTTP/1.0 knows no Transfer-Encoding, so a server of it would take the body for the next request. HAProxy forwards both as they came. */
MUSTUSE bool identify_framing_ok(const struct headers *h, struct str version);

/* RFC 9110 7.2, host[:port]: a name of RFC 3986 without escapes, comma or empty labels (one dot may end it), an IPv4 address, or an IPv6 address in
 * brackets; a port of at most 5 digits up to 65535, which may be empty; 260 characters in all. No host (an absent header or an empty one) passes where version is empty
 * or "1.0" only. It refuses all that HAProxy refuses. */
MUSTUSE bool identify_host_ok(struct str host, struct str version);

#endif
