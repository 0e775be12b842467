/* The sockets that children write their lines to: whole lines come out, each of one child. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "spoa/launcher/sources.h"
#include "tests/unit/refuse_memory.h"

enum { N_LINES = 2000, LINE_MAX_BYTES = 16384 };

struct rig {
    struct ev_loop *loop;
    struct sources sources;
    json_t *lines; /* passed on so far */
};

static void note_line(void *ctx, struct str line)
{
    struct rig *r = ctx;

    CU_ASSERT_EQUAL(json_array_append_new(r->lines, json_stringn(line.p, line.len)), 0);
}

static void rig_open(struct rig *r)
{
    *r = (struct rig){.loop = ev_loop_new(EVFLAG_AUTO), .lines = json_array()};
    CU_ASSERT_PTR_NOT_NULL_FATAL(r->loop);
    sources_init(&r->sources, r->loop, note_line, r);
}

static int rig_source(struct rig *r)
{
    struct err e;
    int fd = -1;

    err_clear(&e);
    CU_ASSERT_FATAL(sources_open(&r->sources, &fd, &e));
    return fd;
}

/* wanted: joined by '|'. */
static void rig_close(struct rig *r, const char *wanted)
{
    char text[256] = "";
    size_t i;
    json_t *line;

    sources_release(&r->sources);
    CU_ASSERT_PTR_NULL(r->sources.first);
    json_array_foreach(r->lines, i, line)
    {
        strncat(text, i > 0 ? "|" : "", sizeof(text) - strlen(text) - 1);
        strncat(text, json_string_value(line), sizeof(text) - strlen(text) - 1);
    }
    CU_ASSERT_STRING_EQUAL(text, wanted);
    json_decref(r->lines);
    ev_loop_destroy(r->loop);
}

static void put(int fd, const char *text)
{
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void lines_never_mix(void)
{
    struct rig r;

    rig_open(&r);
    const int one = rig_source(&r), two = rig_source(&r);
    put(one, "one: be");
    put(two, "two: whole\ntwo: unfin");
    ev_run(r.loop, EVRUN_NOWAIT);
    put(one, "gin\n");
    ev_run(r.loop, EVRUN_NOWAIT);
    close(two);
    ev_run(r.loop, EVRUN_NOWAIT);
    put(one, "one: last words");
    close(one);
    rig_close(&r, "two: whole|one: begin|two: unfin|one: last words");
}

static void they_are_read_on_demand(void)
{
    struct rig r;

    rig_open(&r);
    const int fd = rig_source(&r);
    put(fd, "a child's word\n");
    sources_read(&r.sources);
    note_line(&r, STR("what is said about it"));
    close(fd);
    rig_close(&r, "a child's word|what is said about it");
}

/* As HAProxy writes: one attempt, no waiting, a length from less than a page to several. */
static void a_line_is_taken_whole_or_not_at_all(void)
{
    static const size_t lengths[] = {300, 6500, LINE_MAX_BYTES, 900, 9000, 4097, 12300};
    static char text[LINE_MAX_BYTES];
    size_t n_written = 0, n_refused = 0;
    struct rig r;

    memset(text, 'x', sizeof(text));
    rig_open(&r);
    const int fd = rig_source(&r);
    CU_ASSERT_FATAL(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    for (size_t i = 0; i < N_LINES; i++) {
        const size_t len = lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];

        text[len - 1] = '\n';
        const ssize_t n = write(fd, text, len);
        text[len - 1] = 'x';
        CU_ASSERT(n == (ssize_t)len || n < 0);
        n_written += n > 0;
        n_refused += n < 0;
        if (i % 50 == 49)
            ev_run(r.loop, EVRUN_NOWAIT);
    }
    CU_ASSERT(n_written > 0 && n_refused > 0);
    close(fd);
    for (size_t i = 0; i < N_LINES && r.sources.first != NULL; i++)
        sources_read(&r.sources);
    CU_ASSERT_EQUAL(json_array_size(r.lines), n_written);
    json_array_clear(r.lines);
    rig_close(&r, "");
}

static void torn_json_is_left_out(void)
{
    char text[512];
    int before = dup(STDERR_FILENO), logged[2];
    struct rig r;

    CU_ASSERT_FATAL(before >= 0 && pipe(logged) == 0);
    rig_open(&r);
    const int fd = rig_source(&r);
    put(fd, "{\"msg\":\"access\"}\n{\"msg\":\"acc");
    close(fd);
    CU_ASSERT_FATAL(dup2(logged[1], STDERR_FILENO) >= 0);
    rig_close(&r, "{\"msg\":\"access\"}");
    CU_ASSERT_FATAL(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    close(logged[1]);
    const ssize_t n = read(logged[0], text, sizeof(text));
    CU_ASSERT(n > 0 && str_find((struct str){text, (size_t)n}, STR("\"event\":\"line_torn\"")) != SIZE_MAX);
    close(logged[0]);
}

static bool source_refused(void *arg, size_t n)
{
    struct sources s;
    struct err e;
    int fd = -1;

    err_clear(&e);
    sources_init(&s, arg, note_line, NULL);
    refuse_memory_of_ours(n);
    const bool opened = sources_open(&s, &fd, &e);
    const bool refused = refuse_memory_end();
    CU_ASSERT_EQUAL(opened, !refused);
    CU_ASSERT(opened || (e.code == ERR_NO_MEMORY && fd == -1));
    sources_release(&s);
    if (opened)
        close(fd);
    return refused;
}

static void no_source_without_memory(void)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);

    CU_ASSERT_PTR_NOT_NULL_FATAL(loop);
    CU_ASSERT(refuse_memory_everywhere(source_refused, loop) > 0);
    ev_loop_destroy(loop);
}

void test_sources_register(void)
{
    CU_pSuite s = CU_add_suite("sources", NULL, NULL);

    CU_add_test(s, "lines of several writers are never mixed, and an unfinished one is passed on at the end", lines_never_mix);
    CU_add_test(s, "a child's last words stand before what is said about its end", they_are_read_on_demand);
    CU_add_test(s, "a line is taken whole or not at all, however full the socket is", a_line_is_taken_whole_or_not_at_all);
    CU_add_test(s, "a JSON line in whose middle its writer ended is left out, and that is said", torn_json_is_left_out);
    CU_add_test(s, "without memory a source is not opened, and leaves nothing", no_source_without_memory);
}
