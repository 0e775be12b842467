/* Strict JSON: parsing, the reader, files. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/jx.h"
#include "tests/unit/cases.h"

static void check_says(const json_t *row, const json_t *says, const char *text)
{
    json_t *part;
    size_t i;

    json_array_foreach(says, i, part) CASE_CHECK_GOT(row, strstr(text, json_string_value(part)) != NULL, str_of(text));
}

static void documents(void)
{
    json_t *rows = cases_load("tests/cases/base/json_documents.json"), *row;
    char storage[64];
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct str text = case_str(row, "text");
        const char *not_said = json_string_value(json_object_get(row, "says_not"));
        json_t *document = NULL;
        struct err e;
        bool ok;

        if (text.p == NULL)
            text = case_bytes(row, "text_hex", storage, sizeof(storage));
        err_clear(&e);
        ok = jx_parse(text, JX_DOCUMENT_MAX_BYTES, &document, &e);
        CASE_CHECK_GOT(row, str_eq(str_of(err_code_name(e.code)), case_str(row, "code")), str_of(e.text));
        CASE_CHECK(row, ok == (e.code == ERR_NONE) && ok == (document != NULL));
        if (!ok) {
            char place[32];
            int len = snprintf(place, sizeof(place), "%u:%u", e.line, e.column);

            CASE_CHECK_GOT(row,
                           e.line == json_integer_value(json_object_get(row, "line")) &&
                               e.column == json_integer_value(json_object_get(row, "column")),
                           ((struct str){place, (size_t)len}));
            check_says(row, json_object_get(row, "says"), e.text);
            CASE_CHECK_GOT(row, not_said == NULL || strstr(e.text, not_said) == NULL, str_of(e.text));
        }
        json_decref(document);
    }
    json_decref(rows);
}

static void sizes_are_checked_before_parsing(void)
{
    enum { N = 1000001 };
    char *text = malloc(2 * N + 1);
    json_t *document = NULL;
    struct err e;

    CU_ASSERT_FATAL(text != NULL);
    err_clear(&e);
    CU_ASSERT(jx_parse(STR("[1]"), 3, &document, &e));
    json_decref(document);
    document = NULL;
    CU_ASSERT(!jx_parse(STR("[12]"), 3, &document, &e) && e.code == ERR_TOO_LARGE && document == NULL);

    for (size_t i = 0; i < N; i++)
        memcpy(text + 1 + 2 * i, "1,", 2);
    text[0] = '[';
    text[2 * N] = ']';
    err_clear(&e);
    CU_ASSERT(!jx_parse((struct str){text, 2 * N + 1}, SIZE_MAX, &document, &e) && e.code == ERR_TOO_LARGE);
    CU_ASSERT(strstr(e.text, "1000000 values") != NULL);
    free(text);
}

static const char *const mode_names[] = {"a", "b", NULL};

struct sample {
    struct str name;
    int64_t count, deep;
    bool on;
    uint64_t period_ms;
    int mode;
    size_t n_items;
};

/* A reader as policies have it: required and optional members, a nested object, a list of objects. */
static void read_sample(const struct jx *root, struct sample *out)
{
    static const char *const names[] = {"name", "count", "on", "period", "mode", "nested", "items", NULL};
    static const char *const item_names[] = {"id", NULL};
    struct jx name = jx_member(root, "name"), count = jx_member(root, "count"), on = jx_member(root, "on");
    struct jx period = jx_member(root, "period"), mode = jx_member(root, "mode"), items = jx_member(root, "items");
    struct jx nested = jx_member(root, "nested"), deep = jx_member(&nested, "deep"),
              pause = jx_member(&nested, "pause");
    uint64_t pause_ms;

    *out = (struct sample){.period_ms = 5000, .mode = -1};
    jx_only(root, names);
    jx_need_str(&name, &out->name);
    jx_need_int(&count, 1, 10, &out->count);
    jx_bool(&on, &out->on);
    jx_duration_ms(&period, 1000, 3600000, &out->period_ms);
    jx_enum(&mode, mode_names, &out->mode);
    jx_need_int(&deep, INT64_MIN, INT64_MAX, &out->deep);
    if (jx_has(&pause))
        jx_need_duration_ms(&pause, 0, UINT64_MAX, &pause_ms);
    out->n_items = jx_array_len(&items);
    for (size_t i = 0; i < out->n_items; i++) {
        struct jx item = jx_item(&items, i), id = jx_member(&item, "id");
        struct str text;

        if (!jx_is_object(&item))
            continue;
        jx_only(&item, item_names);
        jx_need_str(&id, &text);
    }
}

static void check_wanted(const json_t *row, const json_t *want, const struct sample *got)
{
    const char *mode = got->mode < 0 ? "none" : mode_names[got->mode];

    CASE_CHECK(row, str_eq(got->name, case_str(want, "name")));
    CASE_CHECK(row, got->count == json_integer_value(json_object_get(want, "count")));
    CASE_CHECK(row, got->deep == json_integer_value(json_object_get(want, "deep")));
    CASE_CHECK(row, got->on == json_is_true(json_object_get(want, "on")));
    CASE_CHECK(row, got->period_ms == (uint64_t)json_integer_value(json_object_get(want, "period_ms")));
    CASE_CHECK(row, str_eq(str_of(mode), case_str(want, "mode")));
    CASE_CHECK(row, got->n_items == (size_t)json_integer_value(json_object_get(want, "n_items")));
}

