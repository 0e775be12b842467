/* SHA-256 of short texts, and the even choice among them that is made by it. Any thread. */
#ifndef COMMON_BASE_DIGEST_H
#define COMMON_BASE_DIGEST_H

#include "common/base/str.h"

/* The first n bytes, at most 32. False: no memory, or the crypto library has no SHA-256. */
MUSTUSE bool digest_sha256(struct str text, uint8_t *out, size_t n);
/* Which of `of` equal parts a text falls into, the same everywhere: the first 8 bytes of its SHA-256, big endian, modulo of. False as above. */
MUSTUSE bool digest_share(struct str text, unsigned of, unsigned *out);

#endif
