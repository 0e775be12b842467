/* Server, listener and clients of the socket tests. */
#include "tests/unit/wire_rig.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/wire_frames.h"

enum { GIVE_UP_S = 30 };

struct wire_rig wire_rig;

bool wire_rig_answer(struct spop_pending *p)
{
    static const char text[SPOP_FRAME_MAX];
    struct buf *ack = spop_ack_open(p);

    if (ack == NULL)
        return true;
    spop_put_set_str(ack, SPOP_SCOPE_txn, "v", (struct str){text, wire_rig.answer_len});
    return spop_ack_close(p);
}

static bool on_notify(void *ctx, struct spop_conn *conn, const struct spop_frame *frame)
{
    struct spop_pending now, *p = wire_rig.holding ? &wire_rig.held[wire_rig.n_held] : &now;

    (void)ctx;
    if (wire_rig.n_held == WIRE_RIG_HELD_MAX)
        return false;
    spop_conn_adopt(conn, p, frame);
    wire_rig.n_held += wire_rig.holding;
    return wire_rig.holding || wire_rig_answer(p);
}

static enum spop_status available(void *ctx)
{
    (void)ctx;
    return SPOP_STATUS_NORMAL;
}

static void on_accept(struct ev_loop *loop, ev_io *w, int events)
{
    int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void)loop;
    (void)events;
    if (fd >= 0 && wire_rig.send_bytes > 0)
        CU_ASSERT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wire_rig.send_bytes, sizeof(wire_rig.send_bytes)), 0);
    if (fd >= 0)
        spop_server_adopt(&wire_rig.server, fd);
}

static void set_up_server(size_t peers_max)
{
    const struct spop_handler handler = {.notify = on_notify, .availability = available};

    wire_rig.loop = ev_loop_new(EVFLAG_AUTO);
    CU_ASSERT_PTR_NOT_NULL_FATAL(wire_rig.loop);
    spop_server_init(&wire_rig.server, wire_rig.loop, &handler, &wire_rig.counters, peers_max);
}

static void begin_at(const char *at, size_t peers_max)
{
    struct err e = {0};

    CU_ASSERT_TRUE_FATAL(spop_listen(str_of(at), &wire_rig.listener, &e));
    set_up_server(peers_max);
    ev_io_init(&wire_rig.accepting, on_accept, wire_rig.listener, EV_READ);
    ev_io_start(wire_rig.loop, &wire_rig.accepting);
}

