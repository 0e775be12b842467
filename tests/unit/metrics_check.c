/* A reader of the Prometheus text format that knows only what our scrapes may contain. */
#include "tests/unit/metrics_check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/map.h"

enum { LABELS_MAX = 16 };

struct label {
    struct str name, value; /* value as it is escaped */
};

struct check {
    struct arena arena;
    struct map families, series;
    struct str help;   /* the family whose HELP is the line before */
    struct str family; /* the family that samples belong to now */
    bool is_histogram;
    double bound, buckets; /* of the bucket before */
};

/* Adds key; false when it was there already. */
static bool is_new(struct map *m, struct str key)
{
    void *existing;

    return map_add(m, key, m, &existing) && existing == NULL;
}

static size_t name_len(struct str s)
{
    size_t n = 0;

    while (n < s.len && (ascii_is_alpha(s.p[n]) || s.p[n] == '_' || (n > 0 && ascii_is_digit(s.p[n]))))
        n++;
    return n;
}

static bool is_escaped_text(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] == '\\' && (++i == s.len || (s.p[i] != '\\' && s.p[i] != 'n')))
            return false;
    return true;
}

static const char *help_line(struct check *c, struct str line)
{
    size_t blank = str_find_byte(line, ' ');
    struct str name = str_sub(line, 0, blank);

    if (blank == SIZE_MAX || blank + 1 == line.len)
        return "HELP without a text";
    if (name.len == 0 || name_len(name) != name.len)
        return "bad family name";
    if (!is_escaped_text(line))
        return "bad escape in HELP";
    if (!is_new(&c->families, name))
        return "family given twice";
    c->help = name;
    c->family = STR_NONE;
    return NULL;
}

static const char *type_line(struct check *c, struct str line)
{
    size_t blank = str_find_byte(line, ' ');
    struct str name = str_sub(line, 0, blank), type = str_sub(line, blank == SIZE_MAX ? blank : blank + 1, line.len);

    if (c->help.len == 0 || !str_eq(name, c->help))
        return "TYPE without the HELP of the same family before it";
    if (!str_eq(type, STR("counter")) && !str_eq(type, STR("gauge")) && !str_eq(type, STR("histogram")))
        return "no counter, gauge or histogram";
    if (str_ends(name, STR("_total")) != str_eq(type, STR("counter")))
        return "counters end in _total, others do not";
    c->family = name;
    c->is_histogram = str_eq(type, STR("histogram"));
    c->bound = -INFINITY;
    c->buckets = 0;
    c->help = STR_NONE;
    return NULL;
}

