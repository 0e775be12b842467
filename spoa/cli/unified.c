/* A unified diff: the shortest edit script (E. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986), cut into hunks. */
#include "spoa/cli/unified.h"

#include <stdlib.h>

enum { CONTEXT = 3, EDITS_MAX = 1000 };

struct side {
    struct str *lines; /* each with its newline, which the last may lack */
    bool *changed;     /* deleted from the old text, inserted into the new one */
    size_t n;
};

static bool split(struct str text, struct side *out)
{
    size_t n = 1;
    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == '\n';
    *out = (struct side){.lines = calloc(n, sizeof *out->lines), .changed = calloc(n, sizeof *out->changed)};
    if (out->lines == NULL || out->changed == NULL)
        return false;
    while (text.len > 0) {
        const size_t end = str_find_byte(text, '\n');
        const struct str line = str_sub(text, 0, end == SIZE_MAX ? text.len : end + 1);
        out->lines[out->n++] = line;
        str_skip(&text, line.len);
    }
    return true;
}

static void side_free(struct side *s)
{
    free(s->lines);
    free(s->changed);
}

/* The lines from `first` on that are left when beginnings and ends that are the same are taken away. */
struct middle {
    size_t first, n_old, n_new;
};

static struct middle find_middle(const struct side *old, const struct side *new)
{
    struct middle m = {.n_old = old->n, .n_new = new->n};
    while (m.first < old->n && m.first < new->n && str_eq(old->lines[m.first], new->lines[m.first]))
        m.first++;
    while (m.n_old > m.first && m.n_new > m.first && str_eq(old->lines[m.n_old - 1], new->lines[m.n_new - 1])) {
        m.n_old--;
        m.n_new--;
    }
    m.n_old -= m.first;
    m.n_new -= m.first;
    return m;
}

/* Reached old lines on each diagonal k = old - new, after d edits: row d has the diagonals from -d to d. */
static int *row_of(int *rows, int d)
{
    return rows + (size_t) d * (size_t) d + (size_t) d;
}

/* Whether the best way to diagonal k with d edits ends with an insertion (from k + 1) rather than a deletion (from k - 1). */
static bool inserts(const int *before, int d, int k)
{
    return k == -d || (k != d && before[k - 1] < before[k + 1]);
}

/* The number of edits, rows filled; -1 when there are more than EDITS_MAX. */
static int walk(const struct side *old, const struct side *new, struct middle m, int *rows)
{
    for (int d = 0; d <= EDITS_MAX; d++) {
        int *now = row_of(rows, d);
        const int *before = row_of(rows, d - (d > 0));
        for (int k = -d; k <= d; k += 2) {
            int x = d == 0 ? 0 : inserts(before, d, k) ? before[k + 1] : before[k - 1] + 1;
            while (x < (int) m.n_old && x - k >= 0 && x - k < (int) m.n_new &&
                   str_eq(old->lines[m.first + (size_t) x], new->lines[m.first + (size_t) (x - k)]))
                x++;
            now[k] = x;
            if (x >= (int) m.n_old && x - k >= (int) m.n_new)
                return d;
        }
    }
    return -1;
}

static void mark(struct side *old, struct side *new, struct middle m, int *rows, int n_edits)
{
    int k = (int) m.n_old - (int) m.n_new;
    for (int d = n_edits; d > 0; d--) {
        const int *before = row_of(rows, d - 1);
        if (inserts(before, d, k)) {
            k++;
            new->changed[m.first + (size_t) (before[k] - k)] = true;
        } else {
            k--;
            old->changed[m.first + (size_t) before[k]] = true;
        }
    }
}

