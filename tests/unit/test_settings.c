/* Settings of an edge: rows of environments with the values or the faults they give; and UPSTREAM_URL in parts. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "spoa/settings_deployment.h"
#include "tests/unit/cases.h"
#include "tests/unit/refuse_memory.h"

#define VALUES "tests/cases/settings/values.json"
#define FAULTS "tests/cases/settings/faults.json"

enum { VARIABLES_MAX = 40 };

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

static const struct {
    const char *name;
    enum settings_use use;
    const char *base[6]; /* what the use requires: pairs of name and value */
} uses[] = {
    {"run",
     SETTINGS_RUN,
     {"UPSTREAM_URL", "http://127.0.0.1:8000", "POLICY_FILE", "policy.json", "CLIENT_IP_SOURCE", "remote_addr"}},
    {"serve",
     SETTINGS_SERVE,
     {"EDGE_RUN_DIR", "/run/edge", "POLICY_FILE", "policy.json", "CLIENT_IP_SOURCE", "remote_addr"}},
    {"doctor", SETTINGS_DOCTOR, {NULL}},
    {"offline", SETTINGS_OFFLINE, {NULL}},
};

static size_t use_of(const json_t *row)
{
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
        if (str_eq(case_str(row, "use"), str_of(uses[i].name)))
            return i;
    CU_FAIL_FATAL("a row's use is run, serve, doctor or offline");
    return 0;
}

static void add(char **envp, size_t *n, const char *name, const char *value)
{
    const size_t cap = strlen(name) + strlen(value) + 2;
    char *entry = arena_take_bytes(&arena, cap);

    CU_ASSERT_FATAL(entry != NULL && *n < VARIABLES_MAX);
    snprintf(entry, cap, "%s=%s", name, value);
    envp[(*n)++] = entry;
}

/* What the row's use requires, overlaid with the row's own; null leaves a variable out. */
static void env_of(const json_t *row, char **envp)
{
    const char *const *base = uses[use_of(row)].base;
    json_t *env = json_object_get(row, "env"), *value;
    const char *name;
    size_t n = 0;

    for (size_t i = 0; i + 1 < 6 && base[i] != NULL; i += 2)
        if (json_object_get(env, base[i]) == NULL)
            add(envp, &n, base[i], base[i + 1]);
    json_object_foreach(env, name, value) if (!json_is_null(value)) add(envp, &n, name, json_string_value(value));
    envp[n] = NULL;
}

/* A member as JSON, by its setting's name. */
#define JSON_OF(value)                                                                                                 \
    _Generic((value), const char *: json_string((const char *)(uintptr_t)(value)), default: json_integer((json_int_t)(uintptr_t)(value)))

static json_t *member_of(const struct settings_edge *s, const char *wanted)
{
#define SETTING_ROW(member, name, type, dflt, min, max, readers, meaning)                                              \
    if (strcmp(wanted, name) == 0)                                                                                     \
        return JSON_OF(s->member);
#include "schemas/settings.def"
    return NULL;
}

static void check_values(const json_t *row)
{
    char *envp[VARIABLES_MAX + 1];
    struct settings_edge s = {0};
    struct errlist errors;
    json_t *want;
    const char *name;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    env_of(row, envp);
    CASE_CHECK_GOT(row, settings_load(&s, uses[use_of(row)].use, envp, &errors),
                   errors.n > 0 ? str_of(errors.items[0].text) : STR_NONE);
    json_object_foreach(json_object_get(row, "values"), name, want)
    {
        json_t *got = member_of(&s, name);

        CASE_CHECK_GOT(row, json_equal(got, want), str_of(name));
        json_decref(got);
    }
    errlist_release(&errors);
}

static void values(void)
{
    json_t *rows = cases_load(VALUES), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        check_values(row);
        arena_reset(&arena);
    }
    json_decref(rows);
}

static const struct err *fault_of(const struct errlist *errors, const char *name)
{
    for (size_t i = 0; i < errors->n; i++)
        if (errors->items[i].path[0] == '/' && strcmp(errors->items[i].path + 1, name) == 0)
            return &errors->items[i];
    return NULL;
}

