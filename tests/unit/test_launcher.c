/* The launcher's decisions: the children's environments, sizes by the machine's limits, versions, back-off, folders. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spoa/launcher/children.h"
#include "spoa/launcher/environment.h"
#include "spoa/launcher/haproxy_version.h"
#include "spoa/launcher/limits.h"
#include "spoa/launcher/peer_file.h"
#include "spoa/launcher/run_dir.h"
#include "spoa/settings_deployment.h"
#include "tests/unit/cases.h"

enum { VARIABLES_MAX = 48, PATH_CAP = 256 };

static struct arena arena;
static char folder[64]; /* of this suite's files */

static int set_up(void)
{
    arena_init(&arena, 4096, 0);
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
    arena_release(&arena);
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* --- environments --- */

static char **env_of(const json_t *row)
{
    static const char *const base[] = {"UPSTREAM_URL=http://127.0.0.1:8000", "POLICY_FILE=policy.json",
                                       "CLIENT_IP_SOURCE=remote_addr"};
    char **envp = ARENA_NEW_N(&arena, VARIABLES_MAX, char *);
    json_t *value;
    const char *name;
    size_t n = 0;

    CU_ASSERT_FATAL(envp != NULL);
    json_object_foreach(json_object_get(row, "env"), name, value)
    {
        const size_t cap = strlen(name) + json_string_length(value) + 2;

        envp[n] = arena_take_bytes(&arena, cap);
        CU_ASSERT_FATAL(envp[n] != NULL && n < VARIABLES_MAX - 4);
        snprintf(envp[n++], cap, "%s=%s", name, json_string_value(value));
    }
    for (size_t i = 0; i < sizeof(base) / sizeof(base[0]); i++) {
        struct str copy;

        CU_ASSERT_FATAL(arena_copy_str(&arena, str_of(base[i]), &copy));
        envp[n] = arena_take_bytes(&arena, copy.len + 1);
        CU_ASSERT_FATAL(envp[n] != NULL);
        memcpy(envp[n++], copy.p, copy.len + 1);
    }
    return envp;
}

static void deploy(const json_t *row, struct deployment *d)
{
    struct errlist errors;
    struct err e;

    *d = (struct deployment){.envp = env_of(row),
                             .haproxy_dir = "/share/haproxy",
                             .run_dir = "/run/e",
                             .max_inflight = 700,
                             .has_ipv6 = json_is_true(json_object_get(row, "ipv6"))};
    err_clear(&e);
    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    CASE_CHECK_GOT(row, settings_load(&d->settings, SETTINGS_RUN, d->envp, &errors),
                   errors.n > 0 ? str_of(errors.items[0].text) : STR_NONE);
    CASE_CHECK_GOT(row, settings_split_upstream(d->settings.upstream_url, &d->upstream, &e), str_of(e.text));
    d->ingress = settings_ingress(&d->settings, SETTINGS_RUN, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d->ingress);
    peer_list_read("EDGE_PROXY_PROTOCOL", d->settings.proxy_protocol, false, &arena, &d->balancers, &errors);
    CASE_CHECK(row, errors.n == 0);
    d->maxconn = limits_maxconn(d->max_inflight, d->settings.max_streams, false, UINT64_MAX);
    errlist_release(&errors);
}

/* The values that the row wants are there, the nulls are not, and with "all" nothing else is. */
static void check_env(const json_t *row, const char *member, char *const envp[])
{
    json_t *wants = json_object_get(row, member), *want;
    const char *name;
    size_t n = 0;

    json_object_foreach(wants, name, want)
    {
        const char *got = settings_env(envp, name);

        CASE_CHECK_GOT(row, json_is_null(want) ? got == NULL : got != NULL && strcmp(got, json_string_value(want)) == 0,
                       str_of(got == NULL ? name : got));
    }
    while (envp[n] != NULL)
        n++;
    if (json_is_true(json_object_get(row, "all")))
        CASE_CHECK(row, n == json_object_size(wants));
}

static void environments(void)
{
    json_t *rows = cases_load("tests/cases/launcher/environment.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct deployment d;
        char **envp;

        deploy(row, &d);
        CU_ASSERT_FATAL(environment_haproxy(&d, &arena, &envp));
        check_env(row, "haproxy", envp);
        CU_ASSERT_FATAL(environment_agent(&d, (struct agent_part){1, 9, false}, &arena, &envp));
        check_env(row, "agent", envp);
        arena_reset(&arena);
    }
    json_decref(rows);
}

static void agents_know_their_names(void)
{
    json_t *rows = cases_load("tests/cases/launcher/environment.json");
    struct settings_edge s;
    struct errlist errors;
    struct deployment d;
    char **envp;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    deploy(json_array_get(rows, 0), &d);
    CU_ASSERT_FATAL(environment_agent(&d, (struct agent_part){1, 9, true}, &arena, &envp));
    CU_ASSERT(settings_load(&s, SETTINGS_SERVE, envp, &errors));
    CU_ASSERT_EQUAL(s.agent_index, 1);
    CU_ASSERT_EQUAL(s.ready_fd, 9);
    CU_ASSERT_EQUAL(s.takes_over, 1);
    CU_ASSERT_EQUAL(s.max_inflight, 700);
    errlist_release(&errors);
    json_decref(rows);
    arena_reset(&arena);
}

static void environment_without_memory(void)
{
    json_t *rows = cases_load("tests/cases/launcher/environment.json");
    char *untouched[] = {NULL}, **envp = untouched;
    struct deployment d;
    struct arena tight;
    size_t enough;

    deploy(json_array_get(rows, 0), &d);
    arena_init(&tight, 64, 0);
    CU_ASSERT_FATAL(environment_haproxy(&d, &tight, &envp));
    enough = tight.used_bytes;
    arena_release(&tight);
    envp = untouched;
    for (size_t limit = 1; limit < enough; limit += enough / 10) {
        arena_init(&tight, 64, limit);
        CU_ASSERT(!environment_haproxy(&d, &tight, &envp));
        arena_release(&tight);
    }
    CU_ASSERT_PTR_EQUAL(envp, untouched);
    json_decref(rows);
    arena_reset(&arena);
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

    CU_add_test(
        s,
        "HAProxy gets the derived variables, agents their settings, and neither a secret of the launcher's environment",
        environments);
    CU_add_test(s, "an agent accepts the environment that the launcher makes for it", agents_know_their_names);
    CU_add_test(s, "an environment that finds no memory is refused and leaves the output alone",
                environment_without_memory);
    CU_add_test(s, "the memory limit is the smallest of the control groups and the machine", memory_limits);
    CU_add_test(s, "caps follow from memory, HAProxy's connections from caps and open files", caps);
    CU_add_test(s, "HAProxy's version is read from what it says of itself", versions);
    CU_add_test(s, "a HAProxy that is too old, another program or none is refused with words", old_haproxy);
    CU_add_test(s, "a child that dies is started again at once, one that keeps dying ever later", backoff);
    CU_add_test(s, "without a folder of its own an edge makes a private one and removes it", private_folder);
    CU_add_test(s, "two edges never share a folder of sockets, and it stays when they end", shared_folder);
    CU_add_test(s, "sockets are not put where everybody may replace them", open_folder);
}
