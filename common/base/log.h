/* The daemons' own log: one JSON object a line on standard error, for events, not for requests. */
#ifndef COMMON_BASE_LOG_H
#define COMMON_BASE_LOG_H

#include "common/base/err.h"
#include "common/base/str.h"

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

/* Process-wide, set once at start before any thread; component is "agent-0", "launcher", ... */
void log_init(const char *component, enum log_level min);

/* event: a stable snake_case name; fmt: the sentence for a person. Any thread; one write(2) a line, at most 2,048 bytes.
 * {"time":..,"level":"info","component":..,"event":..,"message":..} */
void log_event(enum log_level level, const char *event, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same with "path", "code" and, where known, "line" and "column" of e. */
void log_err(enum log_level level, const char *event, const struct err *e);

#endif
