/* Sockets and RESP of the scripted Valkey. */
#include "tests/unit/fake_valkey.h"

#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/rate/script.h"

enum { ARGUMENTS_MAX = 64 };

static void drop(struct fake_conn *c)
{
    ev_io_stop(c->server->loop, &c->read);
    ev_idle_stop(c->server->loop, &c->talk);
    close(c->fd);
    c->fd = -1;
}

static void say(struct fake_conn *c, struct str text)
{
    CU_ASSERT_TRUE_FATAL(text.len <= sizeof(c->out) - c->out_len);
    memcpy(c->out + c->out_len, text.p, text.len);
    c->out_len += text.len;
    ev_idle_start(c->server->loop, &c->talk);
}

static void on_talk(struct ev_loop *loop, ev_idle *w, int events)
{
    struct fake_conn *c = w->data;
    size_t n = c->out_len - c->out_at;

    (void)events;
    if (c->server->piece != 0 && n > c->server->piece)
        n = c->server->piece;
    if (n > 0) {
        ssize_t sent = send(c->fd, c->out + c->out_at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

        c->out_at += sent > 0 ? (size_t)sent : 0;
    }
    if (c->out_at < c->out_len)
        return;
    c->out_at = c->out_len = 0;
    ev_idle_stop(loop, w);
    if (c->ends)
        drop(c);
}

/* n verdicts: allowed, 4 left. */
static void say_verdicts(struct fake_conn *c, unsigned n)
{
    char text[512], reply[600];
    struct buf b;
    int len;

    buf_init(&b, text, sizeof(text));
    buf_put_u64(&b, c->server->now_ms);
    while (n-- > 0)
        buf_put(&b, STR(" 1 4 0 1000"));
    len = snprintf(reply, sizeof(reply), "$%zu\r\n%.*s\r\n", b.len, STR_ARG(buf_str(&b)));
    say(c, (struct str){reply, (size_t)len});
}

static void say_sha1(struct fake_conn *c)
{
    char sha1[41], reply[64];
    int len;

    CU_ASSERT_TRUE_FATAL(rate_script_sha1(sha1));
    len = snprintf(reply, sizeof(reply), "$40\r\n%s\r\n", sha1);
    say(c, (struct str){reply, (size_t)len});
}

static void remember(char *out, size_t cap, const struct str *args, size_t n)
{
    struct buf b;

    buf_init(&b, out, cap - 1);
    for (size_t i = 1; i < n; i++) {
        if (i > 1)
            buf_put_byte(&b, ' ');
        buf_put(&b, args[i]);
    }
    out[b.len] = '\0';
}

static void say_charge(struct fake_conn *c, const struct str *args, size_t n, const char *told)
{
    struct fake_valkey *f = c->server;

    CU_ASSERT_TRUE_FATAL(n > 3 && args[2].len == 1);
    if (told != NULL)
        say(c, str_of(told));
    else
        say_verdicts(c, (unsigned)(args[2].p[0] - '0'));
    if (f->n_charges_max != 0 && --f->n_charges_max == 0)
        c->ends = true;
}

static void answer(struct fake_conn *c, const struct str *args, size_t n)
{
    struct fake_valkey *f = c->server;

    if (str_eq(args[0], STR("AUTH"))) {
        f->n_auth++;
        remember(f->last_auth, sizeof(f->last_auth), args, n);
        say(c, str_of(f->auth == NULL ? "+OK\r\n" : f->auth));
    } else if (str_eq(args[0], STR("SELECT"))) {
        f->n_select++;
        remember(f->last_select, sizeof(f->last_select), args, n);
        say(c, str_of(f->select == NULL ? "+OK\r\n" : f->select));
    } else if (str_eq(args[0], STR("SCRIPT"))) {
        f->n_load++;
        if (f->load == NULL)
            say_sha1(c);
        else
            say(c, str_of(f->load));
    } else if (str_eq(args[0], STR("EVALSHA"))) {
        f->n_charge++;
        say_charge(c, args, n, f->n_noscript > 0 ? "-NOSCRIPT No matching script.\r\n" : f->charge);
        f->n_noscript -= f->n_noscript > 0;
    } else {
        CU_ASSERT_TRUE_FATAL(str_eq(args[0], STR("EVAL")));
        f->n_eval++;
        CU_ASSERT_TRUE(str_eq(args[1], rate_script_source()));
        say_charge(c, args, n, f->eval);
    }
}

/* "<mark><number>\r\n" at *at. False: not there yet. */
static bool header(const struct fake_conn *c, size_t *at, char mark, size_t *number)
{
    const char *end = memchr(c->in + *at, '\n', c->in_len - *at);

    if (end == NULL)
        return false;
    CU_ASSERT_EQUAL_FATAL(c->in[*at], mark);
    *number = strtoul(c->in + *at + 1, NULL, 10);
    *at = (size_t)(end - c->in) + 1;
    return true;
}

/* Bytes of the command that the input begins with; 0: it is not whole yet. */
static size_t command(const struct fake_conn *c, struct str *args, size_t *n)
{
    size_t at = 0, len;

    if (!header(c, &at, '*', n))
        return 0;
    CU_ASSERT_TRUE_FATAL(*n > 0 && *n <= ARGUMENTS_MAX);
    for (size_t i = 0; i < *n; i++) {
        if (!header(c, &at, '$', &len) || c->in_len - at < len + 2)
            return 0;
        args[i] = (struct str){c->in + at, len};
        at += len + 2;
    }
    return at;
}

static void on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct fake_conn *c = w->data;
    struct str args[ARGUMENTS_MAX];
    ssize_t got = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
    size_t n, used;

    (void)loop;
    (void)events;
    if (got <= 0) {
        drop(c);
        return;
    }
    c->in_len += (size_t)got;
    while (!c->ends && (used = command(c, args, &n)) > 0) {
        answer(c, args, n);
        c->in_len -= used;
        memmove(c->in, c->in + used, c->in_len);
    }
}

