/* Replays wire scripts against spop_conn: whole, split in two at every byte, and byte by byte; the same must come
 * out each time. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/codec.h"
#include "tests/replay/peer.h"
#include "tests/replay/script.h"

enum { SHOWN_MAX_BYTES = 96, SPLIT_NONE = 0 };

/* How the bytes of a script are cut. */
struct cut {
    size_t split_at; /* offset into all sends together; SPLIT_NONE: nowhere */
    bool each_byte;
};

struct run {
    const struct script *script;
    struct cut cut;
    struct peer peer;
    size_t n_sent;    /* of all sends, so far */
    size_t n_checked; /* of the peer's output */
};

static bool complain(const struct run *r, const struct step *step, const char *what)
{
    printf("%s:%u: %s (", r->script->file, step->line, what);
    if (r->cut.each_byte)
        printf("byte by byte)\n");
    else if (r->cut.split_at == SPLIT_NONE)
        printf("whole)\n");
    else
        printf("split at byte %zu)\n", r->cut.split_at);
    return false;
}

static void show(const char *label, struct str bytes)
{
    char hex[2 * SHOWN_MAX_BYTES];
    size_t len = bytes.len < SHOWN_MAX_BYTES ? bytes.len : SHOWN_MAX_BYTES;

    if (len != 0)
        codec_hex((const uint8_t *)bytes.p, len, hex);
    printf("    %s %zu bytes: %.*s%s\n", label, bytes.len, (int)(2 * len), hex, len < bytes.len ? "..." : "");
}

static struct str unchecked(const struct run *r)
{
    return (struct str){r->peer.out + r->n_checked, r->peer.out_len - r->n_checked};
}

static bool send_step(struct run *r, const struct step *step)
{
    size_t at = 0;

    while (at < step->bytes.len) {
        size_t left = step->bytes.len - at, len = left;

        if (r->cut.each_byte)
            len = 1;
        else if (r->cut.split_at > r->n_sent && r->cut.split_at - r->n_sent < left)
            len = r->cut.split_at - r->n_sent;
        if (!peer_send(&r->peer, str_sub(step->bytes, at, at + len)))
            return complain(r, step, "no memory");
        at += len;
        r->n_sent += len;
    }
    return true;
}

/* The next whole frame that was written, with its length. */
static bool next_output(struct run *r, struct str *frame)
{
    struct str out = unchecked(r);
    size_t len;

    if (out.len < SPOP_LENGTH_BYTES)
        return false;
    len = SPOP_LENGTH_BYTES + (size_t)spop_frame_len(out.p);
    if (out.len < len)
        return false;
    *frame = str_sub(out, 0, len);
    r->n_checked += len;
    return true;
}

static bool expect_step(struct run *r, const struct step *step)
{
    struct str frame = STR_NONE;

    if (!next_output(r, &frame))
        return complain(r, step, "this frame was not written");
    if (str_eq(frame, step->bytes))
        return true;
    show("expected", step->bytes);
    show("written ", frame);
    return complain(r, step, "another frame was written");
}

static bool is_disconnect(struct str frame, uint64_t status)
{
    struct spop_frame f;
    struct err e = {0};
    struct str name;
    struct spop_value value;

    return spop_frame_parse(str_sub(frame, SPOP_LENGTH_BYTES, frame.len), &f, &e) && f.type == SPOP_AGENT_DISCONNECT &&
           f.flags == SPOP_FLAG_FIN && f.stream_id == 0 && f.frame_id == 0 && spop_get_kv(&f.payload, &name, &value) &&
           str_eq(name, STR("status-code")) && value.type == SPOP_UINT32 && value.u == status &&
           spop_get_kv(&f.payload, &name, &value) && str_eq(name, STR("message")) && value.type == SPOP_STR &&
           value.s.len != 0 && f.payload.len == 0;
}

static bool expect_disconnect_step(struct run *r, const struct step *step)
{
    struct str frame = STR_NONE;

    if (!next_output(r, &frame))
        return complain(r, step, "no DISCONNECT was written");
    if (is_disconnect(frame, step->number))
        return true;
    show("written", frame);
    return complain(r, step, "this is not that DISCONNECT");
}

static bool closed_step(struct run *r, const struct step *step)
{
    const struct err *why = spop_conn_error(r->peer.conn);
    struct str text = why == NULL ? STR_NONE : str_of(why->text);

    if (!spop_conn_done(r->peer.conn))
        return complain(r, step, "the connection has not ended");
    if (spop_conn_n_pending(r->peer.conn) != 0)
        return complain(r, step, "the connection has ended and still has NOTIFYs to answer");
    if (step->bytes.len == 0 ? why == NULL : str_find(text, step->bytes) != SIZE_MAX)
        return true;
    show("error text", text);
    printf("    %.*s\n", STR_ARG(text));
    return complain(r, step, "the connection ended for another reason");
}

static bool count_step(struct run *r, const struct step *step)
{
    struct spop_counters *c = &r->peer.counters;
    const struct {
        struct str name;
        const _Atomic uint64_t *counter;
    } counters[] = {
        {STR("hellos"), &c->n_hellos},
        {STR("healthchecks"), &c->n_healthchecks},
        {STR("notifies"), &c->n_notifies},
        {STR("acks"), &c->n_acks},
        {STR("protocol_errors"), &c->n_protocol_errors},
        {STR("too_big"), &c->n_too_big},
        {STR("disconnects"), &c->n_disconnects},
        {STR("lost_acks"), &c->n_lost_acks},
    };

    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
        if (str_eq(counters[i].name, step->bytes))
            return atomic_load(counters[i].counter) == step->number ||
                   complain(r, step, "the counter has another value");
    return complain(r, step, "there is no such counter");
}

