/* What the files of the Valkey client share: the connection's state, the calls in flight, and the glue to hiredis. */
#ifndef SPOA_STORE_VALKEY_PRIV_H
#define SPOA_STORE_VALKEY_PRIV_H

#include <hiredis/async.h>
#include <pthread.h>

#include "spoa/store/valkey.h"

enum {
    VALKEY_RETRY_MIN_MS = 50,
    VALKEY_REPLY_MAX = 1024,   /* bytes of one answer that are kept; the script's are shorter, error texts are cut */
    VALKEY_UNREAD_MAX = 16384, /* bytes of an answer that has not ended yet */
    VALKEY_TEXT_MAX = 200,     /* bytes of a server's error text that are shown */
    VALKEY_TROUBLE_MAX = 512,
    VALKEY_LINES_MAX = 6, /* log lines about trouble in a minute */
    VALKEY_SILENT_MAX = BREAKER_FAILURES, /* calls in a row without an answer after which a connection is replaced */
};

enum valkey_state {
    VALKEY_RESTING,    /* no connection until the phase timer rings */
    VALKEY_CONNECTING, /* the kernel connects, at most dial_timeout */
    VALKEY_GREETING,   /* AUTH, SELECT, SCRIPT LOAD are on their way */
    VALKEY_READY,
    VALKEY_ENDING, /* given up; the phase timer rings at once and frees the connection outside of hiredis' callbacks */
};

/* Why there is no connection. */
enum valkey_down { VALKEY_DOWN_LOST = 1, VALKEY_DOWN_UNREACHABLE = 2, VALKEY_DOWN_REFUSED = 4 };

/* One command that hiredis has a callback for. It stays here until then, also when its waiter has been told of a time-out. */
struct valkey_call {
    struct valkey_waiter *waiter;     /* NULL: nobody waits any more, the answer is ignored */
    struct valkey_call *next, **link; /* among the waiting, oldest deadline first; next also links the spare ones */
    struct rate_call *calls;
    size_t n;
    uint64_t deadline_us;
    bool as_eval; /* sent with the source */
};

struct valkey {
    struct ev_loop *loop;
    struct valkey_node *node;
    const struct clock *clock;
    struct valkey_counters *counters;

    /* the connection (valkey_conn.c) */
    enum valkey_state state;
    redisAsyncContext *ac; /* NULL: none */
    ev_timer phase;        /* ends each state but READY */
    size_t n_attempts;
    uint64_t retry_ms;      /* the distance before the next attempt */
    uint64_t resolve_by_us; /* until when the first lookup is waited for; 0: it was not needed yet */
    uint64_t ready_us;      /* since when the connection was usable */
    bool load_refused;      /* EVAL serves, there is no point in loading again */
    bool loading;           /* a SCRIPT LOAD after NOSCRIPT is unanswered */

    /* what was said (valkey_say.c) */
    unsigned logged;                  /* kinds of valkey_down that the log has told since it told of a connection */
    uint64_t lines_since_us, n_lines; /* log lines about trouble in the running minute */
    uint64_t error_logged_us;         /* when an error answer was logged last; 0: never */
    pthread_mutex_t lock;             /* over trouble */
    char trouble[VALKEY_TROUBLE_MAX];

    /* hiredis on the loop (valkey_glue.c) */
    ev_io read, write;
    ev_prepare flush; /* never started, only fed: see valkey_glue.c */
    bool writing;     /* within redisAsyncHandleWrite */
    redisReply reply; /* the one answer that is being looked at */
    char reply_text[VALKEY_REPLY_MAX + 1];

    /* calls (valkey.c) */
    ev_timer overdue;
    struct valkey_call *waiting, **waiting_end;
    struct valkey_call *spare;
    size_t n_made;            /* of pool, in use or spare */
    size_t n_overdue;         /* on their way with nobody waiting */
    size_t n_silent;          /* time-outs since the connection's last answer */
    struct valkey_call *pool; /* VALKEY_CALLS_MAX; touched as they are needed */
    struct buf command;
    char sha1[41];
};

/* valkey_glue.c */
void valkey_glue_init(struct valkey *v);
/* Takes the connection that hiredis has begun. */
void valkey_glue_attach(struct valkey *v, redisAsyncContext *ac);
/* Ends the connection at once; callbacks of commands in flight run with a NULL answer. Never within a callback of hiredis. */
void valkey_glue_discard(struct valkey *v);
/* Queues v->command. False: the connection can't be used any more (no memory); *queued then says whether fn will still be called. */
bool valkey_glue_send(struct valkey *v, redisCallbackFn *fn, void *privdata, bool *queued);

/* valkey_conn.c */
void valkey_conn_init(struct valkey *v);
/* The connection is of no use any more: usable no longer at once, freed soon, tried again later. Anywhere, also within callbacks. */
void valkey_conn_drop(struct valkey *v, enum valkey_down kind, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* hiredis tells a command that the connection has ended. True: this is the first to hear it. */
bool valkey_conn_ended(struct valkey *v, const redisAsyncContext *ac);
/* It has ended because of an answer of the wrong form. */
bool valkey_conn_unreadable(const redisAsyncContext *ac);
/* SCRIPT LOAD on a usable connection; at most one at a time. */
void valkey_conn_load(struct valkey *v);

/* valkey_say.c */
void valkey_say_nothing_yet(struct valkey *v);
void valkey_say_up(struct valkey *v);
void valkey_say_down(struct valkey *v, enum valkey_down kind, const char *why);
/* An error answer to a call: the first in a minute, because those of one cause come by the thousand. */
void valkey_say_error(struct valkey *v, struct str answer);
/* The server's text for a person: printable, cut, without the password. */
void valkey_say_printable(const struct valkey *v, struct str text, char out[static VALKEY_TEXT_MAX + 1]);

/* valkey.c: writes the command over what is in b. */
void valkey_command_arguments(struct buf *b, const struct str *arguments, size_t n);

#endif
