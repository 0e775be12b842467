/* The variables of an ACK: one setter for each row of schemas/wire.def, named after it. */
#ifndef SPOA_REQUEST_VARS_H
#define SPOA_REQUEST_VARS_H

#include "spoa/wire/frame.h"

#define SETTER_INT(id, scope, name)                                                                                                          \
    static inline void set_##id(struct buf *b, int64_t value)                                                                                \
    {                                                                                                                                        \
        spop_put_set_int(b, SPOP_SCOPE_##scope, name, value);                                                                                \
    }
#define SETTER_STR(id, scope, name)                                                                                                          \
    static inline void set_##id(struct buf *b, struct str value)                                                                             \
    {                                                                                                                                        \
        spop_put_set_str(b, SPOP_SCOPE_##scope, name, value);                                                                                \
    }
#define SETTER_BIN(id, scope, name)                                                                                                          \
    static inline void set_##id(struct buf *b, struct str value)                                                                             \
    {                                                                                                                                        \
        spop_put_set_bin(b, SPOP_SCOPE_##scope, name, value);                                                                                \
    }
#define WIRE_VAR(id, scope, name, type, max_len, meaning) SETTER_##type(id, scope, name)
#include "schemas/wire.def"
#undef SETTER_INT
#undef SETTER_STR
#undef SETTER_BIN

#endif