static bool connection_step(struct run *r, const struct step *step)
{
    peer_release(&r->peer);
    r->n_checked = 0;
    return peer_init(&r->peer) || complain(r, step, "no memory");
}

static bool do_step(struct run *r, const struct step *step)
{
    struct peer *p = &r->peer;

    switch (step->kind) {
    case STEP_CONNECTION:
        return connection_step(r, step);
    case STEP_SEND:
        return send_step(r, step);
    case STEP_EXPECT:
        return expect_step(r, step);
    case STEP_EXPECT_DISCONNECT:
        return expect_disconnect_step(r, step);
    case STEP_HOLD:
        p->holding = true;
        return true;
    case STEP_ANSWER:
        return peer_answer(p, step->stream_id, step->frame_id) ||
               complain(r, step, "this NOTIFY does not wait for an answer");
    case STEP_AVAILABLE:
        p->available = (enum spop_status)step->number;
        return true;
    case STEP_LEAVE:
        p->leaving = true;
        return true;
    case STEP_REFUSE:
        p->refusing = true;
        return true;
    case STEP_PAUSE:
        p->paused = true;
        return true;
    case STEP_RESUME:
        p->paused = false;
        return peer_read(p) || complain(r, step, "no memory");
    case STEP_STOP:
        spop_conn_stop(p->conn);
        return peer_read(p) || complain(r, step, "no memory");
    case STEP_EOF:
        spop_conn_eof(p->conn);
        return true;
    case STEP_OPEN:
        return (!p->ended && !spop_conn_done(p->conn)) || complain(r, step, "the connection has ended");
    case STEP_CLOSED:
        return closed_step(r, step);
    case STEP_COUNT:
        return count_step(r, step);
    }
    return false;
}

static bool run_steps(struct run *r)
{
    const struct script *s = r->script;

    for (size_t i = 0; i < s->n_steps; i++) {
        const struct step *step = &s->steps[i];
        bool expects = step->kind == STEP_EXPECT || step->kind == STEP_EXPECT_DISCONNECT;

        if (!expects && unchecked(r).len != 0) {
            show("written", unchecked(r));
            return complain(r, step, "before this line more was written than expected");
        }
        if (!do_step(r, step))
            return false;
    }
    return unchecked(r).len == 0 ||
           complain(r, &s->steps[s->n_steps - 1], "after this line more was written than expected");
}

static bool run_cut(struct run *r, const struct script *s, struct cut cut)
{
    bool ok;

    *r = (struct run){.script = s, .cut = cut};
    if (!peer_init(&r->peer)) {
        printf("%s: no memory\n", s->file);
        return false;
    }
    ok = run_steps(r);
    peer_release(&r->peer);
    return ok;
}

static bool run_script(struct run *r, const struct script *s)
{
    bool ok = run_cut(r, s, (struct cut){.split_at = SPLIT_NONE}) && run_cut(r, s, (struct cut){.each_byte = true});

    for (size_t at = 1; ok && at < s->sent_bytes; at++)
        ok = run_cut(r, s, (struct cut){.split_at = at});
    return ok;
}

enum { SEED_PREFIX = 16 /* control bytes of fuzz_spop: see tests/fuzz/README.md */ };

/* What HAProxy sends on one connection of a script, steps from .. to, as a seed for the fuzzer. */
static bool write_seed(const struct script *s, const char *folder, unsigned number, size_t from, size_t to)
{
    static const char prefix[SEED_PREFIX];
    const char *slash = strrchr(s->file, '/'), *name = slash == NULL ? s->file : slash + 1;
    char path[1024];
    FILE *f;
    bool ok;

    snprintf(path, sizeof(path), "%s/%.*s-%u", folder, (int)strcspn(name, "."), name, number);
    f = fopen(path, "wb");
    if (f == NULL)
        return false;
    ok = fwrite(prefix, 1, sizeof(prefix), f) == sizeof(prefix);
    for (; ok && from < to; from++)
        if (s->steps[from].kind == STEP_SEND)
            ok = fwrite(s->steps[from].bytes.p, 1, s->steps[from].bytes.len, f) == s->steps[from].bytes.len;
    return fclose(f) == 0 && ok;
}

static bool write_seeds(const struct script *s, const char *folder)
{
    size_t from = 0;
    unsigned number = 0;

    for (size_t i = 1; i <= s->n_steps; i++) {
        if (i != s->n_steps && s->steps[i].kind != STEP_CONNECTION)
            continue;
        if (!write_seed(s, folder, ++number, from, i))
            return false;
        from = i;
    }
    return true;
}

int main(int argc, char **argv)
{
    bool seeds = argc > 2 && strcmp(argv[1], "--seeds") == 0;
    struct script *s = malloc(sizeof(*s));
    struct run *r = malloc(sizeof(*r));
    unsigned n_passed = 0, n_failed = 0;

    if (s == NULL || r == NULL || argc < (seeds ? 4 : 2)) {
        fprintf(stderr, "usage: %s [--seeds FOLDER] FILE...\n", argv[0]);
        free(s);
        free(r);
        return 2;
    }
    for (int i = seeds ? 3 : 1; i < argc; i++) {
        bool ok = script_load(s, argv[i]) && (seeds ? write_seeds(s, argv[2]) : run_script(r, s));

        *(ok ? &n_passed : &n_failed) += 1;
    }
    free(s);
    free(r);
    printf("%u passed, %u failed\n", n_passed, n_failed);
    return n_failed == 0 ? 0 : 1;
}