static void members(void)
{
    json_t *rows = cases_load("tests/cases/base/json_members.json"), *row, *fault;
    size_t i, k;

    json_array_foreach(rows, i, row)
    {
        const json_t *faults = json_object_get(row, "faults"), *want = json_object_get(row, "want");
        struct arena arena;
        struct errlist errors;
        struct jx_doc doc = {.arena = &arena, .errors = &errors};
        struct jx root = jx_root(json_object_get(row, "document"), &doc);
        struct sample got;

        arena_init(&arena, 1024, 0);
        CU_ASSERT_FATAL(errlist_init(&errors, 0));
        read_sample(&root, &got);
        CASE_CHECK_GOT(row, errors.n == json_array_size(faults),
                       str_of(errors.n == 0 ? "" : errors.items[errors.n - 1].text));
        json_array_foreach(faults, k, fault)
        {
            if (k >= errors.n)
                break;
            CASE_CHECK_GOT(row, str_eq(str_of(err_code_name(errors.items[k].code)), case_str(fault, "code")),
                           str_of(errors.items[k].text));
            CASE_CHECK_GOT(row, str_eq(str_of(errors.items[k].path), case_str(fault, "path")),
                           str_of(errors.items[k].path));
            check_says(row, json_object_get(fault, "says"), errors.items[k].text);
        }
        if (want != NULL)
            check_wanted(row, want, &got);
        errlist_release(&errors);
        arena_release(&arena);
    }
    json_decref(rows);
}

static void absent_values_leave_the_default(void)
{
    struct errlist errors;
    struct jx_doc doc = {.errors = &errors};
    struct jx root = jx_root(NULL, &doc), child = jx_member(&root, "a"), item = jx_item(&child, 3);
    struct str text = STR("default");
    uint64_t ms = 7;
    int64_t n = 7;
    bool on = true;
    int mode = 7;

    CU_ASSERT_FATAL(errlist_init(&errors, 0));
    CU_ASSERT(!jx_has(&root) && !jx_has(&child) && !jx_has(&item) && !jx_is_object(&root));
    CU_ASSERT(!jx_str(&item, &text) && str_eq(text, STR("default")));
    CU_ASSERT(!jx_int(&item, 0, 1, &n) && n == 7);
    CU_ASSERT(!jx_bool(&item, &on) && on);
    CU_ASSERT(!jx_duration_ms(&item, 0, 1, &ms) && ms == 7);
    CU_ASSERT(!jx_enum(&item, mode_names, &mode) && mode == 7);
    CU_ASSERT(jx_array_len(&child) == 0);
    jx_only(&root, mode_names);
    CU_ASSERT(errors.n == 0);
    CU_ASSERT(!jx_need_duration_ms(&item, 0, 1, &ms) && errors.n == 1);
    CU_ASSERT_STRING_EQUAL(errors.items[0].path, "/a/3");
    errlist_release(&errors);
}

static void strings_live_as_long_as_the_arena(void)
{
    json_t *document = json_pack("[s, s]", "kept", "a text that is longer than the arena's limit allows");
    struct arena arena;
    struct errlist errors;
    struct jx_doc doc = {.arena = &arena, .errors = &errors};
    struct jx root = jx_root(document, &doc), first = jx_item(&root, 0), second = jx_item(&root, 1);
    struct str kept = STR_NONE, refused = STR("untouched");

    arena_init(&arena, 16, 24);
    CU_ASSERT_FATAL(document != NULL && errlist_init(&errors, 0));
    CU_ASSERT(jx_str(&first, &kept));
    CU_ASSERT(!jx_str(&second, &refused) && str_eq(refused, STR("untouched")));
    CU_ASSERT(errors.n == 1 && errors.items[0].code == ERR_NO_MEMORY);
    json_decref(document);
    CU_ASSERT(str_eq(kept, STR("kept")));
    errlist_release(&errors);
    arena_release(&arena);
}

static void paths_are_cut_at_an_ancestor(void)
{
    enum { LEVELS = JX_DEPTH_MAX + 6 };
    struct jx levels[LEVELS];
    struct errlist errors;
    struct jx_doc doc = {.errors = &errors};
    char path[ERR_PATH_MAX], name[101];

    memset(name, '~', 100);
    name[100] = '\0';
    levels[0] = jx_root(NULL, &doc);
    for (size_t i = 1; i < LEVELS; i++)
        levels[i] = jx_member(&levels[i - 1], name);
    jx_path(&levels[2], path);
    CU_ASSERT(strlen(path) == 2 * 201);
    jx_path(&levels[3], path);
    CU_ASSERT(strlen(path) == 2 * 201);
    /* Deeper than any document: bounded, not overrun. */
    jx_path(&levels[LEVELS - 1], path);
    CU_ASSERT(strlen(path) == 2 * 201);
}

