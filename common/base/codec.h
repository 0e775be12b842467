/* Byte encodings: hex, base64url without padding (RFC 4648 5), percent-decoding (RFC 3986 2.1). */
#ifndef COMMON_BASE_CODEC_H
#define COMMON_BASE_CODEC_H

#include "common/base/str.h"

/* out holds 2 * len bytes; lower case. */
void codec_hex(const uint8_t *in, size_t len, char *out);
int codec_hex_digit(char c); /* 0-15, or -1 */

#define CODEC_BASE64URL_LEN(len) (((len) *4 + 2) / 3)
/* out holds CODEC_BASE64URL_LEN(len) bytes. */
void codec_base64url(const uint8_t *in, size_t len, char *out);
/* Strict: no padding, no other alphabet, no stray bits. out holds in.len * 3 / 4 bytes. */
MUSTUSE bool codec_base64url_decode(struct str in, uint8_t *out, size_t *out_len);

/* Decodes every %XX once (and '+' as a blank when plus is set) into out, which holds in.len bytes. False when a % is not
 * followed by two hex digits; *out_len is untouched then. */
MUSTUSE bool codec_percent_decode(struct str in, bool plus, char *out, size_t *out_len);

#endif
