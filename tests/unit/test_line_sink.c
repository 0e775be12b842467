/* The line sink: a descriptor that fails costs lines, each is counted once, and none is ever stuck to another. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/line_sink.h"

static const struct str text = STR("first\nsecond\n\nfourth\n");
enum { N_LINES = 4 };

/* A file that takes at most limit bytes; a write beyond it comes out in part, the next one fails. */
static int small_file(rlim_t limit, struct rlimit *before)
{
    struct rlimit small;
    const int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    CU_ASSERT_FATAL(fd >= 0 && getrlimit(RLIMIT_FSIZE, before) == 0);
    small = (struct rlimit){.rlim_cur = limit, .rlim_max = before->rlim_max};
    CU_ASSERT_FATAL(setrlimit(RLIMIT_FSIZE, &small) == 0);
    return fd;
}

static size_t n_newlines(struct str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += s.p[i] == '\n';
    return n;
}

/* Writes text in two parts while the file takes limit bytes, then "last\n" into a file that takes all. */
static void check_limit(rlim_t limit, size_t cut)
{
    char storage[128];
    struct rlimit before;
    struct line_sink s = {.fd = small_file(limit, &before)};
    size_t lost = line_sink_write(&s, str_sub(text, 0, cut)), n_whole;
    ssize_t n;

    lost += line_sink_write(&s, str_sub(text, cut, text.len));
    n_whole = n_newlines(str_sub(text, 0, limit));
    CU_ASSERT_EQUAL(lost, N_LINES - n_whole);
    CU_ASSERT_EQUAL(s.error, limit < text.len ? EFBIG : 0);
    CU_ASSERT_FATAL(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CU_ASSERT_EQUAL(line_sink_write(&s, STR("last\n")), 0);
    CU_ASSERT_EQUAL(s.error, 0);
    n = pread(s.fd, storage, sizeof(storage), 0);
    CU_ASSERT_FATAL(n >= 5);
    /* What came out of text, ended if it was a piece of a line, then the last line by itself. */
    CU_ASSERT(str_starts((struct str){storage, (size_t)n}, str_sub(text, 0, limit)));
    CU_ASSERT(str_ends((struct str){storage, (size_t)n}, STR("\nlast\n")) || limit == 0);
    CU_ASSERT_EQUAL((size_t)n, (limit < text.len ? limit : text.len) + 5 + (limit > 0 && limit < text.len && text.p[limit - 1] != '\n'));
    close(s.fd);
}

static void fails_anywhere(void)
{
    void (*const before)(int) = signal(SIGXFSZ, SIG_IGN);

    for (rlim_t limit = 0; limit <= text.len; limit++)
        for (size_t cut = 0; cut <= text.len; cut++)
            check_limit(limit, cut);
    signal(SIGXFSZ, before);
}

static void works_again_inside_a_line(void)
{
    char storage[64];
    int fds[2];
    struct line_sink s = {.fd = open("/dev/full", O_WRONLY | O_CLOEXEC)};
    ssize_t n;

    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC) == 0 && s.fd >= 0);
    CU_ASSERT_EQUAL(line_sink_write(&s, STR("one\ntw")), 2);
    CU_ASSERT_EQUAL(s.error, ENOSPC);
    CU_ASSERT_FALSE(line_sink_insert(&s, STR("note\n")));
    CU_ASSERT_EQUAL(line_sink_drop(&s, STR("o")), 0);
    CU_ASSERT_EQUAL(line_sink_drop(&s, STR("o\nthree\nfo")), 2);
    CU_ASSERT_EQUAL(dup2(fds[1], s.fd), s.fd);
    CU_ASSERT(line_sink_insert(&s, STR("note\n")));
    CU_ASSERT_EQUAL(line_sink_write(&s, STR("u")), 0);
    CU_ASSERT_EQUAL(line_sink_write(&s, STR("r\nfi")), 0);
    CU_ASSERT_EQUAL(line_sink_write(&s, STR("ve\n")), 0);
    n = read(fds[0], storage, sizeof(storage));
    CU_ASSERT(n > 0 && str_eq((struct str){storage, (size_t)n}, STR("note\nfive\n")));
    close(s.fd);
    close(fds[0]);
    close(fds[1]);
}

void test_line_sink_register(void)
{
    CU_pSuite s = CU_add_suite("line_sink", NULL, NULL);

    CU_add_test(s, "wherever writing fails, each lost line is counted once and the next one begins a line", fails_anywhere);
    CU_add_test(s, "a line whose beginning was lost does not come out in part", works_again_inside_a_line);
}
