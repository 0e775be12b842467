/* The launcher's decisions: sizes by the machine's limits, versions, back-off, folders. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spoa/launcher/children.h"
#include "spoa/launcher/haproxy_version.h"
#include "spoa/launcher/limits.h"
#include "spoa/launcher/run_dir.h"
#include "tests/unit/cases.h"

enum { PATH_CAP = 256 };

static char folder[64]; /* of this suite's files */

static int set_up(void)
{
    snprintf(folder, sizeof(folder), "/tmp/edge-unit-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static int tear_down(void)
{
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* --- limits --- */

static void write_file(const char *root, const char *name, const char *text)
{
    char path[PATH_CAP * 2];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        CU_ASSERT_FATAL(mkdir(path, S_IRWXU) == 0 || errno == EEXIST);
        *slash = '/';
    }
    f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT(fputs(text, f) >= 0);
    CU_ASSERT_EQUAL(fclose(f), 0);
}

static void memory_limits(void)
{
    json_t *rows = cases_load("tests/cases/launcher/memory.json"), *row, *text;
    const char *name;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        char root[PATH_CAP], self[PATH_CAP + 32], groups[PATH_CAP + 32];
        uint64_t bytes;

        snprintf(root, sizeof(root), "%s/memory-%zu", folder, i);
        snprintf(self, sizeof(self), "%s/self", root);
        snprintf(groups, sizeof(groups), "%s/root", root);
        json_object_foreach(json_object_get(row, "files"), name, text) write_file(root, name, json_string_value(text));
        bytes = limits_memory_bytes(self, groups, (uint64_t)json_integer_value(json_object_get(row, "physical")));
        CASE_CHECK(row, bytes == (uint64_t)json_integer_value(json_object_get(row, "bytes")));
    }
    json_decref(rows);
}

static uint64_t number(const json_t *row, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(row, name));
}

static void caps(void)
{
    json_t *rows = cases_load("tests/cases/launcher/caps.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        if (json_object_get(row, "memory") != NULL)
            CASE_CHECK(row, limits_max_inflight(number(row, "memory")) == number(row, "max_inflight"));
        else
            CASE_CHECK(row, limits_maxconn(number(row, "ordinary"), number(row, "streams"), json_is_true(json_object_get(row, "hop")), number(row, "fds")) ==
                                number(row, "maxconn"));
    }
    json_decref(rows);
}

static void machine(void)
{
    const uint64_t bytes = limits_physical_bytes();

    CU_ASSERT(bytes >= UINT64_C(1) << 26 && limits_memory_bytes("/nonexistent", "/nonexistent", bytes) == bytes);
    if (access("/proc/net", F_OK) == 0)
        CU_ASSERT_EQUAL(limits_has_ipv6(), access("/proc/net/if_inet6", F_OK) == 0);
}

