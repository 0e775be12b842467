/* hiredis' asynchronous client on libev.
 *
 * Why no adapter of hiredis': those ask the kernel for writability with each command. Here the read watcher stays on, a command feeds the flush
 * watcher, and libev calls that one, being of the lowest priority, after everything else that has happened in this turn of the loop: all commands
 * of a turn leave in one write. (It is fed instead of started so that commands of other prepare watchers are flushed in the same turn, too.)
 *
 * Answers are read into one fixed place. hiredis' own objects would cost an allocation each, have no bound, and it aborts the process on an answer
 * that nothing asked for: here such an answer, and any of a shape that no command of ours has, ends the connection as unreadable. */
#include <fcntl.h>

#include "spoa/store/valkey_priv.h"

#if HIREDIS_MAJOR >= 1
typedef size_t reader_count;
#else
typedef int reader_count;
#endif

static struct valkey *reading(const redisReadTask *task)
{
    return task->privdata;
}

static bool is_awaited(const redisReadTask *task)
{
    return reading(task)->ac->replies.head != NULL;
}

static redisReply *start_reply(const redisReadTask *task, int type)
{
    redisReply *r = &reading(task)->reply;

    *r = (redisReply){.type = type};
    return r;
}

/* hiredis can tell its user of one answer that nothing asked for: an error, before it ends the connection itself. */
static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    struct valkey *v = reading(task);
    redisReply *r;

    if (!is_awaited(task) && task->type != REDIS_REPLY_ERROR)
        return NULL;
    if (len > VALKEY_REPLY_MAX && task->type != REDIS_REPLY_ERROR)
        return start_reply(task, REDIS_REPLY_NIL); /* longer than any right one */
    r = start_reply(task, task->type);
    r->len = len > VALKEY_REPLY_MAX ? VALKEY_REPLY_MAX : len;
    r->str = v->reply_text;
    memcpy(r->str, text, r->len);
    r->str[r->len] = '\0';
    return r;
}

static void *create_array(const redisReadTask *task, reader_count n)
{
    (void)task;
    (void)n;
    return NULL;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    (void)value;
    return is_awaited(task) ? start_reply(task, REDIS_REPLY_INTEGER) : NULL;
}

static void *create_nil(const redisReadTask *task)
{
    return is_awaited(task) ? start_reply(task, REDIS_REPLY_NIL) : NULL;
}

#if HIREDIS_MAJOR >= 1
static void *create_double(const redisReadTask *task, double value, char *text, size_t len)
{
    (void)value;
    (void)text;
    (void)len;
    return create_nil(task);
}

static void *create_bool(const redisReadTask *task, int value)
{
    (void)value;
    return create_nil(task);
}
#endif

static void free_nothing(void *reply)
{
    (void)reply;
}

static redisReplyObjectFunctions reply_functions = {
    .createString = create_string,
    .createArray = create_array,
    .createInteger = create_integer,
    .createNil = create_nil,
#if HIREDIS_MAJOR >= 1
    .createDouble = create_double,
    .createBool = create_bool,
#endif
    .freeObject = free_nothing,
};

/* hiredis goes on for a moment after one of its callbacks has given the connection up. */
static bool is_given_up(const struct valkey *v)
{
    return v->state == VALKEY_ENDING || v->state == VALKEY_RESTING;
}

static void add_read(void *ctx)
{
    struct valkey *v = ctx;

    if (!is_given_up(v))
        ev_io_start(v->loop, &v->read);
}

static void del_read(void *ctx)
{
    struct valkey *v = ctx;

    ev_io_stop(v->loop, &v->read);
}

static void add_write(void *ctx)
{
    struct valkey *v = ctx;

    if (is_given_up(v))
        return;
    if (v->state == VALKEY_CONNECTING || v->writing)
        ev_io_start(v->loop, &v->write); /* to see the connection made; or the kernel's buffer is full */
    else if (!ev_is_active(&v->write))
        ev_feed_event(v->loop, &v->flush, EV_PREPARE);
}

static void del_write(void *ctx)
{
    struct valkey *v = ctx;

    ev_io_stop(v->loop, &v->write);
}

/* hiredis is about to close the descriptor. */
static void clean_up(void *ctx)
{
    struct valkey *v = ctx;

    ev_io_stop(v->loop, &v->read);
    ev_io_stop(v->loop, &v->write);
    ev_prepare_stop(v->loop, &v->flush); /* takes back what was fed */
    v->ac = NULL;
}

static void write_out(struct valkey *v)
{
    v->writing = true;
    redisAsyncHandleWrite(v->ac);
    v->writing = false;
}

static void on_flush(struct ev_loop *loop, ev_prepare *w, int events)
{
    (void)loop;
    (void)events;
    write_out(w->data);
}

static void on_writable(struct ev_loop *loop, ev_io *w, int events)
{
    (void)loop;
    (void)events;
    write_out(w->data);
}

static void on_readable(struct ev_loop *loop, ev_io *w, int events)
{
    struct valkey *v = w->data;

    (void)loop;
    (void)events;
    redisAsyncHandleRead(v->ac);
    if (v->ac != NULL && v->ac->c.reader->len - v->ac->c.reader->pos > VALKEY_UNREAD_MAX)
        valkey_conn_drop(v, VALKEY_DOWN_LOST, "an answer is over %d bytes long", VALKEY_UNREAD_MAX);
}

void valkey_glue_init(struct valkey *v)
{
    ev_init(&v->read, on_readable);
    ev_init(&v->write, on_writable);
    ev_prepare_init(&v->flush, on_flush);
    ev_set_priority(&v->flush, EV_MINPRI);
    v->read.data = v->write.data = v->flush.data = v;
}

void valkey_glue_attach(struct valkey *v, redisAsyncContext *ac)
{
    v->ac = ac;
    ac->data = v;
    ac->ev.data = v;
    ac->ev.addRead = add_read;
    ac->ev.delRead = del_read;
    ac->ev.addWrite = add_write;
    ac->ev.delWrite = del_write;
    ac->ev.cleanup = clean_up;
    ac->c.reader->fn = &reply_functions;
    ac->c.reader->privdata = v;
    (void)fcntl(ac->c.fd, F_SETFD, FD_CLOEXEC);
    ev_io_set(&v->read, ac->c.fd, EV_READ);
    ev_io_set(&v->write, ac->c.fd, EV_WRITE);
}

void valkey_glue_discard(struct valkey *v)
{
    if (v->ac != NULL)
        redisAsyncFree(v->ac);
}

/* hiredis 0.14 says nothing when it finds no memory for the callback or the bytes; every later answer would then reach the wrong caller. */
bool valkey_glue_send(struct valkey *v, redisCallbackFn *fn, void *privdata, bool *queued)
{
    const redisCallback *last;
    const int status = redisAsyncFormattedCommand(v->ac, fn, privdata, v->command.p, v->command.len);

    last = v->ac->replies.tail;
    *queued = last != NULL && last->fn == fn && last->privdata == privdata;
    return status == REDIS_OK && *queued && v->ac->c.err == 0;
}
