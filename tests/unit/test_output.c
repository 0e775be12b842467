/* What an edge writes: lines cut out of streams, and the thread that writes them. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spoa/launcher/lines.h"
#include "spoa/launcher/output.h"
#include "tests/unit/cases.h"

/* Pipes and buffers this small are full after a few dozen lines. */
enum { SMALL_BYTES = 4096, LONG_STOP_MS = 60000, N_LINES = 2000 };

/* --- lines --- */

static json_t *found; /* the lines emitted so far */

static void note_line(void *ctx, struct str line)
{
    (void)ctx;
    CU_ASSERT_EQUAL(json_array_append_new(found, json_stringn(line.p, line.len)), 0);
}

static void check_split(const json_t *row, struct str text, size_t at)
{
    struct lines l;

    found = json_array();
    CU_ASSERT_FATAL(lines_init(&l, note_line, NULL));
    lines_feed(&l, str_sub(text, 0, at));
    lines_feed(&l, str_sub(text, at, text.len));
    lines_end(&l);
    CASE_CHECK(row, json_equal(found, json_object_get(row, "lines")));
    lines_release(&l);
    json_decref(found);
}

static void lines_at_every_boundary(void)
{
    json_t *rows = cases_load("tests/cases/launcher/lines.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const struct str text = case_str(row, "text");

        for (size_t at = 0; at <= text.len; at++)
            check_split(row, text, at);
    }
    json_decref(rows);
}

/* Feeds n times 'a', a tail and a second line, chunk bytes at once; returns the length of the first line. */
static size_t first_line_len(size_t n, const char *tail, size_t chunk)
{
    const size_t len = n + strlen(tail) + 8;
    char *text = malloc(len + 1);
    struct lines l;
    size_t first;

    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    memset(text, 'a', n);
    snprintf(text + n, len + 1 - n, "%s\nsecond\n", tail);
    found = json_array();
    CU_ASSERT_FATAL(lines_init(&l, note_line, NULL));
    for (size_t at = 0; at < len; at += chunk)
        lines_feed(&l, str_sub((struct str){text, len}, at, at + chunk));
    CU_ASSERT_EQUAL(json_array_size(found), 2);
    CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(found, 1)), "second");
    first = json_string_length(json_array_get(found, 0));
    lines_release(&l);
    json_decref(found);
    free(text);
    return first;
}

static void long_lines(void)
{
    static const size_t chunks[] = {1, 1000, 65536, 200000};

    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        CU_ASSERT_EQUAL(first_line_len(LINES_MAX_BYTES, "", chunks[i]), LINES_MAX_BYTES);
        CU_ASSERT_EQUAL(first_line_len(LINES_MAX_BYTES + 1, "", chunks[i]), LINES_MAX_BYTES - 1);
        CU_ASSERT_EQUAL(first_line_len(3 * LINES_MAX_BYTES, "", chunks[i]), LINES_MAX_BYTES - 1);
        /* Two bytes of the three-byte character would still fit. */
        CU_ASSERT_EQUAL(first_line_len(LINES_MAX_BYTES - 2, "\xe2\x82\xac", chunks[i]), LINES_MAX_BYTES - 2);
    }
}

/* --- the thread that writes --- */

struct rig {
    int read_fd, write_fd;
    struct output *output;
};

static struct rig rig_open(void)
{
    struct rig r;
    int fds[2];
    struct err e;

    err_clear(&e);
    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC) == 0 && fcntl(fds[1], F_SETPIPE_SZ, SMALL_BYTES) > 0);
    CU_ASSERT_FATAL(output_start(&r.output, fds[1], SMALL_BYTES, &e));
    r.read_fd = fds[0];
    r.write_fd = fds[1];
    return r;
}

/* Everything up to the end of the pipe, whose write end must be closed by then or by another thread. */
static struct str read_all(int fd, char *storage, size_t cap)
{
    size_t len = 0;
    ssize_t n;

    while ((n = read(fd, storage + len, cap - len)) > 0)
        len += (size_t)n;
    CU_ASSERT_EQUAL_FATAL(n, 0);
    return (struct str){storage, len};
}

static void put_number(struct output *o, unsigned i)
{
    char line[128];

    snprintf(line, sizeof(line), "%u %0100d", i, 0);
    output_line(o, str_of(line));
}

struct seen {
    unsigned n_lines, n_notes;
    unsigned long n_dropped;
    bool in_order, whole;
};

/* Numbered lines and notes about missing ones. */
static struct seen examine(struct str text)
{
    struct seen s = {.in_order = true, .whole = text.len > 0 && text.p[text.len - 1] == '\n'};
    unsigned long next = 0;

