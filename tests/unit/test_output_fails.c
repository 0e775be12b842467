/* Standard output that fails: the edge goes on, what is lost is counted and said. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spoa/launcher/output.h"

enum { SMALL_BYTES = 4096, LONG_STOP_MS = 60000, N_LINES = 2000 };

/* Everything up to the end of the pipe. */
static struct str read_all(int fd, char *storage, size_t cap)
{
    size_t len = 0;
    ssize_t n;

    while ((n = read(fd, storage + len, cap - len)) > 0)
        len += (size_t)n;
    CU_ASSERT_EQUAL_FATAL(n, 0);
    return (struct str){storage, len};
}

static void reader_comes_back(void)
{
    char folder[] = "/tmp/edge-output-XXXXXX", path[64], storage[SMALL_BYTES];
    int said[2], before = dup(STDERR_FILENO), read_fd, write_fd;
    struct output *o;
    struct str text;
    size_t at;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FATAL(mkdtemp(folder) != NULL && pipe2(said, O_CLOEXEC) == 0 && before >= 0);
    snprintf(path, sizeof(path), "%s/fifo", folder);
    CU_ASSERT_FATAL(mkfifo(path, 0600) == 0);
    read_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    write_fd = open(path, O_WRONLY | O_CLOEXEC);
    CU_ASSERT_FATAL(read_fd >= 0 && write_fd >= 0 && dup2(said[1], STDERR_FILENO) >= 0);
    CU_ASSERT_FATAL(output_start(&o, write_fd, SMALL_BYTES, &e));
    CU_ASSERT_FATAL(dup2(before, STDERR_FILENO) >= 0);
    close(said[1]);
    close(read_fd);
    output_line(o, STR("lost"));
    CU_ASSERT_FATAL(read(said[0], storage, 1) == 1);
    read_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    output_line(o, STR("written"));
    output_stop(&o, LONG_STOP_MS);
    close(write_fd);
    /* The failure was said once, before the end of what was said. */
    text = read_all(said[0], storage, sizeof(storage));
    CU_ASSERT(str_find(text, STR("\"event\":\"output_failed\"")) != SIZE_MAX && str_find(text, STR("Broken pipe")) != SIZE_MAX);
    CU_ASSERT_EQUAL(str_find_byte(text, '\n'), text.len - 1);
    text = read_all(read_fd, storage, sizeof(storage));
    at = str_find_byte(text, '\n');
    CU_ASSERT(str_find(str_sub(text, 0, at), STR("\"event\":\"output_dropped\",\"lines\":1,")) != SIZE_MAX);
    CU_ASSERT(str_eq(str_sub(text, at + 1, text.len), STR("written\n")));
    close(read_fd);
    close(said[0]);
    close(before);
    unlink(path);
    CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static void full_device(void)
{
    int said[2], before = dup(STDERR_FILENO), fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    char storage[SMALL_BYTES];
    struct output *o;
    struct str text;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FATAL(pipe2(said, O_CLOEXEC) == 0 && before >= 0 && fd >= 0 && dup2(said[1], STDERR_FILENO) >= 0);
    CU_ASSERT_FATAL(output_start(&o, fd, SMALL_BYTES, &e));
    CU_ASSERT_FATAL(dup2(before, STDERR_FILENO) >= 0);
    close(said[1]);
    for (int i = 0; i < N_LINES; i++)
        output_line(o, STR("lost"));
    output_stop(&o, LONG_STOP_MS);
    text = read_all(said[0], storage, sizeof(storage));
    CU_ASSERT(str_find(text, STR("No space left on device")) != SIZE_MAX);
    CU_ASSERT_EQUAL(str_find_byte(text, '\n'), text.len - 1);
    close(said[0]);
    close(before);
    close(fd);
}

void test_output_fails_register(void)
{
    CU_pSuite s = CU_add_suite("output_fails", NULL, NULL);

    CU_add_test(s, "lines lost while the reader was gone are counted, said at once on standard error and later in their place",
                reader_comes_back);
    CU_add_test(s, "a full device ends nothing and is said once", full_device);
}
