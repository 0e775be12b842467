/* SPOP frames (HAProxy doc/SPOE.txt 3): reading and writing them in memory, no state, no socket. */
#ifndef SPOA_WIRE_FRAME_H
#define SPOA_WIRE_FRAME_H

#include "common/base/err.h"
#include "common/base/str.h"
#include "common/net/addr.h"

enum {
    SPOP_FRAME_MAX = 65532, /* what we announce: HAProxy's tune.bufsize 65536 less 4 */
    SPOP_FRAME_MIN = 256,   /* the least size that may be negotiated */
    SPOP_HEADER_MIN = 7,    /* type, flags and two ids: no frame is shorter */
    SPOP_LENGTH_BYTES = 4,  /* the length before each frame, network order, not counted in the frame's size */
};

enum spop_frame_type {
    SPOP_UNSET = 0, /* of the fragments that SPOP no longer has; still seen with ABORT */
    SPOP_HAPROXY_HELLO = 1,
    SPOP_HAPROXY_DISCONNECT = 2,
    SPOP_NOTIFY = 3,
    SPOP_AGENT_HELLO = 101,
    SPOP_AGENT_DISCONNECT = 102,
    SPOP_ACK = 103,
};

enum { SPOP_FLAG_FIN = 1, SPOP_FLAG_ABORT = 2 };

/* Status codes of DISCONNECT frames: the protocol's list, 0-13 and 99. */
enum spop_status {
    SPOP_STATUS_NORMAL = 0,
    SPOP_STATUS_IO = 1,
    SPOP_STATUS_TIMEOUT = 2,
    SPOP_STATUS_TOO_BIG = 3,
    SPOP_STATUS_INVALID = 4,
    SPOP_STATUS_NO_VERSION = 5,
    SPOP_STATUS_NO_FRAME_SIZE = 6,
    SPOP_STATUS_NO_CAPABILITIES = 7,
    SPOP_STATUS_BAD_VERSION = 8,
    SPOP_STATUS_BAD_FRAME_SIZE = 9,
    SPOP_STATUS_FRAGMENTED = 10,
    SPOP_STATUS_INTERLACED = 11,
    SPOP_STATUS_FRAME_ID = 12,
    SPOP_STATUS_RESOURCE = 13,
    SPOP_STATUS_UNKNOWN = 99,
};

enum spop_type {
    SPOP_NULL = 0,
    SPOP_BOOL = 1,
    SPOP_INT32 = 2,
    SPOP_UINT32 = 3,
    SPOP_INT64 = 4,
    SPOP_UINT64 = 5,
    SPOP_IPV4 = 6,
    SPOP_IPV6 = 7,
    SPOP_STR = 8,
    SPOP_BIN = 9,
};

/* Bytes are borrowed from the frame. */
struct spop_value {
    enum spop_type type;
    union {
        bool b;
        int64_t i;  /* INT32, INT64 */
        uint64_t u; /* UINT32, UINT64 */
        struct addr ip;
        struct str s;
    };
};

struct spop_frame {
    uint8_t type;
    uint32_t flags;
    uint64_t stream_id, frame_id;
    struct str payload;
};

/* The length before a frame, as sent: unchecked. */
uint32_t spop_frame_len(const char length[static SPOP_LENGTH_BYTES]);

/* bytes: one whole frame without its length. False (e: PROTOCOL) when it is cut. */
MUSTUSE bool spop_frame_parse(struct str bytes, struct spop_frame *out, struct err *e);

/* Each takes from the front of *in; false leaves *in and outputs untouched. */
MUSTUSE bool spop_get_value(struct str *in, struct spop_value *out);
MUSTUSE bool spop_get_kv(struct str *in, struct str *name, struct spop_value *out);
/* A message of a NOTIFY: its name and number of arguments, which follow as key-values. */
MUSTUSE bool spop_get_message(struct str *in, struct str *name, uint8_t *n_args);

/* Variable scopes of set-var actions. */
enum spop_scope {
    SPOP_SCOPE_proc = 0,
    SPOP_SCOPE_sess = 1,
    SPOP_SCOPE_txn = 2,
    SPOP_SCOPE_req = 3,
    SPOP_SCOPE_res = 4,
};

/* Writing: begin reserves the length and header and returns the offset of the frame for end, which fills the length
 * in. What does not fit sets buf.full. FIN is always set. */
size_t spop_put_begin(struct buf *b, enum spop_frame_type type, uint64_t stream_id, uint64_t frame_id);
void spop_put_end(struct buf *b, size_t begin);
void spop_put_kv_str(struct buf *b, const char *name, struct str value);
void spop_put_kv_u32(struct buf *b, const char *name, uint32_t value);
void spop_put_set_str(struct buf *b, enum spop_scope scope, const char *name, struct str value);
void spop_put_set_bin(struct buf *b, enum spop_scope scope, const char *name, struct str value);
void spop_put_set_int(struct buf *b, enum spop_scope scope, const char *name, int64_t value);

#endif
