/* The client's address as proxies in front write it into a header: one address, or X-Forwarded-For. Pure functions, any thread. */
#ifndef COMMON_NET_CLIENT_IP_H
#define COMMON_NET_CLIENT_IP_H

#include "common/net/addr.h"

/* ADDRESS: an address (RFC 4291, dotted decimal), bare or in brackets; a port follows an IPv4 address or closing bracket only, so that the last
 * group of a bare IPv6 address is never taken for one. ADDRESS_PORT: a port always follows; IPv6 with or without brackets. A port is 1 to 5 digits up
 * to 65535. No zone, no blanks. IPv4-mapped IPv6 is that IPv4. */
enum client_ip_form { CLIENT_IP_ADDRESS, CLIENT_IP_ADDRESS_PORT };
MUSTUSE bool client_ip_parse(struct str s, enum client_ip_form form, struct addr *out);

/* X-Forwarded-For from right to left: entries that are trusted proxies are passed over, the first that is none is the client; when all are, the
 * leftmost. values: of the header's lines in order of receipt, each a comma list with optional blanks (RFC 9110 5.6.1; empty entries are passed
 * over). Only what is walked past is read: what a client wrote left of its own address may be anything. */
enum client_ip_walk { CLIENT_IP_FOUND, CLIENT_IP_MISSING, CLIENT_IP_MALFORMED };
MUSTUSE enum client_ip_walk client_ip_walk(const struct str *values, size_t n, const struct addr_set *trusted, struct addr *out);

#endif
