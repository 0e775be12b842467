/* The environments that the launcher makes for its children: rows of its own environment with theirs. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "spoa/launcher/environment.h"
#include "spoa/launcher/limits.h"
#include "spoa/launcher/peer_file.h"
#include "spoa/settings_deployment.h"
#include "tests/unit/cases.h"
#include "tests/unit/refuse_memory.h"

enum { VARIABLES_MAX = 48 };

static struct arena arena;

static int set_up(void)
{
    arena_init(&arena, 4096, 0);
    return 0;
}

static int tear_down(void)
{
    arena_release(&arena);
    return 0;
}

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
    CASE_CHECK(row, settings_balancers(&d->settings, &arena, &d->balancers, &errors) && errors.n == 0);
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

/* Of row 0: what both environments take, each place refused in its turn. */
struct attempt {
    struct deployment d;
    bool is_haproxy;
};

static bool environment_refused(void *arg, size_t n)
{
    const struct attempt *t = arg;
    char *untouched[] = {NULL}, **envp = untouched;

    refuse_memory(n);
    const bool ok = t->is_haproxy ? environment_haproxy(&t->d, &arena, &envp) : environment_agent(&t->d, (struct agent_part){1, 9, false}, &arena, &envp);
    const bool refused = refuse_memory_end();
    CU_ASSERT(ok == !refused && (envp == untouched) == refused);
    return refused;
}

static void environment_without_memory(void)
{
    json_t *rows = cases_load("tests/cases/launcher/environment.json");
    struct attempt t;

    deploy(json_array_get(rows, 0), &t.d);
    for (int i = 0; i < 2; i++) {
        t.is_haproxy = i == 1;
        CU_ASSERT(refuse_memory_everywhere(environment_refused, &t) > 5);
    }
    json_decref(rows);
    arena_reset(&arena);
}

/* Settings that settings_load would have refused. */
static void listens_unchecked(void)
{
    json_t *rows = cases_load("tests/cases/launcher/environment.json");
    char *untouched[] = {NULL}, **envp = untouched;
    struct deployment d;

    deploy(json_array_get(rows, 0), &d);
    d.settings.listen = ":80,no port";
    CU_ASSERT(!environment_haproxy(&d, &arena, &envp));
    CU_ASSERT_PTR_EQUAL(envp, untouched);
    json_decref(rows);
    arena_reset(&arena);
}

void test_environment_register(void)
{
    CU_pSuite s = CU_add_suite("environment", set_up, tear_down);

    CU_add_test(
        s,
        "HAProxy gets the derived variables, agents their settings, and neither a secret of the launcher's environment",
        environments);
    CU_add_test(s, "an agent accepts the environment that the launcher makes for it", agents_know_their_names);
    CU_add_test(s, "an environment that finds no memory is refused and leaves the output alone",
                environment_without_memory);
    CU_add_test(s, "what is no list of addresses makes no environment", listens_unchecked);
}