static bool compare(struct side *old, struct side *new)
{
    const struct middle m = find_middle(old, new);
    int *rows = calloc((size_t) (EDITS_MAX + 1) * (EDITS_MAX + 1), sizeof *rows);
    if (rows == NULL)
        return false;
    const int n_edits = walk(old, new, m, rows);
    if (n_edits >= 0) {
        mark(old, new, m, rows, n_edits);
    } else {
        for (size_t i = 0; i < m.n_old; i++)
            old->changed[m.first + i] = true;
        for (size_t i = 0; i < m.n_new; i++)
            new->changed[m.first + i] = true;
    }
    free(rows);
    return true;
}

static void print_line(FILE *f, char mark, struct str line)
{
    putc(mark, f);
    fwrite(line.p, 1, line.len, f);
    if (!str_ends(line, STR("\n")))
        fprintf(f, "\n\\ No newline at end of file\n");
}

/* A place in both texts. */
struct at {
    size_t old, new;
};

static bool is_change(const struct side *old, const struct side *new, struct at at)
{
    return (at.old < old->n && old->changed[at.old]) || (at.new < new->n && new->changed[at.new]);
}

static struct at past_changes(const struct side *old, const struct side *new, struct at at)
{
    while (at.old < old->n && old->changed[at.old])
        at.old++;
    while (at.new < new->n && new->changed[at.new])
        at.new++;
    return at;
}

/* Where the hunk ends that begins at a change: behind its last change and the lines around it. */
static struct at hunk_end(const struct side *old, const struct side *new, struct at at)
{
    for (;;) {
        size_t n_same = 0;
        at = past_changes(old, new, at);
        struct at next = at;
        while (next.old < old->n && n_same <= 2 * CONTEXT && !is_change(old, new, next)) {
            next.old++;
            next.new++;
            n_same++;
        }
        if (n_same > 2 * CONTEXT || !is_change(old, new, next)) {
            const size_t tail = n_same < CONTEXT ? n_same : CONTEXT;
            return (struct at){at.old + tail, at.new + tail};
        }
        at = next;
    }
}

static void print_range(FILE *f, char sign, size_t first, size_t n)
{
    /* The line before where there is none. */
    fprintf(f, " %c%zu", sign, n == 0 ? first : first + 1);
    if (n != 1)
        fprintf(f, ",%zu", n);
}

static void print_hunk(FILE *f, const struct side *old, const struct side *new, struct at at, struct at end)
{
    fprintf(f, "@@");
    print_range(f, '-', at.old, end.old - at.old);
    print_range(f, '+', at.new, end.new - at.new);
    fprintf(f, " @@\n");
    while (at.old < end.old || at.new < end.new) {
        for (; at.old < end.old && old->changed[at.old]; at.old++)
            print_line(f, '-', old->lines[at.old]);
        for (; at.new < end.new && new->changed[at.new]; at.new++)
            print_line(f, '+', new->lines[at.new]);
        for (; at.old < end.old && !is_change(old, new, at); at.old++, at.new++)
            print_line(f, ' ', old->lines[at.old]);
    }
}

static void print(FILE *f, const struct side *old, const struct side *new)
{
    struct at at = {0, 0};
    while (at.old < old->n || at.new < new->n) {
        if (!is_change(old, new, at)) {
            at.old++;
            at.new++;
            continue;
        }
        /* Lines before a change are the same in both, so the same number fits in front of it. */
        const size_t lead = at.old < CONTEXT ? at.old : CONTEXT, lead_new = at.new < lead ? at.new : lead;
        const struct at end = hunk_end(old, new, at);
        print_hunk(f, old, new, (struct at){at.old - lead_new, at.new - lead_new}, end);
        at = end;
    }
}

bool unified_print(FILE *f, const char *old_name, const char *new_name, struct str old, struct str new)
{
    struct side a = {0}, b = {0};
    const bool ok = split(old, &a) && split(new, &b) && compare(&a, &b);
    if (ok && !str_eq(old, new)) {
        fprintf(f, "--- %s\n+++ %s\n", old_name, new_name);
        print(f, &a, &b);
    }
    side_free(&a);
    side_free(&b);
    return ok;
}