static void check_faults(const json_t *row)
{
    const struct settings_edge before = {.listen = "untouched", .agents = 77};
    struct settings_edge s = before;
    char *envp[VARIABLES_MAX + 1];
    struct errlist errors;
    json_t *wants = json_object_get(row, "faults"), *want;
    const struct str secret = case_str(row, "hides");
    const char *name;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    env_of(row, envp);
    CASE_CHECK(row, !settings_load(&s, uses[use_of(row)].use, envp, &errors));
    CASE_CHECK(row, memcmp(&s, &before, sizeof(s)) == 0);
    CASE_CHECK_GOT(row, errors.n == json_object_size(wants),
                   errors.n > 0 ? str_of(errors.items[errors.n - 1].text) : STR_NONE);
    json_object_foreach(wants, name, want)
    {
        const struct err *e = fault_of(&errors, name);
        const struct str text = e == NULL ? STR_NONE : str_of(e->text);

        CASE_CHECK_GOT(row, e != NULL && e->code == ERR_SETTING, str_of(name));
        CASE_CHECK_GOT(
            row, str_starts(text, str_of(name)) && str_find(text, str_of(json_string_value(want))) != SIZE_MAX, text);
    }
    for (size_t i = 0; i < errors.n && secret.len > 0; i++)
        CASE_CHECK_GOT(row, str_find(str_of(errors.items[i].text), secret) == SIZE_MAX, str_of(errors.items[i].text));
    errlist_release(&errors);
}

static void faults(void)
{
    json_t *rows = cases_load(FAULTS), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        check_faults(row);
        arena_reset(&arena);
    }
    json_decref(rows);
}

/* Whether a row's object `member` names the setting. */
static bool is_in(const json_t *rows, const char *member, const char *name)
{
    size_t i;
    json_t *row;

    json_array_foreach(rows, i, row) if (json_object_get(json_object_get(row, member), name) != NULL) return true;
    return false;
}

static void every_row_has_cases(void)
{
    json_t *good = cases_load(VALUES), *bad = cases_load(FAULTS);

#define SETTING_ROW(member, name, type, dflt, min, max, readers, meaning)                                              \
    CU_ASSERT(is_in(good, "values", name));                                                                            \
    CU_ASSERT(is_in(good, "env", name) || is_in(bad, "env", name));
#define SETTING_REFUSED(name, readers, reason) CU_ASSERT(is_in(bad, "faults", name));
#include "schemas/settings.def"
    json_decref(good);
    json_decref(bad);
}

static void first_counts(void)
{
    char one[] = "CLIENT_IP_SOURCE=remote_addr", two[] = "CLIENT_IP_SOURCE=other", near[] = "CLIENT_IP_SOURCES=x";
    char *envp[] = {near, one, two, NULL};
    struct settings_edge s = {0};
    struct errlist errors;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    CU_ASSERT(settings_load(&s, SETTINGS_OFFLINE, envp, &errors));
    CU_ASSERT_STRING_EQUAL(s.client_ip_source, "remote_addr");
    CU_ASSERT_STRING_EQUAL(settings_env(envp, "CLIENT_IP_SOURCE"), "remote_addr");
    CU_ASSERT_PTR_NULL(settings_env(envp, "CLIENT_IP"));
    errlist_release(&errors);
}

/* Lines are joined again where the help wrapped them. */
static void unwrap(char *text)
{
    char *out = text;

    for (const char *in = text; *in != '\0'; in++)
        if (strncmp(in, "\n      ", 7) == 0) {
            *out++ = ' ';
            in += 6;
        } else {
            *out++ = *in;
        }
    *out = '\0';
}

