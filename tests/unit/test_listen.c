/* spop_listen: what it binds, what it refuses, what it leaves behind. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/wire_rig.h"

static void unix_socket_has_mode_0660_and_replaces_what_is_there(void)
{
    struct stat first, second;
    struct err e = {0};
    int later;

    wire_rig_begin(8);
    CU_ASSERT_EQUAL_FATAL(lstat(wire_rig.path, &first), 0);
    CU_ASSERT_TRUE(S_ISSOCK(first.st_mode));
    CU_ASSERT_EQUAL(first.st_mode & 0777, 0660);
    CU_ASSERT_TRUE_FATAL(spop_listen(str_of(wire_rig.at), &later, &e));
    CU_ASSERT_EQUAL_FATAL(lstat(wire_rig.path, &second), 0);
    CU_ASSERT_NOT_EQUAL(first.st_ino, second.st_ino);
    CU_ASSERT_EQUAL(second.st_mode & 0777, 0660);
    CU_ASSERT_EQUAL(fcntl(later, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    CU_ASSERT_EQUAL(fcntl(later, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(later);
    wire_rig_end();
}

static void address_that_cannot_be_listened_on_is_refused_with_its_reason(void)
{
    static const struct {
        const char *at, *reason;
    } rows[] = {
        {"", "must be \"unix@/path\""},
        {"/tmp/x", "must be \"unix@/path\""},
        {"unix@", "absolute path"},
        {"unix@relative", "absolute path"},
        {"unix@/tmp/"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
         "too long"},
        {"unix@/nonexistent/agent.sock", "No such file"},
        {"tcp@localhost:9000", "numeric address"},
        {"tcp@:9000", "numeric address"},
        {"tcp@127.0.0.1", "port"},
        {"tcp@192.0.2.1:9000", "annot"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct err e = {0};
        int fd = -7;

        CU_ASSERT_FALSE(spop_listen(str_of(rows[i].at), &fd, &e));
        CU_ASSERT_EQUAL(fd, -7);
        CU_ASSERT_NOT_EQUAL(str_find(str_of(e.text), str_of(rows[i].reason)), SIZE_MAX);
    }
}

static void listen_that_fails_late_leaves_nothing_behind(void)
{
    struct err e = {0};
    char folder[128], at[160];
    int fd = -7;

    wire_rig_begin(8);
    snprintf(folder, sizeof(folder), "%s/folder", wire_rig.dir);
    snprintf(at, sizeof(at), "unix@%s", folder);
    CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0700), 0);
    CU_ASSERT_FALSE(spop_listen(str_of(at), &fd, &e));
    CU_ASSERT_EQUAL(e.code, ERR_IO);
    CU_ASSERT_EQUAL(fd, -7);
    CU_ASSERT_EQUAL(rmdir(folder), 0);
    wire_rig_end();
    CU_ASSERT_NOT_EQUAL(access(wire_rig.dir, F_OK), 0);
}

void test_listen_register(void)
{
    CU_pSuite s = CU_add_suite("listen", NULL, NULL);

    CU_add_test(s, "a UNIX socket has mode 0660 and replaces what is there (security: only the group may ask)",
                unix_socket_has_mode_0660_and_replaces_what_is_there);
    CU_add_test(s, "an address that cannot be listened on is refused with its reason",
                address_that_cannot_be_listened_on_is_refused_with_its_reason);
    CU_add_test(s, "a listen that fails late leaves nothing behind", listen_that_fails_late_leaves_nothing_behind);
}
