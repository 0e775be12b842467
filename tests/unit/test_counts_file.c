/* The counters' file: shared by processes, given back by killed ones, refused where it is not ours. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/counts_rig.h"
#include "tests/unit/full_disk.h"
#include "tests/unit/refuse_memory.h"

/* Has the file made, and ends with it closed. */
static void make_file(void)
{
    struct counts *c = counts_rig_open();

    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a", "", "");
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    counts_close(&c);
    CU_ASSERT_PTR_NULL(c);
}

static void two_that_have_it_open_count_together(void)
{
    struct counts *one = counts_rig_open(), *two = counts_rig_open();

    counts_rig_prepare(one, 1, COHORT_ACTIVE, "a", "", "");
    counts_rig_add(one, 1, COHORT_ACTIVE, 200, "a");
    counts_rig_add(two, 1, COHORT_ACTIVE, 200, "a");
    CU_ASSERT_EQUAL(counts_rig_total(one), 2);
    CU_ASSERT_EQUAL(counts_rig_rule(two, COUNT_CONFIG, "a"), 2);
    counts_rig_prepare(two, 2, COHORT_ACTIVE, "b", "", "");
    counts_rig_tick(one, COUNTS_RETIRE_MS / 1000 + 1);
    counts_rig_tick(two, 1);
    CU_ASSERT_EQUAL(counts_rig_rule(one, COUNT_CONFIG, "a"), 2); /* not folded while both have it */
    counts_close(&one);
    counts_rig_tick(two, 1);
    CU_ASSERT_EQUAL(counts_rig_rule(two, COUNT_CONFIG, "a"), UINT64_MAX);
    counts_close(&two);
    counts_rig_forget();
}

static void it_goes_on_where_it_was_left(void)
{
    struct counts *c;
    struct stat st;

    make_file();
    CU_ASSERT_EQUAL_FATAL(stat(counts_rig.file, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & ALLPERMS, S_IRUSR | S_IWUSR);
    CU_ASSERT_TRUE((uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size); /* its space is taken */
    c = counts_rig_open();
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), 2);
    counts_close(&c);
    counts_rig_forget();
}

static void check_begins_at_zero(void)
{
    struct counts *c = counts_rig_open();

    CU_ASSERT_EQUAL(counts_rig_total(c), 0);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), UINT64_MAX);
    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a", "", "");
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    CU_ASSERT_EQUAL(counts_rig_total(c), 1);
    counts_close(&c);
    counts_rig_forget();
}

static void a_file_of_another_size_or_mark_is_made_anew(void)
{
    static const off_t sizes[] = {0, 1, 4096, 8 << 20};
    int fd;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        make_file();
        CU_ASSERT_EQUAL_FATAL(truncate(counts_rig.file, sizes[i]), 0);
        check_begins_at_zero();
    }
    make_file();
    fd = open(counts_rig.file, O_WRONLY);
    CU_ASSERT_TRUE_FATAL(fd >= 0 && pwrite(fd, "foreign", 7, 0) == 7);
    close(fd);
    check_begins_at_zero();
}

static void check_refused(const char *part)
{
    struct counts *c = NULL;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FALSE(counts_open(&c, counts_rig.stem, &counts_rig.clock, &e));
    CU_ASSERT_PTR_NULL(c);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, part));
}