static void printed(void)
{
    char text[16384];
    FILE *f = fmemopen(text, sizeof(text), "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    settings_print(f);
    CU_ASSERT(ftell(f) < (long)sizeof(text) - 1);
    fclose(f);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
        CU_ASSERT(strcspn(line, "\n") <= 100);
    unwrap(text);
#define SETTING_ROW(member, name, type, dflt, min, max, readers, meaning)                                              \
    CU_ASSERT((strstr(text, "\n  " name " ") != NULL && strstr(text, " " meaning "\n") != NULL) ==                     \
              (((readers)&FROM_LAUNCHER) == 0));
#define SETTING_GROUP(title)                   CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n" title "\n"));
#define SETTING_REFUSED(name, readers, reason) CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n  " name " "));
#define SETTING_PASSED(name, readers, meaning) CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n  " name " "));
#include "schemas/settings.def"
}

static void check_upstream(const json_t *row)
{
    const struct upstream_addr before = {.host = "untouched"};
    struct upstream_addr got = before;
    const struct str error = case_str(row, "error");
    struct err e;
    bool ok;

    err_clear(&e);
    ok = settings_split_upstream(json_string_value(json_object_get(row, "url")), &got, &e);
    if (error.len > 0) {
        CASE_CHECK_GOT(row, !ok && str_find(str_of(e.text), error) != SIZE_MAX, str_of(e.text));
        CASE_CHECK(row, memcmp(&got, &before, sizeof(got)) == 0);
        CASE_CHECK_GOT(row, strstr(e.text, "secret") == NULL, str_of(e.text));
        return;
    }
    CASE_CHECK_GOT(row, ok, str_of(e.text));
    CASE_CHECK_GOT(row, str_eq(str_of(got.host), case_str(row, "host")), str_of(got.host));
    CASE_CHECK(row, got.tls == json_is_true(json_object_get(row, "tls")));
    CASE_CHECK(row, got.port == json_integer_value(json_object_get(row, "port")));
}

static void upstreams(void)
{
    json_t *rows = cases_load("tests/cases/settings/upstream.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row) check_upstream(row);
    json_decref(rows);
}

static bool load_refused(void *arg, size_t n)
{
    char source[] = "CLIENT_IP_SOURCE=cloudfront", proxies[] = "TRUSTED_PROXIES=::1", header[] = "INGRESS_SECRET_HEADER=X-Secret",
         secret[] = "INGRESS_SECRET=0123456789abcdef", policy[] = "POLICY_FILE=p", dir[] = "EDGE_RUN_DIR=/run/edge";
    char *envp[] = {source, proxies, header, secret, policy, dir, NULL};
    struct settings_edge s = {.agents = 77};
    struct errlist errors;

    (void)arg;
    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    refuse_memory(n);
    const bool ok = settings_load(&s, SETTINGS_SERVE, envp, &errors), refused = refuse_memory_end();
    CU_ASSERT(ok == !refused && (ok || (s.agents == 77 && errors.n == 1 && errors.items[0].code == ERR_NO_MEMORY)));
    errlist_release(&errors);
    return refused;
}

static void refused_anywhere(void)
{
    CU_ASSERT(refuse_memory_everywhere(load_refused, NULL) > 5);
}

/* --- ingress --- */

static bool ingress_refused(void *arg, size_t n)
{
    const struct settings_edge *s = arg;
    struct errlist warnings;

    CU_ASSERT_FATAL(errlist_init(&warnings, 0));
    refuse_memory(n);
    const struct ingress *in = settings_ingress(s, SETTINGS_SERVE, &warnings);
    const bool refused = refuse_memory_end();
    CU_ASSERT((in == NULL) == refused);
    CU_ASSERT(refused || (in->source == CLIENT_IP_HEADER && warnings.n == 1));
    errlist_release(&warnings);
    return refused;
}

static bool logged_refused(void *arg, size_t n)
{
    const struct settings_edge *s = arg;

    refuse_memory(n);
    const struct ingress *in = settings_ingress_logged(s, SETTINGS_SERVE);
    const bool refused = refuse_memory_end();
    CU_ASSERT((in == NULL) == refused);
    return refused;
}

static bool load_cloudfront(struct settings_edge *s)
{
    static char source[] = "CLIENT_IP_SOURCE=cloudfront", policy[] = "POLICY_FILE=p", dir[] = "EDGE_RUN_DIR=/run/edge";
    char *envp[] = {source, policy, dir, NULL};
    struct errlist errors;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    const bool ok = settings_load(s, SETTINGS_SERVE, envp, &errors);
    errlist_release(&errors);
    return ok;
}

static void ingress_without_memory(void)
{
    struct settings_edge s;

    CU_ASSERT_FATAL(load_cloudfront(&s));
    CU_ASSERT(refuse_memory_everywhere(ingress_refused, &s) > 3);
}

/* Standard error is a file meanwhile. */
static void ingress_logged(void)
{
    const int saved = dup(STDERR_FILENO);
    FILE *log = tmpfile();
    struct settings_edge s;
    char text[4096];
    size_t len;

    CU_ASSERT_FATAL(load_cloudfront(&s) && saved >= 0 && log != NULL && dup2(fileno(log), STDERR_FILENO) >= 0);
    CU_ASSERT(refuse_memory_everywhere(logged_refused, &s) > 3);
    CU_ASSERT_FATAL(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    rewind(log);
    len = fread(text, 1, sizeof(text) - 1, log);
    text[len] = '\0';
    fclose(log);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"level\":\"warn\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "TRUSTED_PROXIES: is empty"));
}

void test_settings_register(void)
{
    CU_pSuite s = CU_add_suite("settings", set_up, tear_down);

    CU_add_test(s, "a setting has the value of its variable or its default, and a use reads only what it needs",
                values);
    CU_add_test(s, "all faults are reported at once, each names its variable and shows no secret", faults);
    CU_add_test(s, "every setting and every refused name has rows", every_row_has_cases);
    CU_add_test(s, "of a variable given twice the first counts, and a longer name is another one", first_counts);
    CU_add_test(s, "the printed table holds every setting that people give", printed);
    CU_add_test(s, "an upstream's URL is scheme, host and port, and anything else is refused without being quoted",
                upstreams);
    CU_add_test(s, "settings are not accepted wherever memory is refused", refused_anywhere);
    CU_add_test(s, "where memory is refused nobody is told how requests reach the edge", ingress_without_memory);
    CU_add_test(s, "what of ingress can't be meant is logged as a warning that names its setting", ingress_logged);
}
