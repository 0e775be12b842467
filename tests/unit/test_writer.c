/* The log writer: lines come out whole and in order; a slow reader costs lines, never time. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "spoa/record/writer.h"
#include "tests/unit/refuse_memory.h"

/* Reads to the end of file; the caller frees. */
static char *read_all(int fd, size_t *len)
{
    size_t cap = 1 << 16;
    char *p = malloc(cap);
    ssize_t n;
    *len = 0;
    while ((n = read(fd, p + *len, cap - *len)) > 0) {
        *len += (size_t) n;
        if (cap - *len < 4096)
            p = realloc(p, cap *= 2);
    }
    return p;
}

static void lines_come_out_in_order(void)
{
    int fds[2];
    struct writer w;
    struct err e;
    err_clear(&e);
    CU_ASSERT_FATAL(pipe(fds) == 0);
    CU_ASSERT_FATAL(writer_start(&w, fds[1], &e));
    writer_put(&w, STR("first"));
    writer_put(&w, STR(""));
    writer_put(&w, STR("third"));
    writer_stop(&w);
    close(fds[1]);
    size_t len;
    char *text = read_all(fds[0], &len);
    CU_ASSERT(str_eq((struct str){text, len}, STR("first\n\nthird\n")));
    CU_ASSERT_EQUAL(atomic_load(&w.n_lines), 3);
    CU_ASSERT_EQUAL(atomic_load(&w.n_dropped), 0);
    free(text);
    close(fds[0]);
}

struct reading {
    int fd;
    size_t n_lines;
};

static void *count_lines(void *arg)
{
    struct reading *r = arg;
    size_t len;
    char *text = read_all(r->fd, &len);
    for (size_t i = 0; i < len; i++)
        r->n_lines += text[i] == '\n';
    free(text);
    return NULL;
}

static void a_reader_that_rests_costs_lines_and_each_is_counted(void)
{
    int fds[2];
    struct writer w;
    struct err e;
    static char line[1000];
    err_clear(&e);
    memset(line, 'x', sizeof line);
    CU_ASSERT_FATAL(pipe(fds) == 0);
    CU_ASSERT_FATAL(writer_start(&w, fds[1], &e));
    /* Nobody reads: two queues and a pipe fill, the rest is dropped. */
    const size_t n_put = 3 * (size_t) WRITER_QUEUE_BYTES / sizeof line;
    for (size_t i = 0; i < n_put; i++)
        writer_put(&w, (struct str){line, sizeof line});
    CU_ASSERT(atomic_load(&w.n_dropped) > 0);

    struct reading r = {.fd = fds[0]};
    pthread_t reader;
    CU_ASSERT_FATAL(pthread_create(&reader, NULL, count_lines, &r) == 0);
    writer_stop(&w);
    close(fds[1]);
    pthread_join(reader, NULL);
    CU_ASSERT_EQUAL(r.n_lines, atomic_load(&w.n_lines));
    CU_ASSERT_EQUAL(atomic_load(&w.n_lines) + atomic_load(&w.n_dropped), n_put);
    close(fds[0]);
}

static void a_reader_that_does_not_read_does_not_hold_up_the_end(void)
{
    int logged[2], fds[2];
    static struct writer w;
    static char line[1000];
    struct err e;
    err_clear(&e);
    memset(line, 'x', sizeof line);
    CU_ASSERT_FATAL(pipe(logged) == 0 && pipe(fds) == 0);
    int before = dup(STDERR_FILENO);
    CU_ASSERT_FATAL(before >= 0 && writer_start(&w, fds[1], &e));
    const size_t n_put = 1000;
    for (size_t i = 0; i < n_put; i++)
        writer_put(&w, (struct str){line, sizeof line});
    CU_ASSERT_FATAL(dup2(logged[1], STDERR_FILENO) >= 0);
    writer_stop(&w);
    CU_ASSERT_FATAL(dup2(before, STDERR_FILENO) >= 0);
    CU_ASSERT(w.started);

    struct reading r = {.fd = fds[0]};
    pthread_t reader;
    CU_ASSERT_FATAL(pthread_create(&reader, NULL, count_lines, &r) == 0);
    writer_stop(&w);
    CU_ASSERT_FALSE(w.started);
    close(fds[1]);
    pthread_join(reader, NULL);
    CU_ASSERT_EQUAL(r.n_lines, n_put);
    close(before);
    close(logged[1]);
    size_t len;
    char *text = read_all(logged[0], &len);
    CU_ASSERT(str_find((struct str){text, len}, STR("\"event\":\"access_log_unread\"")) != SIZE_MAX);
    free(text);
    close(fds[0]);
    close(logged[0]);
}