    while (text.len > 0) {
        const struct str line = str_sub(text, 0, str_find_byte(text, '\n'));
        const size_t at = str_find(line, STR("\"lines\":"));

        if (at != SIZE_MAX) {
            const unsigned long n = strtoul(line.p + at + 8, NULL, 10);

            s.n_notes++;
            s.n_dropped += n;
            next += n;
            s.whole =
                s.whole && str_find(line, STR("\"event\":\"output_dropped\"")) != SIZE_MAX && str_ends(line, STR("}"));
        } else {
            s.in_order = s.in_order && strtoul(line.p, NULL, 10) == next;
            s.whole = s.whole && line.len >= 102 && line.len <= 106;
            s.n_lines++;
            next++;
        }
        text = str_sub(text, line.len + 1, text.len);
    }
    return s;
}

struct reader {
    int fd;
    char storage[N_LINES * 128];
    struct str text;
};

static void *read_in_thread(void *arg)
{
    struct reader *r = arg;

    r->text = read_all(r->fd, r->storage, sizeof(r->storage));
    return NULL;
}

static void slow_reader(void)
{
    static struct reader reader;
    struct rig r = rig_open();
    pthread_t thread;
    struct seen s;

    /* Nobody reads: were a single call to block, this would never end. */
    for (unsigned i = 0; i < N_LINES; i++)
        put_number(r.output, i);
    CU_ASSERT_EQUAL(fcntl(r.write_fd, F_GETFL) & O_NONBLOCK, 0);
    reader.fd = r.read_fd;
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, read_in_thread, &reader) == 0);
    put_number(r.output, N_LINES);
    output_stop(&r.output, LONG_STOP_MS);
    close(r.write_fd);
    pthread_join(thread, NULL);
    s = examine(reader.text);
    CU_ASSERT(s.in_order && s.whole);
    CU_ASSERT(s.n_notes > 0 && s.n_dropped > 0);
    CU_ASSERT_EQUAL(s.n_lines + s.n_dropped, N_LINES + 1);
    close(r.read_fd);
}

static void too_long_for_the_buffer(void)
{
    char storage[SMALL_BYTES], line[SMALL_BYTES + 1];
    struct rig r = rig_open();
    struct str text;

    memset(line, 'a', sizeof(line));
    output_line(r.output, (struct str){line, sizeof(line)});
    output_stop(&r.output, LONG_STOP_MS);
    close(r.write_fd);
    text = read_all(r.read_fd, storage, sizeof(storage));
    CU_ASSERT(str_find(text, STR("\"lines\":1,")) != SIZE_MAX);
    close(r.read_fd);
}

static void non_blocking_stdout(void)
{
    static char storage[64 * 128];
    struct rig r = rig_open();
    struct seen s;
    size_t len = 0;

    CU_ASSERT_EQUAL(fcntl(r.write_fd, F_SETFL, O_NONBLOCK), 0);
    for (unsigned i = 0; i < 35; i++)
        put_number(r.output, i);
    while (len < 35 * 100) {
        const ssize_t n = read(r.read_fd, storage + len, sizeof(storage) - len);

        CU_ASSERT_FATAL(n > 0);
        len += (size_t)n;
    }
    output_stop(&r.output, LONG_STOP_MS);
    close(r.write_fd);
    len += read_all(r.read_fd, storage + len, sizeof(storage) - len).len;
    s = examine((struct str){storage, len});
    CU_ASSERT(s.in_order && s.whole);
    CU_ASSERT_EQUAL(s.n_lines, 35);
    close(r.read_fd);
}

static void reader_gone(void)
{
    struct rig r = rig_open();

    close(r.read_fd);
    for (unsigned i = 0; i < N_LINES; i++)
        put_number(r.output, i);
    output_stop(&r.output, LONG_STOP_MS);
    CU_ASSERT_PTR_NULL(r.output);
    output_stop(&r.output, LONG_STOP_MS);
    close(r.write_fd);
}

static void stuck_reader_at_the_end(void)
{
    struct rig r = rig_open();

    for (unsigned i = 0; i < N_LINES; i++)
        put_number(r.output, i);
    output_stop(&r.output, 1);
    CU_ASSERT_PTR_NULL(r.output);
    close(r.read_fd);
    close(r.write_fd);
}

void test_output_register(void)
{
    CU_pSuite s = CU_add_suite("output", NULL, NULL);

    CU_add_test(s, "a stream is cut into the same lines wherever its bytes are split", lines_at_every_boundary);
    CU_add_test(s, "a line over 64 KiB is cut between characters and the next one is whole", long_lines);
    CU_add_test(s, "a slow reader never holds up a writer: whole lines are dropped, counted, and the count is said",
                slow_reader);
    CU_add_test(s, "a line that no buffer holds is counted as dropped and ends nothing", too_long_for_the_buffer);
    CU_add_test(s, "a standard output that somebody made non-blocking loses nothing", non_blocking_stdout);
    CU_add_test(s, "a reader that is gone ends nothing", reader_gone);
    CU_add_test(s, "a reader that is stuck does not hold up the end", stuck_reader_at_the_end);
}
