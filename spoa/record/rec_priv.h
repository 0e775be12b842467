/* What writing and reading of the agent's part share (rec_text.c, rec.c). */
#ifndef SPOA_RECORD_REC_PRIV_H
#define SPOA_RECORD_REC_PRIV_H

#include "spoa/record/rec.h"

/* Bytes that stand for themselves in a text: printable ASCII but '"' and '\\'; in one within a list neither does ','. */
extern const bool rec_plain[256], rec_plain_in_list[256];
/* Length of the escape that text begins with: of a quote, a backslash or a character, the halves of a pair together; 0 when it is none. */
size_t rec_escape_len(struct str text);

#endif