/* This process' own limit: few files, raised again to what it may be. */
static void open_files(void)
{
    struct rlimit before, none, raised;

    CU_ASSERT_FATAL(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CU_ASSERT(!limits_has_ipv6());
    CU_ASSERT_EQUAL(limits_raise_fds(), before.rlim_max);
    CU_ASSERT(getrlimit(RLIMIT_NOFILE, &raised) == 0 && raised.rlim_cur == before.rlim_max);
    CU_ASSERT_EQUAL(limits_raise_fds(), before.rlim_max);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* --- versions, back-off --- */

static void versions(void)
{
    json_t *rows = cases_load("tests/cases/launcher/versions.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct haproxy_version v = {77, 77};
        const bool ok = haproxy_version_parse(case_str(row, "text"), &v);

        if (json_object_get(row, "major") == NULL)
            CASE_CHECK(row, !ok && v.major == 77 && v.minor == 77);
        else
            CASE_CHECK(row, ok && v.major == number(row, "major") && v.minor == number(row, "minor"));
    }
    json_decref(rows);
}

/* A program that answers -v with text. */
static const char *program(const char *name, const char *text)
{
    static char path[PATH_CAP * 2];
    char script[512];

    snprintf(script, sizeof(script), "#!/bin/sh\necho '%s'\n", text);
    write_file(folder, name, script);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    CU_ASSERT_EQUAL(chmod(path, S_IRWXU), 0);
    return path;
}

static void old_haproxy(void)
{
    char *const envp[] = {NULL};
    struct err e;

    err_clear(&e);
    CU_ASSERT(haproxy_version_check(program("new", "HAProxy version 3.2.0"), envp, &e));
    CU_ASSERT(haproxy_version_check(program("newer", "HAProxy version 4.0.0"), envp, &e));
    CU_ASSERT(!haproxy_version_check(program("old", "HAProxy version 3.1.9"), envp, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "HAProxy 3.1, which is too old: 3.2"));
    err_clear(&e);
    CU_ASSERT(!haproxy_version_check(program("other", "hello"), envp, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "hello"));
    err_clear(&e);
    CU_ASSERT(!haproxy_version_check("/nonexistent/haproxy", envp, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "No such file"));
}

static void backoff(void)
{
    json_t *rows = cases_load("tests/cases/launcher/backoff.json"), *row, *age;
    size_t i, n;

    json_array_foreach(rows, i, row)
    {
        struct backoff b = {0};

        json_array_foreach(json_object_get(row, "ages_ms"), n, age)
        {
            const json_t *wait = json_array_get(json_object_get(row, "waits_ms"), n);

            CASE_CHECK(row, backoff_take(&b, (uint64_t)json_integer_value(age)) == (uint64_t)json_integer_value(wait));
        }
    }
    json_decref(rows);
}

/* --- the folder of sockets --- */

static void private_folder(void)
{
    struct run_dir d;
    struct stat st;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FATAL(run_dir_open(&d, "", folder, &e));
    CU_ASSERT(strncmp(d.path, folder, strlen(folder)) == 0);
    CU_ASSERT(stat(d.path, &st) == 0 && (st.st_mode & ~(mode_t)S_IFMT) == S_IRWXU);
    write_file(d.path, "agent-0.sock", "");
    run_dir_close(&d);
    CU_ASSERT(stat(d.path, &st) != 0 && errno == ENOENT);
    /* What can't stand in a socket's path is not used. */
    CU_ASSERT_FATAL(run_dir_open(&d, "", "/tmp/a,b", &e));
    CU_ASSERT(strncmp(d.path, "/tmp/edge-spoa-", 15) == 0);
    run_dir_close(&d);
    CU_ASSERT_FALSE(run_dir_open(&d, "", "/tmp/edge-no-such-folder", &e));
    CU_ASSERT_STRING_EQUAL(e.text, "cannot make a folder for sockets in /tmp/edge-no-such-folder: No such file or directory");
    run_dir_close(&d);
}

static void shared_folder(void)
{
    struct run_dir one, two;
    char path[PATH_CAP + 16];
    struct stat st;
    struct err e;

    err_clear(&e);
    snprintf(path, sizeof(path), "%s/run", folder);
    CU_ASSERT_FATAL(run_dir_open(&one, path, NULL, &e));
    CU_ASSERT(!run_dir_open(&two, path, NULL, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "in use by another edge"));
    run_dir_close(&one);
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    err_clear(&e);
    CU_ASSERT_FATAL(run_dir_open(&one, path, NULL, &e));
    run_dir_close(&one);
}

static bool has_file(const char *dir, const char *name)
{
    char path[2 * PATH_CAP];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return stat(path, &st) == 0;
}

static void counters_last_as_long_as_the_launcher(void)
{
    static const char *const others[] = {"counts-of-sheep", "counts-0", "counts-.0", "agent-0.sock"};
    struct run_dir d;
    char path[PATH_CAP + 16];
    struct err e;

    err_clear(&e);
    snprintf(path, sizeof(path), "%s/counted", folder);
    CU_ASSERT_FATAL(mkdir(path, S_IRWXU) == 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        write_file(path, others[i], "");
    write_file(path, "counts-0.1a2b", "of a launcher that was killed");
    CU_ASSERT_FATAL(run_dir_open(&d, path, NULL, &e));
    CU_ASSERT(!has_file(path, "counts-0.1a2b"));
    write_file(path, "counts-1.1a2b", "");
    run_dir_close(&d);
    CU_ASSERT(!has_file(path, "counts-1.1a2b"));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CU_ASSERT(has_file(path, others[i]));
}

static void open_folder(void)
{
    char path[PATH_CAP + 16];
    struct run_dir d;
    struct err e;

    err_clear(&e);
    snprintf(path, sizeof(path), "%s/public", folder);
    CU_ASSERT_FATAL(mkdir(path, S_IRWXU) == 0 && chmod(path, 0777) == 0);
    CU_ASSERT(!run_dir_open(&d, path, NULL, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "by everybody"));
    err_clear(&e);
    write_file(folder, "file", "");
    snprintf(path, sizeof(path), "%s/file", folder);
    CU_ASSERT(!run_dir_open(&d, path, NULL, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "no folder"));
    err_clear(&e);
    snprintf(path, sizeof(path), "%s/absent/deep", folder);
    CU_ASSERT(!run_dir_open(&d, path, NULL, &e));
    CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "cannot make"));
}

void test_launcher_register(void)
{
    CU_pSuite s = CU_add_suite("launcher", set_up, tear_down);

    CU_add_test(s, "the memory limit is the smallest of the control groups and the machine", memory_limits);
    CU_add_test(s, "caps follow from memory, HAProxy's connections from caps and open files", caps);
    CU_add_test(s, "the machine's memory is all there is without control groups, and IPv6 is had where the kernel has it", machine);
    CU_add_test(s, "as many files may be open as the process is allowed", open_files);
    CU_add_test(s, "HAProxy's version is read from what it says of itself", versions);
    CU_add_test(s, "a HAProxy that is too old, another program or none is refused with words", old_haproxy);
    CU_add_test(s, "a child that dies is started again at once, one that keeps dying ever later", backoff);
    CU_add_test(s, "without a folder of its own an edge makes a private one and removes it", private_folder);
    CU_add_test(s, "two edges never share a folder of sockets, and it stays when they end", shared_folder);
    CU_add_test(s, "counters last as long as the launcher, and nothing else of the folder goes with them", counters_last_as_long_as_the_launcher);
    CU_add_test(s, "sockets are not put where everybody may replace them", open_folder);
}
