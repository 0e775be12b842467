/* Whole lines out of a stream of bytes. */
#ifndef SPOA_LAUNCHER_LINES_H
#define SPOA_LAUNCHER_LINES_H

#include "common/base/str.h"

enum { LINES_MAX_BYTES = 64 * 1024 };

/* One stream's unfinished line. A longer one than LINES_MAX_BYTES is cut: its beginning is a line, its rest is dropped. */
struct lines {
    char *p; /* LINES_MAX_BYTES, malloc'd */
    size_t len;
    bool is_cut;
    void (*emit)(void *ctx, struct str line); /* without the newline; the bytes are the caller's again afterwards */
    void *ctx;
};

/* False when memory is refused. */
MUSTUSE bool lines_init(struct lines *l, void (*emit)(void *ctx, struct str line), void *ctx);
void lines_feed(struct lines *l, struct str bytes);
/* The stream has ended: what stands there is a line, too. */
void lines_end(struct lines *l);
void lines_release(struct lines *l);

#endif