static void on_accept(struct ev_loop *loop, ev_io *w, int events)
{
    struct fake_valkey *f = w->data;
    int fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void)events;
    if (fd < 0)
        return;
    f->n_accepted++;
    for (size_t i = 0; i < FAKE_CONNS_MAX && !f->closes_at_once; i++) {
        struct fake_conn *c = &f->conns[i];

        if (c->fd >= 0)
            continue;
        c->server = f;
        c->fd = fd;
        c->ends = false;
        c->in_len = c->out_len = c->out_at = 0;
        ev_io_init(&c->read, on_readable, fd, EV_READ);
        ev_idle_init(&c->talk, on_talk);
        c->read.data = c->talk.data = c;
        ev_io_start(loop, &c->read);
        return;
    }
    CU_ASSERT_TRUE(f->closes_at_once);
    close(fd);
}

static void listen_unix(struct fake_valkey *f)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    memcpy(name.sun_path, f->path, strlen(f->path));
    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CU_ASSERT_EQUAL_FATAL(bind(f->listener, (const struct sockaddr *)&name, sizeof(name)), 0);
}

static void listen_tcp(struct fake_valkey *f)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons(f->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(name);
    const int on = 1;

    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CU_ASSERT_EQUAL(setsockopt(f->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    CU_ASSERT_EQUAL_FATAL(bind(f->listener, (const struct sockaddr *)&name, sizeof(name)), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(f->listener, (struct sockaddr *)&name, &len), 0);
    f->port = ntohs(name.sin_port);
}

void fake_valkey_return(struct fake_valkey *f)
{
    if (f->path[0] != '\0')
        listen_unix(f);
    else
        listen_tcp(f);
    CU_ASSERT_EQUAL_FATAL(listen(f->listener, 16), 0);
    ev_io_init(&f->accepting, on_accept, f->listener, EV_READ);
    f->accepting.data = f;
    ev_io_start(f->loop, &f->accepting);
}

void fake_valkey_start(struct fake_valkey *f, struct ev_loop *loop, bool tcp)
{
    *f = (struct fake_valkey){.loop = loop, .conns = calloc(FAKE_CONNS_MAX, sizeof(*f->conns))};
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->conns);
    for (size_t i = 0; i < FAKE_CONNS_MAX; i++)
        f->conns[i].fd = -1;
    if (!tcp) {
        snprintf(f->dir, sizeof(f->dir), "/tmp/valkey-test-XXXXXX");
        CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(f->dir));
        snprintf(f->path, sizeof(f->path), "%s/valkey.sock", f->dir);
    }
    fake_valkey_return(f);
}

void fake_valkey_leave(struct fake_valkey *f)
{
    for (size_t i = 0; i < FAKE_CONNS_MAX; i++)
        if (f->conns[i].fd >= 0)
            drop(&f->conns[i]);
    if (f->listener < 0)
        return;
    ev_io_stop(f->loop, &f->accepting);
    close(f->listener);
    f->listener = -1;
    if (f->path[0] != '\0')
        unlink(f->path);
}

void fake_valkey_stop(struct fake_valkey *f)
{
    fake_valkey_leave(f);
    if (f->dir[0] != '\0')
        rmdir(f->dir);
    free(f->conns);
}

void fake_valkey_say(struct fake_valkey *f, struct str text)
{
    for (size_t i = 0; i < FAKE_CONNS_MAX; i++)
        if (f->conns[i].fd >= 0)
            say(&f->conns[i], text);
}

unsigned fake_valkey_segments(const struct fake_valkey *f)
{
    for (size_t i = 0; i < FAKE_CONNS_MAX; i++) {
        struct tcp_info info = {0};
        socklen_t len = sizeof(info);

        if (f->conns[i].fd < 0)
            continue;
        CU_ASSERT_EQUAL(getsockopt(f->conns[i].fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
        return info.tcpi_data_segs_in;
    }
    return 0;
}
