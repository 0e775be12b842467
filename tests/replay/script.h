/* Replay scripts: text lines turned into a list of steps. The language is described in tests/replay/README.md. */
#ifndef TESTS_REPLAY_SCRIPT_H
#define TESTS_REPLAY_SCRIPT_H

#include "spoa/wire/frame.h"

enum { STEPS_MAX = 512, WIRE_MAX_BYTES = 1 << 20 };

enum step_kind {
    STEP_CONNECTION,        /* a fresh one, with fresh counters */
    STEP_SEND,              /* bytes: what HAProxy sends in one go, consecutive ">" lines joined */
    STEP_EXPECT,            /* bytes: the next frame we must have written */
    STEP_EXPECT_DISCONNECT, /* number: its status; the message's wording is free */
    STEP_HOLD,              /* the handler keeps NOTIFYs unanswered from here on */
    STEP_ANSWER,            /* stream_id, frame_id: answers a held one */
    STEP_AVAILABLE,         /* number: the status the handler reports to HELLOs */
    STEP_LEAVE,             /* the handler is about to end */
    STEP_REFUSE,            /* the handler takes no NOTIFY on */
    STEP_PAUSE,             /* the peer does not read what we write */
    STEP_RESUME,
    STEP_STOP,
    STEP_EOF,
    STEP_OPEN,   /* the connection lives */
    STEP_CLOSED, /* it ended, in order when bytes is empty, else with bytes in its error text */
    STEP_COUNT,  /* bytes: a counter's name; number: its value */
};

struct step {
    enum step_kind kind;
    unsigned line;
    struct str bytes;
    uint64_t number, stream_id, frame_id;
};

struct script {
    const char *file;
    struct step steps[STEPS_MAX];
    size_t n_steps;
    size_t sent_bytes;            /* all sends together */
    char storage[WIRE_MAX_BYTES]; /* behind the steps' bytes */
    struct buf wire;
};

/* Reads one file. False: what is wrong with which line was printed. */
MUSTUSE bool script_load(struct script *s, const char *file);

/* One line's words: blanks separate, quotes hold together. False: no more. */
bool script_word(struct str *line, struct str *word);
/* All of word as a number of at most 64 bits; a leading - gives two's complement. */
bool script_number(struct str word, uint64_t *out);
/* "STREAM:FRAME" */
bool script_ids(struct str word, uint64_t *stream_id, uint64_t *frame_id);

/* Appends the frame that line describes ("notify 1:2 [message] name=value ...", "hex 00 01 ..."). False: it is not
 * understood. */
MUSTUSE bool script_frame(struct buf *b, struct str line);

#endif
