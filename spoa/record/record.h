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
    unsigned agent; /* which one */
    struct rec rec;
    enum decision decision; /* HAProxy's word where it has one, else rec's; BAD_REQUEST without either: it never was a request */
};

/* False when the line has another version or shape; *out is undefined then. */
MUSTUSE bool record_parse(struct str line, struct record *out);
/* The same in two steps: record_split fills fields, has_rec and agent, which is all that is to be known of a record that another agent keeps;
 * record_read the rest. */
MUSTUSE bool record_split(struct str line, struct record *out);
MUSTUSE bool record_read(struct record *r);
/* What HAProxy's ring says in a record's place, of records that found no room in it: "<n> events dropped" with a NUL behind it. False: line is something
 * else; *n is untouched then. */
MUSTUSE bool record_dropped(struct str line, uint64_t *n);
/* HAProxy had nothing to say there. */
bool record_is_absent(const struct record *r, enum record_field field);
/* A number of the record; fallback where HAProxy had none. */
int64_t record_number(const struct record *r, enum record_field field, int64_t fallback);

#endif
