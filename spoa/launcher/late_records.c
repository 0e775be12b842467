/* The records at the end of HAProxy's lines: cut off, and handed to the agents over their record sockets. */
#include "spoa/launcher/late_records.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "spoa/record/access_log.h"
#include "spoa/wire/unix_peer.h"

enum { SEND_LIMIT_US = 50000, RETRY_US = 1000000, FRAME_HEAD_MAX = 16 };

/* In an agent's line these bytes can't stand: inside of a string each quote has a backslash before it. */
static const struct str member = {",\"edge.record\":\"", sizeof(",\"edge.record\":\"") - 1};

/* The inside of a JSON string as HAProxy's json converter and its configuration write it: the two-byte escapes and none of others. */
static bool unescape(struct str in, struct buf *out)
{
    while (in.len > 0) {
        const size_t plain = str_find_byte(in, '\\');

        buf_put(out, str_sub(in, 0, plain));
        if (plain >= in.len)
            break;
        if (in.len - plain < 2)
            return false;
        buf_put_byte(out, in.p[plain + 1] == 't' ? '\t' : in.p[plain + 1]);
        str_skip(&in, plain + 2);
    }
    return !out->full;
}

/* HAProxy counts a record between writing it for its rings and for standard output, which has its profile: here the number is one too high. */
static bool count_as_in_ring(struct str record, struct buf *out)
{
    uint64_t number;

    for (unsigned field = 0; field < RECORD_SEQUENCE; field++) {
        const size_t tab = str_find_byte(record, '\t');

        if (tab == SIZE_MAX)
            return false;
        buf_put(out, str_sub(record, 0, tab + 1));
        str_skip(&record, tab + 1);
    }
    if (!parse_digits(str_sub(record, 0, str_find_byte(record, '\t')), INT64_MAX, &number) || number == 0)
        return false;
    buf_put_u64(out, number - 1);
    buf_put(out, str_sub(record, str_find_byte(record, '\t'), record.len));
    return !out->full;
}

bool late_line_parse(struct str line, struct late_line *out, struct buf *record)
{
    const size_t at = str_find(line, member);
    char storage[LATE_RECORD_MAX];
    struct buf plain;
    struct str value;
    struct record r;

    if (at == SIZE_MAX || !str_ends(line, STR("\"}")))
        return false;
    value = str_sub(line, at + member.len, line.len - 2);
    if (value.len < 2 || (value.p[0] != '0' && value.p[0] != '1') || value.p[1] != ' ')
        return false;
    *out = (struct late_line){.stopping = value.p[0] == '1', .len = at};
    buf_init(&plain, storage, sizeof(storage));
    if (!unescape(str_sub(value, 2, value.len), &plain) || !count_as_in_ring(buf_str(&plain), record))
        return false;
    if (record_parse(buf_str(record), &r) && r.has_rec) {
        out->decided = true;
        out->agent = r.rec.agent;
    }
    return true;
}

void late_records_init(struct late_records *l, const char *run_dir, unsigned n_agents, struct output *output)
{
    *l = (struct late_records){.output = output, .n_agents = n_agents < LATE_AGENTS_MAX ? n_agents : LATE_AGENTS_MAX};
    for (unsigned i = 0; i < l->n_agents; i++) {
        struct late_agent *a = &l->agents[i];

        a->fd = -1;
        snprintf(a->socket, sizeof(a->socket), "%s/records-%u.sock", run_dir, i);
    }
}

static void hang_up(struct late_agent *a)
{
    const int failure = errno;

    if (a->fd >= 0)
        close(a->fd);
    errno = failure;
    a->fd = -1;
    a->retry_us = clock_mono_us(&clock_system) + RETRY_US;
}

static bool is_connected(struct late_agent *a)
{
    if (a->fd < 0 && clock_mono_us(&clock_system) >= a->retry_us)
        a->fd = unix_connect(a->socket);
    return a->fd >= 0;
}

static bool send_frame(struct late_agent *a, struct str frame)
{
    if (is_connected(a) && unix_send(a->fd, frame, clock_mono_us(&clock_system) + SEND_LIMIT_US))
        return true;
    hang_up(a);
    return false;
}

/* An agent that was exchanged since the last record has closed the connection: then once more. A frame that was cut off is none for the agent. */
static bool give(struct late_agent *a, struct str frame)
{
    const bool was_connected = a->fd >= 0;

    if (send_frame(a, frame))
        return true;
    if (!was_connected || errno == EAGAIN)
        return false;
    a->retry_us = 0;
    return send_frame(a, frame);
}

/* Each agent gets all, as from a ring. Which have it, as bits. */
static unsigned give_all(struct late_records *l, struct str record)
{
    char storage[FRAME_HEAD_MAX + LATE_RECORD_MAX + 1];
    unsigned taken = 0;
    struct buf frame;

    buf_init(&frame, storage, sizeof(storage));
    buf_put_u64(&frame, record.len + 1);
    buf_put_byte(&frame, ' ');
    buf_put(&frame, record);
    buf_put_byte(&frame, '\n');
    for (unsigned i = 0; i < l->n_agents; i++)
        if (give(&l->agents[i], buf_str(&frame)))
            taken |= 1u << i;
    return taken;
}

static void print_cut(struct late_records *l, struct str line, size_t len)
{
    char storage[LATE_RECORD_MAX];
    struct buf out;

    buf_init(&out, storage, sizeof(storage));
    buf_put(&out, str_sub(line, 0, len));
    buf_put_byte(&out, '}');
    output_line(l->output, out.full ? line : buf_str(&out));
}

/* As the agent would have, but for sampling: it does not answer. */
static void print_decided(struct late_records *l, struct str text)
{
    char storage[ACCESS_LINE_MAX], time[25];
    struct outcome outcome;
    struct record r;
    struct buf out;

    if (!record_parse(text, &r))
        return;
    outcome_read(&r, &outcome);
    clock_format_utc(clock_real_ms(&clock_system), time);
    buf_init(&out, storage, sizeof(storage));
    access_log_render(&r, &outcome, (struct str){time, sizeof(time) - 1}, RATE_WHOLE, &out);
    output_line(l->output, buf_str(&out));
}

void late_records_line(void *ctx, struct str line)
{
    struct late_records *l = ctx;
    char storage[LATE_RECORD_MAX];
    struct buf record;
    struct late_line found;
    unsigned taken;

    buf_init(&record, storage, sizeof(storage));
    if (!late_line_parse(line, &found, &record)) {
        output_line(l->output, line);
        return;
    }
    taken = found.stopping ? give_all(l, buf_str(&record)) : 0;
    if (!found.decided)
        print_cut(l, line, found.len);
    else if (found.stopping && (found.agent >= l->n_agents || (taken >> found.agent & 1) == 0))
        print_decided(l, buf_str(&record));
}

void late_records_release(struct late_records *l)
{
    for (unsigned i = 0; i < l->n_agents; i++)
        hang_up(&l->agents[i]);
}