static void what_is_not_a_file_of_our_own_is_refused(void)
{
    char aside[160];
    struct stat before, after;

    make_file();
    (void)snprintf(aside, sizeof(aside), "%s/aside", counts_rig.folder);
    CU_ASSERT_EQUAL_FATAL(rename(counts_rig.file, aside), 0);
    CU_ASSERT_EQUAL_FATAL(stat(aside, &before), 0);
    CU_ASSERT_EQUAL_FATAL(symlink(aside, counts_rig.file), 0);
    check_refused("is a symbolic link");
    CU_ASSERT_EQUAL_FATAL(unlink(counts_rig.file), 0);
    CU_ASSERT_EQUAL_FATAL(link(aside, counts_rig.file), 0);
    check_refused("with this name alone");
    CU_ASSERT_EQUAL_FATAL(unlink(counts_rig.file), 0);
    CU_ASSERT_EQUAL_FATAL(mkfifo(counts_rig.file, 0600), 0);
    check_refused("is not a regular file");
    CU_ASSERT_EQUAL_FATAL(unlink(counts_rig.file), 0);
    CU_ASSERT_EQUAL_FATAL(mkdir(counts_rig.file, 0700), 0);
    check_refused("cannot open");
    CU_ASSERT_EQUAL_FATAL(rmdir(counts_rig.file), 0);
    CU_ASSERT_EQUAL_FATAL(stat(aside, &after), 0);
    CU_ASSERT_TRUE(before.st_size == after.st_size && before.st_mtime == after.st_mtime);
    CU_ASSERT_EQUAL(unlink(aside), 0);
    counts_rig.file[0] = '\0';
}

static void the_file_of_another_user_is_refused(void)
{
    if (geteuid() != 0) {
        printf("skipped: only root can give a file away ");
        return;
    }
    make_file();
    CU_ASSERT_EQUAL_FATAL(chown(counts_rig.file, 65534, 65534), 0);
    check_refused("belongs to user 65534");
    counts_rig_forget();
}

static void a_file_that_others_could_read_is_closed_to_them(void)
{
    struct counts *c;
    struct stat st;

    make_file();
    CU_ASSERT_EQUAL_FATAL(chmod(counts_rig.file, 0666), 0);
    c = counts_rig_open();
    CU_ASSERT_EQUAL(counts_rig_total(c), 1);
    CU_ASSERT_EQUAL_FATAL(stat(counts_rig.file, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & ALLPERMS, S_IRUSR | S_IWUSR);
    counts_close(&c);
    counts_rig_forget();
}

static void no_folder_no_file(void)
{
    struct counts *c = NULL;
    char stem[5000];
    struct err e;

    err_clear(&e);
    CU_ASSERT_FALSE(counts_open(&c, "/tmp/edge-no-such-folder/counts-0", &counts_rig.clock, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "cannot open"));
    memset(stem, 'a', sizeof(stem));
    stem[sizeof(stem) - 1] = '\0';
    err_clear(&e);
    CU_ASSERT_FALSE(counts_open(&c, stem, &counts_rig.clock, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "a name of more than"));
}

static void what_another_process_has_open_is_not_made_anew(void)
{
    struct counts *c = counts_rig_open();
    const int fd = open(counts_rig.file, O_WRONLY | O_CLOEXEC);

    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a", "", "");
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    CU_ASSERT_TRUE_FATAL(fd >= 0 && pwrite(fd, "foreign", 7, 0) == 7);
    close(fd);
    check_refused("another process has it open");
    CU_ASSERT_EQUAL(counts_rig_total(c), 1);
    counts_close(&c);
    check_begins_at_zero();
}

static void a_disk_without_room_for_it_is_told_at_the_start(void)
{
    make_file();
    CU_ASSERT_EQUAL_FATAL(truncate(counts_rig.file, 0), 0);
    full_disk_begin();
    check_refused("cannot make");
    full_disk_end();
    check_begins_at_zero();
}

static void without_memory_it_does_not_open(void)
{
    struct counts *c = NULL;
    struct err e;

    err_clear(&e);
    refuse_memory_of_ours(0);
    CU_ASSERT_FALSE(counts_open(&c, counts_rig.stem, &counts_rig.clock, &e));
    CU_ASSERT_TRUE(refuse_memory_end());
    CU_ASSERT_EQUAL(e.code, ERR_NO_MEMORY);
    counts_close(&c); /* of nothing is nothing */
    CU_ASSERT_PTR_NULL(c);
}

static void hold_open(void *ctx)
{
    struct counts *c = NULL;
    struct err e;

    err_clear(&e);
    if (!counts_open(&c, counts_rig.stem, &counts_rig.clock, &e))
        _exit(1);
    atomic_store((_Atomic int *)ctx, 1);
    for (;;)
        pause();
}

static void a_killed_process_gives_its_place_back(void)
{
    struct counts *open[COUNTS_PROCESSES_MAX];
    _Atomic int *held = mmap(NULL, sizeof(*held), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;

    CU_ASSERT_TRUE_FATAL(held != MAP_FAILED);
    pid = counts_rig_fork(hold_open, held);
    while (atomic_load(held) == 0)
        CU_ASSERT_EQUAL_FATAL(waitpid(pid, NULL, WNOHANG), 0);
    for (int i = 1; i < COUNTS_PROCESSES_MAX; i++)
        open[i] = counts_rig_open();
    check_refused("4 processes have");
    counts_rig_kill(pid);
    open[0] = counts_rig_open();
    for (int i = 0; i < COUNTS_PROCESSES_MAX; i++)
        counts_close(&open[i]);
    munmap((void *)(uintptr_t)held, sizeof(*held));
    counts_rig_forget();
}

/* As one that was stopped in the middle of a change of structure. */
static int lock_byte_0(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    const int fd = open(counts_rig.file, O_RDWR | O_CLOEXEC);

    CU_ASSERT_TRUE_FATAL(fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0);
    return fd;
}

static void keep_nothing(void *ctx, const struct counts_delta *delta)
{
    (void)delta;
    ++*(unsigned *)ctx;
}

static void a_process_that_is_stopped_in_a_change_stops_no_other(void)
{
    struct counts *c = counts_rig_open();
    struct counts_reader r = {.seen = NULL};
    unsigned n_read = 0;
    int fd;

    counts_rig_prepare(c, 1, COHORT_ACTIVE, "a", "", "");
    counts_number(c, 10, 0);
    counts_rig_add(c, 1, COHORT_ACTIVE, 200, "a");
    fd = lock_byte_0();
    counts_rig_prepare(c, 2, COHORT_ACTIVE, "b", "", "");
    counts_number(c, 11, 0);
    counts_rig_add(c, 2, COHORT_ACTIVE, 200, "b");
    counts_rig_tick(c, 1);
    CU_ASSERT_EQUAL(counts_rig_total(c), 2);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "a"), 1);
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "b"), UINT64_MAX);
    CU_ASSERT_TRUE(counts_read(c, &r, false, keep_nothing, &n_read));
    CU_ASSERT_EQUAL(n_read, 1);
    check_refused("holds the lock");
    close(fd);
    counts_rig_prepare(c, 2, COHORT_ACTIVE, "b", "", "");
    counts_rig_add(c, 2, COHORT_ACTIVE, 200, "b");
    CU_ASSERT_EQUAL(counts_rig_rule(c, COUNT_CONFIG, "b"), 1);
    counts_reader_release(c, &r);
    counts_close(&c);
    counts_rig_forget();
}

