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
    free(m->keys);
    *m = (struct metrics){0};
}

char *metrics_take(struct metrics *m, size_t *len)
{
    char *text = m->failed ? NULL : m->p;

    if (text != NULL) {
        *len = m->len;
        m->p = NULL;
    }
    metrics_release(m);
    return text;
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

/* What stands for the n bytes at p (0: no UTF-8); a string without p: they stand for themselves. */
static struct str escape_of(const char *p, size_t n, bool quotes)
{
    if (n == 0)
        return STR("\xef\xbf\xbd");
    if (*p == '\\')
        return STR("\\\\");
    if (*p == '\n')
        return STR("\\n");
    return *p == '"' && quotes ? STR("\\\"") : STR_NONE;
}

static void put_escaped(struct metrics *m, struct str s, bool quotes)
{
    size_t written = 0;

    for (size_t at = 0, n; at < s.len; at += n) {
        struct str escape;

        n = str_utf8_len(str_sub(s, at, s.len));
        escape = escape_of(s.p + at, n, quotes);
        n = n == 0 ? 1 : n;
        if (escape.p == NULL)
            continue;
        put(m, str_sub(s, written, at));
        put(m, escape);
        written = at + n;
    }
    put(m, str_sub(s, written, s.len));
}

/* [a-zA-Z_][a-zA-Z0-9_]*, not beginning with the two underscores that Prometheus keeps for itself. */
static bool name_ok(struct str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!ascii_is_alpha(name.p[i]) && name.p[i] != '_' && (i == 0 || !ascii_is_digit(name.p[i])))
            return false;
    return name.len > 0 && !str_starts(name, STR("__"));
}

/* A name that must not come again, as a part of the text: where a series' name begins, which no two families share, there its family's does, too. */
struct metrics_key {
    size_t at, len; /* len 0: free */
    uint64_t hash;
};

/* FNV-1a. Names are the operator's own, so that nobody chooses collisions. */
static uint64_t key_hash(struct str s)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.p[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* The place of a key, or the free one that it may take. */
static struct metrics_key *key_find(const struct metrics *m, struct str text, uint64_t hash)
{
    for (size_t i = hash & (m->n_slots - 1);; i = (i + 1) & (m->n_slots - 1)) {
        struct metrics_key *k = &m->keys[i];

        if (k->len == 0 || (k->hash == hash && str_eq((struct str){m->p + k->at, k->len}, text)))
            return k;
    }
}

static bool keys_grow(struct metrics *m)
{
    struct metrics bigger = *m;

    bigger.n_slots = m->n_slots == 0 ? 256 : 2 * m->n_slots;
    bigger.keys = calloc(bigger.n_slots, sizeof(*bigger.keys));
    if (bigger.keys == NULL)
        return false;
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->keys[i].len != 0)
            *key_find(&bigger, (struct str){m->p + m->keys[i].at, m->keys[i].len}, m->keys[i].hash) = m->keys[i];
    free(m->keys);
    *m = bigger;
    return true;
}

/* What stands from `at` on is a name that fails the scrape when it comes again. */
static void key_add(struct metrics *m, size_t at)
{
    struct metrics_key *k;
    struct str text;
    uint64_t hash;

    if (m->failed)
        return;
    if (m->n_keys >= m->n_slots / 2 && !keys_grow(m)) {
        m->failed = true;
        return;
    }
    text = (struct str){m->p + at, m->len - at};
    hash = key_hash(text);
    k = key_find(m, text, hash);
    m->failed = k->len != 0;
    if (!m->failed) {
        *k = (struct metrics_key){at, text.len, hash};
        m->n_keys++;
    }
}

static const char *type_name(enum metric_type type)
{
    static const char *const names[] = {[METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};

    return names[type];
}

/* Whether a histogram would have samples of that name. */
static bool is_of_histogram(struct str name)
{
    return str_ends(name, STR("_bucket")) || str_ends(name, STR("_count")) || str_ends(name, STR("_sum"));
}

void metrics_family(struct metrics *m, const char *name, enum metric_type type, const char *help)
{
    size_t start;

    m->family = name;
    m->type = type;
    if (!name_ok(str_of(name)) || is_of_histogram(str_of(name)) || str_ends(str_of(name), STR("_total")) != (type == METRIC_COUNTER))
        m->failed = true;
    put_cstr(m, "# HELP ");
    put_cstr(m, name);
    put_cstr(m, " ");
    put_escaped(m, str_of(help), false);
    put_cstr(m, "\n");
    /* "# TYPE name" is the name of no series: they begin with a letter. */
    start = m->len;
    put_cstr(m, "# TYPE ");
    put_cstr(m, name);
    key_add(m, start);
    put_cstr(m, " ");
    put_cstr(m, type_name(type));
    put_cstr(m, "\n");
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
    /* Most numbers are counts, and a page can have thousands. */
    if (value >= 0 && value < 1e15 && value == (double)(uint64_t)value) {
        struct buf digits;

        buf_init(&digits, text, sizeof(text));
        buf_put_u64(&digits, (uint64_t)value);
        put(m, buf_str(&digits));
        return;
    }
    /* 15 digits read well (0.1); where they lose something, 17 do not. */
    snprintf(text, sizeof(text), "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof(text), "%.17g", value);
    put_cstr(m, text);
}

static void put_sample(struct metrics *m, const char *suffix, double value, const char *const *labels)
{
    size_t line = m->len;
    const char *open = "{";

    if (m->failed)
        return;
    put_cstr(m, m->family);
    put_cstr(m, suffix);
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
    key_add(m, line);
    put_cstr(m, " ");
    put_number(m, value);
    put_cstr(m, "\n");
}

void metrics_sample(struct metrics *m, double value, const char *const *labels)
{
    if (m->family == NULL || m->type == METRIC_HISTOGRAM)
        m->failed = true;
    put_sample(m, "", value, labels);
}

/* Finite numbers that rise, as text that other programs read as a number, too. */
static bool bounds_ok(const char *const *bounds, size_t n)
{
    double last = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        char *end;
        double bound = strtod(bounds[i], &end);

        if (end == bounds[i] || *end != '\0' || !isfinite(bound) || bound <= last)
            return false;
        last = bound;
    }
    return true;
}

void metrics_histogram(struct metrics *m, const char *const *bounds, const uint64_t *counts, size_t n)
{
    uint64_t sum = 0;

    if (m->family == NULL || m->type != METRIC_HISTOGRAM || !bounds_ok(bounds, n))
        m->failed = true;
    for (size_t i = 0; i <= n; i++) {
        sum += counts[i];
        put_sample(m, "_bucket", (double)sum, (const char *const[]){"le", i < n ? bounds[i] : "+Inf", NULL});
    }
    put_sample(m, "_count", (double)sum, NULL);
}
