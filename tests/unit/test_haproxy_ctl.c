/* HAProxy's command socket, against a server that answers once. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spoa/launcher/haproxy_ctl.h"
#include "spoa/launcher/server_state.h"
#include "tests/unit/ctl_server.h"
#include "tests/unit/full_disk.h"

static void flag_is_set(void)
{
    struct ctl_server s;
    struct err e;

    err_clear(&e);
    ctl_server_open(&s, (const char *const[]){"\n"}, 1);
    CU_ASSERT(haproxy_ctl_set_ready(s.path, false, &e));
    ctl_server_close(&s);
    CU_ASSERT_STRING_EQUAL(s.asked[0], "set server ready_flag/flag state maint\n");
    ctl_server_open(&s, (const char *const[]){"\n"}, 1);
    CU_ASSERT(haproxy_ctl_set_ready(s.path, true, &e));
    ctl_server_close(&s);
    CU_ASSERT_STRING_EQUAL(s.asked[0], "set server ready_flag/flag state ready\n");
}

static void flag_is_refused(void)
{
    struct ctl_server s;
    struct err e;

    err_clear(&e);
    ctl_server_open(&s, (const char *const[]){"No such server.\n\n"}, 1);
    CU_ASSERT(!haproxy_ctl_set_ready(s.path, true, &e));
    CU_ASSERT_EQUAL(e.code, ERR_PROTOCOL);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "No such server."));
    ctl_server_close(&s);
}

static void no_answer(void)
{
    struct ctl_server s;
    struct err e;

    err_clear(&e);
    ctl_server_open(&s, (const char *const[]){NULL}, 1);
    CU_ASSERT(!haproxy_ctl_set_ready(s.path, true, &e));
    CU_ASSERT_EQUAL(e.code, ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "did not answer"));
    ctl_server_close(&s);
}

static void long_answer(void)
{
    char storage[16];
    struct ctl_server s;
    struct str out;
    struct err e;

    err_clear(&e);
    ctl_server_open(&s, (const char *const[]){"a long answer is cut\n"}, 1);
    CU_ASSERT_FATAL(haproxy_ctl(s.path, "help", storage, sizeof(storage), &out, &e));
    ctl_server_close(&s);
    CU_ASSERT(str_eq(out, STR("a long answer is")));
    CU_ASSERT_STRING_EQUAL(s.asked[0], "help\n");
}

static void nobody_there(void)
{
    char long_path[200];
    struct err e;

    memset(long_path, 'a', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    err_clear(&e);
    CU_ASSERT(!haproxy_ctl_set_ready(long_path, true, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "too long"));
    err_clear(&e);
    CU_ASSERT(!haproxy_ctl_set_ready("/nonexistent/socket", true, &e));
    CU_ASSERT_EQUAL(e.code, ERR_IO);
    CU_ASSERT(!haproxy_ctl_listens("/nonexistent/socket"));
}

static void listening(void)
{
    struct ctl_server s;

    ctl_server_open(&s, (const char *const[]){"\n"}, 1);
    CU_ASSERT(haproxy_ctl_listens(s.path));
    ctl_server_close(&s);
}

/* Saves what the answer says over a file that was begun; leaves the file's text in content. */
static bool saved(const char *answer, char *content, size_t cap, struct err *e)
{
    char path[] = "/tmp/edge-unit-XXXXXX";
    const int fd = mkstemp(path);
    struct ctl_server s;
    ssize_t n;
    bool ok;

    CU_ASSERT_FATAL(fd >= 0 && server_state_begin(path, e));
    close(fd);
    ctl_server_open(&s, (const char *const[]){answer}, 1);
    ok = server_state_save(s.path, path, e);
    ctl_server_close(&s);
    CU_ASSERT_STRING_EQUAL(s.asked[0], "show servers state\n");
    FILE *f = fopen(path, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    n = (ssize_t)fread(content, 1, cap - 1, f);
    content[n] = '\0';
    fclose(f);
    unlink(path);
    return ok;
}

static void state_is_saved(void)
{
    char content[128];
    struct err e;

    err_clear(&e);
    CU_ASSERT(saved("1\n# be_id be_name\n3 plain 1 upstream 127.0.0.2\n\n", content, sizeof(content), &e));
    CU_ASSERT_STRING_EQUAL(content, "1\n# be_id be_name\n3 plain 1 upstream 127.0.0.2\n");
}

static void state_is_not_replaced(void)
{
    static char too_long[SERVER_STATE_MAX + 1];
    const char *const answers[] = {"Unknown command.\n", "", "10\n", NULL, too_long};
    char content[128];

    memset(too_long, 'x', sizeof(too_long) - 1);
    memcpy(too_long, "1\n", 2);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct err e;

        err_clear(&e);
        CU_ASSERT(!saved(answers[i], content, sizeof(content), &e));
        CU_ASSERT_STRING_EQUAL(content, "1\n");
        CU_ASSERT_NOT_EQUAL(e.text[0], '\0');
    }
}

/* *e says why; a file named like path with ".new" behind it is gone again. */
static bool is_replaced(const char *path, struct err *e)
{
    char temporary[128];
    struct stat st;

    snprintf(temporary, sizeof(temporary), "%s.new", path);
    err_clear(e);
    const bool ok = server_state_begin(path, e);
    CU_ASSERT(stat(temporary, &st) != 0);
    return ok;
}

static void state_has_no_place(void)
{
    char folder[] = "/tmp/edge-unit-XXXXXX", path[64], long_path[5000];
    struct err e;

    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    CU_ASSERT(!is_replaced("/nonexistent/state", &e) && strstr(e.text, "cannot write /nonexistent/state.new") != NULL);
    memset(long_path, 'p', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    err_clear(&e);
    CU_ASSERT(!server_state_begin(long_path, &e));
    CU_ASSERT(!is_replaced(folder, &e) && strstr(e.text, folder) != NULL); /* a folder is no place for a file */
    snprintf(path, sizeof(path), "%s/state", folder);
    full_disk_begin();
    CU_ASSERT(!is_replaced(path, &e) && strstr(e.text, path) != NULL);
    full_disk_end();
    CU_ASSERT(access(path, F_OK) != 0);
    CU_ASSERT_EQUAL(rmdir(folder), 0);
}

void test_haproxy_ctl_register(void)
{
    CU_pSuite s = CU_add_suite("haproxy_ctl", NULL, NULL);

    CU_add_test(s, "the flag behind /readyz is set and taken back by command", flag_is_set);
    CU_add_test(s, "a command that HAProxy refuses is an error with its words", flag_is_refused);
    CU_add_test(s, "a HAProxy that does not answer holds nobody up", no_answer);
    CU_add_test(s, "a socket that is not there is an error", nobody_there);
    CU_add_test(s, "an answer longer than its storage is cut", long_answer);
    CU_add_test(s, "the state of HAProxy's servers is saved as it tells it", state_is_saved);
    CU_add_test(s, "an answer that is no state of servers, or none, leaves the file as it was", state_is_not_replaced);
    CU_add_test(s, "a state that can't be written whole is an error and leaves no file behind", state_has_no_place);
    CU_add_test(s, "a socket that takes connections is one that listens", listening);
}
