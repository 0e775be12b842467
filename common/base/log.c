/* The daemons' own log: builds a line on the stack and writes it at once, so lines of several threads never mix. */
#include "common/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/clock.h"

/* A line stays below PIPE_BUF: a pipe takes it whole or not at all. The parts' maxima leave the message its room. */
enum { LINE_MAX_BYTES = 2048, NAME_MAX_BYTES = 64, PATH_MAX_BYTES = 600 };

static struct {
    char component[NAME_MAX_BYTES];
    enum log_level min;
} settings = {.component = "", .min = LOG_LEVEL_INFO};

void log_init(const char *component, enum log_level min)
{
    snprintf(settings.component, sizeof(settings.component), "%s", component);
    settings.min = min;
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_DEBUG:
        return "debug";
    case LOG_LEVEL_INFO:
        return "info";
    case LOG_LEVEL_WARN:
        return "warn";
    case LOG_LEVEL_ERROR:
        break;
    }
    return "error";
}

/* The longest beginning of text, as found by shortening, whose JSON string takes at most room bytes. */
static void put_cut(struct buf *b, struct str text, size_t room)
{
    size_t cap = b->cap;

    if (b->cap - b->len > room)
        b->cap = b->len + room;
    for (;;) {
        buf_put_json(b, text);
        if (!b->full || text.len == 0)
            break;
        b->full = false;
        text = str_cut_utf8(text, text.len > room ? room : text.len - (text.len + 15) / 16);
    }
    b->cap = cap;
}

static void begin(struct buf *b, enum log_level level, const char *event)
{
    char now[25];

    clock_format_utc(clock_real_ms(&clock_system), now);
    buf_printf(b, "{\"time\":\"%s\",\"level\":\"%s\",\"component\":", now, level_name(level));
    put_cut(b, str_of(settings.component), NAME_MAX_BYTES * 2);
    buf_put_cstr(b, ",\"event\":");
    put_cut(b, str_of(event), NAME_MAX_BYTES * 2);
}

static void end(struct buf *b, struct str message)
{
    static const char tail[] = "}\n";
    int saved = errno;

    buf_put_cstr(b, ",\"message\":");
    put_cut(b, message, b->cap - b->len - (sizeof(tail) - 1));
    buf_put_cstr(b, tail);
    /* When standard error is gone there is nobody left to tell. */
    while (write(STDERR_FILENO, b->p, b->len) < 0 && errno == EINTR) {
    }
    errno = saved;
}

void log_event(enum log_level level, const char *event, const char *fmt, ...)
{
    char line[LINE_MAX_BYTES], message[LINE_MAX_BYTES] = "";
    struct buf b;
    va_list args;

    if (level < settings.min)
        return;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    buf_init(&b, line, sizeof(line));
    begin(&b, level, event);
    end(&b, str_of(message));
}

void log_err(enum log_level level, const char *event, const struct err *e)
{
    char line[LINE_MAX_BYTES];
    struct buf b;

    if (level < settings.min)
        return;
    buf_init(&b, line, sizeof(line));
    begin(&b, level, event);
    buf_printf(&b, ",\"code\":\"%s\",\"path\":", err_code_name(e->code));
    put_cut(&b, str_of(e->path), PATH_MAX_BYTES);
    if (e->line > 0)
        buf_printf(&b, ",\"line\":%u", e->line);
    if (e->column > 0)
        buf_printf(&b, ",\"column\":%u", e->column);
    end(&b, str_of(e->text));
}
