/* The line of a request in the access log: one JSON object, members of schemas/log_fields.def. Pure. */
#ifndef SPOA_RECORD_ACCESS_LOG_H
#define SPOA_RECORD_ACCESS_LOG_H

#include "common/base/parse.h"
#include "spoa/record/outcome.h"

/* What every record that is accepted fits into: lists cost two bytes more an item, names of signals are few, the rest is copied. */
enum { ACCESS_LINE_MAX = 32 * 1024 };

/* Appends the line of a record that has a verdict, without newline. time: the inside of a JSON string, when the request had ended. sample_rate: that
 * the line was chosen by, in parts of RATE_WHOLE, which means that it was not. Whatever record_parse accepts becomes valid JSON. */
void access_log_render(const struct record *r, const struct outcome *outcome, struct str time, uint64_t sample_rate, struct buf *out);

#endif