void wire_rig_begin(size_t peers_max)
{
    memset(&wire_rig, 0, sizeof(wire_rig));
    snprintf(wire_rig.dir, sizeof(wire_rig.dir), "/tmp/spop-test-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(wire_rig.dir));
    snprintf(wire_rig.path, sizeof(wire_rig.path), "%s/agent.sock", wire_rig.dir);
    snprintf(wire_rig.at, sizeof(wire_rig.at), "unix@%s", wire_rig.path);
    begin_at(wire_rig.at, peers_max);
}

void wire_rig_begin_tcp(void)
{
    memset(&wire_rig, 0, sizeof(wire_rig));
    begin_at("tcp@127.0.0.1:0", 8);
}

void wire_rig_end(void)
{
    spop_server_release(&wire_rig.server);
    ev_io_stop(wire_rig.loop, &wire_rig.accepting);
    ev_loop_destroy(wire_rig.loop);
    close(wire_rig.listener);
    if (wire_rig.path[0] != '\0') {
        unlink(wire_rig.path);
        rmdir(wire_rig.dir);
    }
}

static struct wire_client *connect_to(const struct sockaddr *name, socklen_t len)
{
    struct wire_client *c = calloc(1, sizeof(*c));

    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    c->fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_TRUE_FATAL(c->fd >= 0);
    CU_ASSERT_EQUAL_FATAL(connect(c->fd, name, len), 0);
    CU_ASSERT_EQUAL_FATAL(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
    return c;
}

struct wire_client *wire_client_new(void)
{
    union {
        struct sockaddr any;
        struct sockaddr_storage room;
    } name;
    socklen_t len = sizeof(name);

    /* A renamed UNIX socket's own name is the temporary one. */
    if (wire_rig.path[0] != '\0') {
        struct sockaddr_un un = {.sun_family = AF_UNIX};

        memcpy(un.sun_path, wire_rig.path, strlen(wire_rig.path));
        return connect_to((const struct sockaddr *)&un, sizeof(un));
    }
    CU_ASSERT_EQUAL_FATAL(getsockname(wire_rig.listener, &name.any, &len), 0);
    return connect_to(&name.any, len);
}

void wire_client_free(struct wire_client *c)
{
    close(c->fd);
    free(c);
}

static void client_read(struct wire_client *c)
{
    ssize_t n;

    while (!c->closed && (n = read(c->fd, c->bytes + c->len, sizeof(c->bytes) - c->len)) >= 0) {
        c->closed = n == 0;
        c->len += (size_t)n;
    }
    if (!c->closed && errno != EAGAIN)
        c->closed = c->was_reset = true;
}

static void give_up(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)w;
    (void)events;
    wire_rig.gave_up = true;
}

/* Turns the loop until the condition holds; the watchdog only ends a test that has failed. */
void wire_rig_run_until(wire_condition *is_met, struct wire_client *c)
{
    ev_timer watchdog;

    ev_timer_init(&watchdog, give_up, GIVE_UP_S, 0.);
    ev_now_update(wire_rig.loop);
    ev_timer_start(wire_rig.loop, &watchdog);
    while (!wire_rig.gave_up && !is_met(c))
        ev_run(wire_rig.loop, EVRUN_NOWAIT);
    CU_ASSERT_FALSE_FATAL(wire_rig.gave_up);
    ev_timer_stop(wire_rig.loop, &watchdog);
}

size_t wire_client_n_frames(const struct wire_client *c)
{
    struct str in = {c->bytes, c->len};
    struct spop_frame f;
    size_t n = 0;

    while (wire_next(&in, &f))
        n++;
    return n;
}

bool wire_has_one_frame(struct wire_client *c)
{
    client_read(c);
    return wire_client_n_frames(c) >= 1;
}

bool wire_has_two_frames(struct wire_client *c)
{
    client_read(c);
    return wire_client_n_frames(c) >= 2;
}

bool wire_has_21_frames(struct wire_client *c)
{
    client_read(c);
    return wire_client_n_frames(c) >= 21;
}

bool wire_is_closed(struct wire_client *c)
{
    client_read(c);
    return c->closed;
}

bool wire_is_idle(struct wire_client *c)
{
    (void)c;
    return spop_server_idle(&wire_rig.server);
}

bool wire_has_peers(struct wire_client *c)
{
    (void)c;
    return !spop_server_idle(&wire_rig.server);
}

bool wire_holds_two(struct wire_client *c)
{
    (void)c;
    return wire_rig.n_held == 2;
}

/* The frame at a place among those read. */
struct spop_frame wire_client_frame(const struct wire_client *c, size_t at)
{
    struct str in = {c->bytes, c->len};
    struct spop_frame f = {0};

    for (size_t i = 0; i <= at; i++)
        CU_ASSERT_TRUE_FATAL(wire_next(&in, &f));
    return f;
}

void wire_client_send(struct wire_client *c, struct str s)
{
    CU_ASSERT_EQUAL(send(c->fd, s.p, s.len, MSG_NOSIGNAL), (ssize_t)s.len);
}

void wire_client_greet(struct wire_client *c, uint32_t frame_max)
{
    char storage[256];
    struct buf b;

    buf_init(&b, storage, sizeof(storage));
    wire_put_hello(&b, frame_max);
    wire_client_send(c, buf_str(&b));
}

void wire_client_notify(struct wire_client *c, uint64_t stream_id)
{
    char storage[64];
    struct buf b;

    buf_init(&b, storage, sizeof(storage));
    wire_put_notify(&b, stream_id, 1, 5);
    wire_client_send(c, buf_str(&b));
}
