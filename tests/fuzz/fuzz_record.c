/* The record intake on any bytes: framing, fields, and a line that is JSON. */
#include <jansson.h>
#include <string.h>

#include "spoa/record/access_log.h"
#include "spoa/record/intake.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

/* HAProxy escapes these fields; what arrives unescaped would be its fault, not a reader's. */
static bool is_json_string(struct str text)
{
    json_t *j = json_loadb(text.p, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    bool ok = json_is_string(j);
    json_decref(j);
    return ok;
}

static void on_record(void *ctx, struct str line)
{
    struct arena *scratch = ctx;
    struct record r;
    char storage[ACCESS_LINE_MAX];
    struct buf out;
    GUARANTEE(line.len <= INTAKE_RECORD_MAX);
    if (!record_parse(line, &r) || !r.has_rec)
        return;
    if (!is_json_string(r.fields[RECORD_METHOD]) || !is_json_string(r.fields[RECORD_HOST]) || !is_json_string(r.fields[RECORD_PATH]))
        return;
    buf_init(&out, storage, sizeof storage);
    access_log_render(&r, 0, scratch, &out);
    if (out.full)
        return;
    json_t *j = json_loadb(out.p, out.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    GUARANTEE(j != NULL);
    json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct intake_stream stream;
    struct arena scratch;
    arena_init(&scratch, 4096, 0);
    stream.len = 0;
    for (size_t at = 0; at < size;) {
        size_t room;
        char *to = intake_stream_room(&stream, &room);
        /* Uneven pieces, as a socket gives them. */
        size_t n = 1 + data[at] % 61u * 7u;
        n = n < size - at ? n : size - at;
        n = n < room ? n : room;
        if (n == 0)
            break;
        memcpy(to, data + at, n);
        at += n;
        if (!intake_stream_filled(&stream, n, on_record, &scratch))
            break;
    }
    arena_release(&scratch);
    return 0;
}
