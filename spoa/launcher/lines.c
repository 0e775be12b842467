/* Whole lines out of a stream of bytes. */
#include "spoa/launcher/lines.h"

#include <stdlib.h>

bool lines_init(struct lines *l, void (*emit)(void *ctx, struct str line), void *ctx)
{
    *l = (struct lines){.p = malloc(LINES_MAX_BYTES), .emit = emit, .ctx = ctx};
    return l->p != NULL;
}

void lines_release(struct lines *l)
{
    free(l->p);
    l->p = NULL;
    l->len = 0;
}

static void keep(struct lines *l, struct str part)
{
    const size_t room = LINES_MAX_BYTES - l->len, n = part.len < room ? part.len : room;

    if (n > 0)
        memcpy(l->p + l->len, part.p, n);
    l->len += n;
    l->is_cut = l->is_cut || n < part.len;
}

static void finish(struct lines *l)
{
    struct str line = {l->p, l->len};

    /* A character that the cut may have split is left out. */
    if (l->is_cut)
        line = str_cut_utf8(line, LINES_MAX_BYTES - 1);
    l->emit(l->ctx, line);
    l->len = 0;
    l->is_cut = false;
}

void lines_feed(struct lines *l, struct str bytes)
{
    while (bytes.len > 0) {
        const struct str part = str_sub(bytes, 0, str_find_byte(bytes, '\n'));

        if (part.len == bytes.len) {
            keep(l, part);
            return;
        }
        if (l->len == 0 && part.len <= LINES_MAX_BYTES) {
            l->emit(l->ctx, part);
        } else {
            keep(l, part);
            finish(l);
        }
        bytes = str_sub(bytes, part.len + 1, bytes.len);
    }
}

void lines_end(struct lines *l)
{
    if (l->len > 0)
        finish(l);
}