void test_counts_file_register(void)
{
    CU_pSuite s = CU_add_suite("counts_file", counts_rig_set_up, counts_rig_tear_down);
    CU_add_test(s, "two that have it open count together", two_that_have_it_open_count_together);
    CU_add_test(s, "it goes on where it was left", it_goes_on_where_it_was_left);
    CU_add_test(s, "a file of another size or mark is made anew", a_file_of_another_size_or_mark_is_made_anew);
    CU_add_test(s, "what is not a file of our own is refused", what_is_not_a_file_of_our_own_is_refused);
    CU_add_test(s, "the file of another user is refused", the_file_of_another_user_is_refused);
    CU_add_test(s, "a file that others could read is closed to them", a_file_that_others_could_read_is_closed_to_them);
    CU_add_test(s, "no folder no file", no_folder_no_file);
    CU_add_test(s, "what another process has open is not made anew", what_another_process_has_open_is_not_made_anew);
    CU_add_test(s, "a disk without room for it is told at the start", a_disk_without_room_for_it_is_told_at_the_start);
    CU_add_test(s, "without memory it does not open", without_memory_it_does_not_open);
    CU_add_test(s, "a killed process gives its place back", a_killed_process_gives_its_place_back);
    CU_add_test(s, "a process that is stopped in a change stops no other", a_process_that_is_stopped_in_a_change_stops_no_other);
}
