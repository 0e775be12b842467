/* Where the value of a JSON pointer (RFC 6901) stands in the document's text. For texts that jx_parse has accepted; any other bytes are read
 * within their bounds and end in "no place". No recursion, no memory. */
#ifndef COMMON_BASE_JSON_PLACE_H
#define COMMON_BASE_JSON_PLACE_H

#include "common/base/str.h"

struct json_place {
    size_t name;     /* offset of the member's name; that of the value for an array's item and for the document */
    size_t value;    /* offset of the value's first byte */
    bool is_nearest; /* what the pointer names is not there: this is the innermost object, array or value around it that is */
};

/* False: text is no JSON as far as it had to be read; *out is untouched. */
MUSTUSE bool json_place_find(struct str text, struct str pointer, struct json_place *out);

/* The offset behind the value that begins at `at`; SIZE_MAX when it does not end. */
size_t json_place_end(struct str text, size_t at);

/* `at` is the offset of a string. The offset of what stands for the byte at line and column (both from 1, columns count bytes) of the string's
 * decoded text, escape sequences counted; the end of the text is the closing quote. SIZE_MAX when the string has no such place. */
size_t json_place_in_string(struct str text, size_t at, unsigned line, unsigned column);

/* Line and column of an offset, both from 1; a column counts bytes. */
void json_place_position(struct str text, size_t offset, unsigned *line, unsigned *column);

#endif