static void lines_lost_on_a_full_device_are_counted_and_said_once(void)
{
    int logged[2], fds[2];
    struct writer w;
    struct err e;
    err_clear(&e);
    CU_ASSERT_FATAL(pipe(logged) == 0 && pipe(fds) == 0);
    int before = dup(STDERR_FILENO), fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CU_ASSERT_FATAL(before >= 0 && fd >= 0 && dup2(logged[1], STDERR_FILENO) >= 0);
    CU_ASSERT_FATAL(writer_start(&w, fd, &e));
    for (uint64_t n = 1; n <= 3; n++) {
        writer_put(&w, STR("lost"));
        /* A counter that took it for written would go down when it turns out to be lost. */
        CU_ASSERT_EQUAL(atomic_load(&w.n_lines), 0);
        while (atomic_load(&w.n_dropped) < n)
            sched_yield();
    }
    CU_ASSERT_EQUAL(atomic_load(&w.n_lines), 0);
    /* The device has room again. */
    CU_ASSERT_FATAL(dup2(fds[1], fd) >= 0);
    writer_put(&w, STR("written"));
    writer_stop(&w);
    CU_ASSERT_FATAL(dup2(before, STDERR_FILENO) >= 0);
    CU_ASSERT_EQUAL(atomic_load(&w.n_lines), 1);
    CU_ASSERT_EQUAL(atomic_load(&w.n_dropped), 3);
    close(before);
    close(fd);
    close(fds[1]);
    close(logged[1]);
    size_t len;
    char *text = read_all(fds[0], &len);
    CU_ASSERT(str_eq((struct str){text, len}, STR("written\n")));
    free(text);
    text = read_all(logged[0], &len);
    struct str log = {text, len};
    CU_ASSERT(str_find(log, STR("\"event\":\"access_log_failed\"")) != SIZE_MAX);
    CU_ASSERT_EQUAL(str_find_byte(log, '\n'), log.len - 1);
    free(text);
    close(fds[0]);
    close(logged[0]);
}

static bool start_refused(void *arg, size_t n)
{
    static struct writer w;
    struct err e;
    err_clear(&e);
    refuse_memory_of_ours(n);
    const bool started = writer_start(&w, *(int *) arg, &e);
    const bool refused = refuse_memory_end();
    CU_ASSERT_EQUAL(started, !refused);
    CU_ASSERT(started || str_starts(str_of(e.text), n < 2 ? STR("no memory for the access log's") : STR("cannot start the access log's thread: ")));
    if (started)
        writer_stop(&w);
    CU_ASSERT(!w.started && w.queue == NULL && w.spare == NULL);
    return refused;
}

static void without_memory_or_a_thread_it_does_not_start_and_leaves_nothing(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(refuse_memory_everywhere(start_refused, &fd), 3);
    close(fd);
}

void test_writer_register(void)
{
    CU_pSuite s = CU_add_suite("writer", NULL, NULL);
    CU_add_test(s, "lines come out in order", lines_come_out_in_order);
    CU_add_test(s, "a reader that rests costs lines and each is counted", a_reader_that_rests_costs_lines_and_each_is_counted);
    CU_add_test(s, "a reader that does not read does not hold up the end", a_reader_that_does_not_read_does_not_hold_up_the_end);
    CU_add_test(s, "lines lost on a full device are counted and said once", lines_lost_on_a_full_device_are_counted_and_said_once);
    CU_add_test(s, "without memory or a thread it does not start and leaves nothing", without_memory_or_a_thread_it_does_not_start_and_leaves_nothing);
}