/* Makes dir/name with text, unless that is NULL, and loads it. Returns the error's text, "" when it loaded. */
static struct err load(const char *dir, const char *name, const char *text, size_t max_bytes)
{
    char path[128];
    json_t *document = NULL;
    struct err e;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (text != NULL) {
        FILE *f = fopen(path, "w");

        CU_ASSERT_FATAL(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
    }
    err_clear(&e);
    CU_ASSERT(jx_load(path, max_bytes, &document, &e) == (document != NULL));
    json_decref(document);
    unlink(path);
    return e;
}

static void make_socket(const char *dir, const char *name)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, name);
    CU_ASSERT_FATAL(fd >= 0 && bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0);
    close(fd);
}

static void a_file_without_permission_is_named(void)
{
    char path[] = "/tmp/edge-unit-XXXXXX";
    int fd = mkstemp(path);
    uid_t me = geteuid();
    json_t *document = NULL;
    struct err e;

    CU_ASSERT_FATAL(fd >= 0 && fchmod(fd, 0) == 0);
    close(fd);
    /* Root may read everything: ask as another user. */
    if (me == 0 && seteuid(65534) != 0) {
        printf("\n    skipped: root may not become another user here\n");
    } else {
        err_clear(&e);
        CU_ASSERT(!jx_load(path, 100, &document, &e) && e.code == ERR_UNREADABLE);
        CU_ASSERT(strstr(e.text, "no permission to read it") != NULL);
        CU_ASSERT_FATAL(seteuid(me) == 0);
    }
    CU_ASSERT(unlink(path) == 0);
}

static void files_are_refused_each_in_its_own_words(void)
{
    char dir[] = "/tmp/edge-unit-XXXXXX", path[128];
    struct err e;
    json_t *document = NULL;

    CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
    e = load(dir, "good.json", "{\"a\": 1}", 100);
    CU_ASSERT(e.code == ERR_NONE);
    e = load(dir, "absent.json", NULL, 100);
    CU_ASSERT(e.code == ERR_UNREADABLE && strstr(e.text, "absent.json: there is no such file") != NULL);
    e = load(dir, "absent/absent.json", NULL, 100);
    CU_ASSERT(e.code == ERR_UNREADABLE && strstr(e.text, "there is no such file") != NULL);
    e = load(dir, ".", NULL, 100);
    CU_ASSERT(e.code == ERR_UNREADABLE && strstr(e.text, "is a directory") != NULL);
    e = load(dir, "empty.json", "", 100);
    CU_ASSERT(e.code == ERR_UNREADABLE && strstr(e.text, "is empty") != NULL);
    e = load(dir, "large.json", "[1, 2, 3]", 8);
    CU_ASSERT(e.code == ERR_TOO_LARGE && strstr(e.text, "larger than 8 bytes") != NULL);
    e = load(dir, "bad.json", "{\n,", 100);
    CU_ASSERT(e.code == ERR_SYNTAX && e.line == 2 && e.column == 1);

    snprintf(path, sizeof(path), "%s/fifo", dir);
    CU_ASSERT_FATAL(mkfifo(path, 0600) == 0);
    e = load(dir, "fifo", NULL, 100);
    CU_ASSERT(e.code == ERR_UNREADABLE && strstr(e.text, "not a regular file") != NULL);
    make_socket(dir, "socket");
    e = load(dir, "socket", NULL, 100);
    CU_ASSERT(e.code == ERR_UNREADABLE && strstr(e.text, "not a regular file") != NULL);
    CU_ASSERT(rmdir(dir) == 0);

    err_clear(&e);
    CU_ASSERT(!jx_load("/dev/null", 100, &document, &e) && strstr(e.text, "not a regular file") != NULL);
    /* Regular, of size 0 when asked, and not empty when read. */
    err_clear(&e);
    CU_ASSERT(!jx_load("/proc/self/status", 100, &document, &e) && strstr(e.text, "grew while it was read") != NULL);
    /* Opens, but reading the unmapped page 0 fails. */
    err_clear(&e);
    CU_ASSERT(!jx_load("/proc/self/mem", 100, &document, &e) && strstr(e.text, "cannot be read") != NULL);
}

void test_jx_register(void)
{
    CU_pSuite s = CU_add_suite("jx", NULL, NULL);

    CU_add_test(s, "security: only one strict, bounded document parses; each refusal has its code and place",
                documents);
    CU_add_test(s, "security: bytes and values are counted before anything is parsed",
                sizes_are_checked_before_parsing);
    CU_add_test(s, "all faults are reported at once, each at its own path", members);
    CU_add_test(s, "absent values leave the default and are no fault unless needed", absent_values_leave_the_default);
    CU_add_test(s, "strings live as long as the arena, not the document", strings_live_as_long_as_the_arena);
    CU_add_test(s, "a path that is too long ends at an ancestor", paths_are_cut_at_an_ancestor);
    CU_add_test(s, "a file without permission is refused as such", a_file_without_permission_is_named);
    CU_add_test(s, "files that cannot be loaded are refused each in its own words",
                files_are_refused_each_in_its_own_words);
}