/* Cuts name="value" from the front of *rest. */
static const char *label_cut(struct str *rest, struct label *out)
{
    size_t at = name_len(*rest);

    out->name = str_sub(*rest, 0, at);
    if (at == 0 || str_starts(out->name, STR("__")))
        return "bad label name";
    *rest = str_sub(*rest, at, rest->len);
    if (!str_starts(*rest, STR("=\"")))
        return "a label's value is not quoted";
    for (at = 2; at < rest->len && rest->p[at] != '"'; at++)
        if (rest->p[at] == '\\' && (++at == rest->len || memchr("\\\"n", rest->p[at], 3) == NULL))
            return "bad escape in a label's value";
    if (at >= rest->len)
        return "a label's value does not end";
    out->value = str_sub(*rest, 2, at);
    *rest = str_sub(*rest, at + 1, rest->len);
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

/* Cuts {...} from the front of *rest; labels come back sorted. */
static const char *labels_cut(struct str *rest, struct label *labels, size_t *n)
{
    const char *fault = NULL;

    *n = 0;
    if (!str_starts(*rest, STR("{")))
        return NULL;
    do {
        *rest = str_sub(*rest, 1, rest->len);
        fault = *n == LABELS_MAX ? "too many labels" : label_cut(rest, &labels[(*n)++]);
    } while (fault == NULL && str_starts(*rest, STR(",")));
    if (fault != NULL)
        return fault;
    if (!str_starts(*rest, STR("}")))
        return "labels do not end";
    *rest = str_sub(*rest, 1, rest->len);
    qsort(labels, *n, sizeof(*labels), by_name);
    for (size_t i = 1; i < *n; i++)
        if (str_eq(labels[i - 1].name, labels[i].name))
            return "a label given twice";
    return NULL;
}

static bool is_number(struct str s, double *out)
{
    char text[64], *end;

    if (s.len == 0 || s.len >= sizeof(text) || s.p[0] == ' ')
        return false;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    errno = 0;
    *out = strtod(text, &end);
    return end == text + s.len;
}

/* The sample of a histogram; suffix: its name behind the family's. */
static const char *bucket_line(struct check *c, struct str suffix, const struct label *labels, size_t n, double number)
{
    double bound;

    if (str_eq(suffix, STR("_count")) && n == 0)
        return c->bound < INFINITY || number != c->buckets ? "a _count that is not the bucket +Inf" : NULL;
    if (!str_eq(suffix, STR("_bucket")) || n != 1 || !str_eq(labels[0].name, STR("le")) || !is_number(labels[0].value, &bound))
        return "no sample of a histogram";
    if (!(bound > c->bound) || !(number >= c->buckets))
        return "buckets that do not rise";
    c->bound = bound;
    c->buckets = number;
    return NULL;
}

static const char *sample_line(struct check *c, struct str line)
{
    struct label labels[LABELS_MAX];
    struct str rest = str_sub(line, name_len(line), line.len), name = str_sub(line, 0, name_len(line));
    const char *fault;
    struct buf key;
    char *storage;
    double number;
    size_t n;

    if (c->family.len == 0 || (c->is_histogram ? !str_starts(name, c->family) : !str_eq(name, c->family)))
        return "a sample outside its family";
    fault = labels_cut(&rest, labels, &n);
    if (fault != NULL)
        return fault;
    if (!str_starts(rest, STR(" ")) || !is_number(str_sub(rest, 1, rest.len), &number))
        return "no number behind one blank";
    fault = c->is_histogram ? bucket_line(c, str_sub(name, c->family.len, name.len), labels, n, number) : NULL;
    if (fault != NULL)
        return fault;
    storage = arena_take_bytes(&c->arena, line.len + LABELS_MAX);
    if (storage == NULL)
        return "no memory";
    buf_init(&key, storage, line.len + LABELS_MAX);
    buf_put(&key, name);
    for (size_t i = 0; i < n; i++) {
        buf_put_byte(&key, '\n');
        buf_put(&key, labels[i].name);
        buf_put_byte(&key, '=');
        buf_put(&key, labels[i].value);
    }
    return is_new(&c->series, buf_str(&key)) ? NULL : "series given twice";
}

static const char *check_line(struct check *c, struct str line)
{
    if (!str_is_utf8(line))
        return "not UTF-8";
    if (str_starts(line, STR("# HELP ")))
        return help_line(c, str_sub(line, 7, line.len));
    if (str_starts(line, STR("# TYPE ")))
        return type_line(c, str_sub(line, 7, line.len));
    return sample_line(c, line);
}

bool metrics_check(struct str text, char *why, size_t why_cap)
{
    struct check c = {.help = STR_NONE};
    const char *fault = NULL;
    unsigned n_lines = 0;

    why[0] = '\0';
    arena_init(&c.arena, 65536, 0);
    map_init(&c.families, &c.arena);
    map_init(&c.series, &c.arena);
    while (fault == NULL && text.len > 0) {
        size_t end = str_find_byte(text, '\n');

        n_lines++;
        fault = end == SIZE_MAX ? "no line end" : check_line(&c, str_sub(text, 0, end));
        text = str_sub(text, end == SIZE_MAX ? end : end + 1, text.len);
    }
    if (fault != NULL)
        snprintf(why, why_cap, "line %u: %s", n_lines, fault);
    arena_release(&c.arena);
    return fault == NULL;
}

struct str metrics_find(struct str text, const char *series)
{
    while (text.len > 0) {
        size_t end = str_find_byte(text, '\n');
        struct str line = str_sub(text, 0, end), name = str_of(series);

        if (str_starts(line, name) && line.len > name.len && line.p[name.len] == ' ')
            return str_sub(line, name.len + 1, line.len);
        text = str_sub(text, end == SIZE_MAX ? end : end + 1, text.len);
    }
    return STR_NONE;
}
