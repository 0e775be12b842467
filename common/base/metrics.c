/* Prometheus text: appends whole lines to a bounded buffer and refuses what would make a scrape invalid. */
#include "common/base/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void metrics_init(struct metrics *m, size_t max_bytes)
{
    *m = (struct metrics){.max_bytes = max_bytes};
}

void metrics_release(struct metrics *m)
{
    free(m->p);
    *m = (struct metrics){0};
}

static void put(struct metrics *m, struct str s)
{
    if (m->failed || s.len > m->max_bytes - m->len) {
        m->failed = true;
        return;
    }
    if (s.len > m->cap - m->len) {
        size_t cap = m->cap == 0 ? 4096 : m->cap;
        char *p;

        while (cap - m->len < s.len)
            cap *= 2;
        if (cap > m->max_bytes)
            cap = m->max_bytes;
        p = realloc(m->p, cap);
        if (p == NULL) {
            m->failed = true;
            return;
        }
        m->p = p;
        m->cap = cap;
    }
    if (s.len > 0)
        memcpy(m->p + m->len, s.p, s.len);
    m->len += s.len;
}

static void put_cstr(struct metrics *m, const char *cstr)
{
    put(m, str_of(cstr));
}

static void put_escaped(struct metrics *m, struct str s, bool quotes)
{
    for (size_t at = 0, n; at < s.len; at += n == 0 ? 1 : n) {
        n = str_utf8_len(str_sub(s, at, s.len));
        if (n == 0)
            put_cstr(m, "\xef\xbf\xbd");
        else if (s.p[at] == '\\')
            put_cstr(m, "\\\\");
        else if (s.p[at] == '\n')
            put_cstr(m, "\\n");
        else if (s.p[at] == '"' && quotes)
            put_cstr(m, "\\\"");
        else
            put(m, str_sub(s, at, at + n));
    }
}

/* [a-zA-Z_][a-zA-Z0-9_]*, not beginning with the two underscores that Prometheus keeps for itself. */
static bool name_ok(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!ascii_is_alpha(name.p[i]) && name.p[i] != '_' && (i == 0 || !ascii_is_digit(name.p[i])))
            return false;
    return name.len > 0 && !str_starts(name, STR("__"));
}

static bool written_since(const struct metrics *m, size_t from, size_t to, struct str text)
{
    return str_find((struct str){m->p + from, to - from}, text) != SIZE_MAX;
}

void metrics_family(struct metrics *m, const char *name, enum metric_type type, const char *help)
{
    size_t start = m->len, type_line;

    m->family = name;
    if (!name_ok(str_of(name)) || str_ends(str_of(name), STR("_total")) != (type == METRIC_COUNTER))
        m->failed = true;
    put_cstr(m, "# HELP ");
    put_cstr(m, name);
    put_cstr(m, " ");
    put_escaped(m, str_of(help), false);
    put_cstr(m, "\n");
    type_line = m->len;
    put_cstr(m, "# TYPE ");
    put_cstr(m, name);
    put_cstr(m, " ");
    /* Values and help texts have no raw line ends, so the beginning of a TYPE line is found nowhere else. */
    if (!m->failed && written_since(m, 0, start, (struct str){m->p + type_line, m->len - type_line}))
        m->failed = true;
    put_cstr(m, type == METRIC_COUNTER ? "counter\n" : "gauge\n");
    /* From the line end on, so that the first series too has one before it. */
    m->family_at = m->failed ? 0 : m->len - 1;
}

static void put_number(struct metrics *m, double value)
{
    char text[32];

    if (isnan(value)) {
        put_cstr(m, "NaN");
        return;
    }
    if (isinf(value)) {
        put_cstr(m, value > 0 ? "+Inf" : "-Inf");
        return;
    }
    /* 15 digits read well (0.1); where they lose something, 17 do not. */
    snprintf(text, sizeof(text), "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof(text), "%.17g", value);
    put_cstr(m, text);
}

void metrics_sample(struct metrics *m, double value, const char *const *labels)
{
    size_t line = m->len;
    const char *open = "{";

    if (m->family == NULL)
        m->failed = true;
    if (m->failed)
        return;
    put_cstr(m, m->family);
    for (; labels != NULL && labels[0] != NULL; labels += 2, open = ",") {
        if (!name_ok(str_of(labels[0])))
            m->failed = true;
        put_cstr(m, open);
        put_cstr(m, labels[0]);
        put_cstr(m, "=\"");
        put_escaped(m, str_of(labels[1]), true);
        put_cstr(m, "\"");
    }
    if (*open == ',')
        put_cstr(m, "}");
    put_cstr(m, " ");
    /* The line end before it and the blank behind it make it this series and no other. */
    if (!m->failed && written_since(m, m->family_at, line, (struct str){m->p + line - 1, m->len - line + 1}))
        m->failed = true;
    put_number(m, value);
    put_cstr(m, "\n");
}
