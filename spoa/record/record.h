/* One access record as HAProxy sends it: fields of schemas/record.def. */
#ifndef SPOA_RECORD_RECORD_H
#define SPOA_RECORD_RECORD_H

#include "spoa/record/rec.h"

enum record_field {
#define RECORD_ROW(id, format, meaning) RECORD_##id,
#include "schemas/record.def"
#undef RECORD_ROW
    RECORD_N_FIELDS
};

/* Borrowed from the line. */
struct record {
    struct str fields[RECORD_N_FIELDS];
    bool has_rec; /* an agent decided */
    struct rec rec;
    enum decision decision; /* rec's, or what ended the request later; meaningful where has_rec */
};

/* False when the line has another version or shape. */
MUSTUSE bool record_parse(struct str line, struct record *out);
/* A number of the record; fallback where HAProxy had none. */
int64_t record_number(const struct record *r, enum record_field field, int64_t fallback);

#endif
