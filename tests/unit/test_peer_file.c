/* Lists of peers for HAProxy: rows of what is read, and the file that it becomes. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/policy/ingress.h"
#include "spoa/launcher/peer_file.h"
#include "tests/unit/cases.h"
#include "tests/unit/full_disk.h"
#include "tests/unit/refuse_memory.h"

enum { PATH_CAP = 256 };

static struct arena arena;
static char folder[64];

static int set_up(void)
{
    arena_init(&arena, 4096, 0);
    snprintf(folder, sizeof(folder), "/tmp/edge-unit-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int tear_down(void)
{
    char path[PATH_CAP];

    snprintf(path, sizeof(path), "%s/peers", folder);
    arena_release(&arena);
    return unlink(path) != 0 || rmdir(folder) != 0;
}

static void check_peer_file(const json_t *row, const struct addr_set *set)
{
    const json_t *wants = json_object_get(row, "lines");
    char path[PATH_CAP], line[128];
    struct stat st;
    struct err e;
    size_t n = 0;
    FILE *f;

    err_clear(&e);
    CASE_CHECK_GOT(row, peer_file_write(folder, "peers", set, &e), str_of(e.text));
    snprintf(path, sizeof(path), "%s/peers", folder);
    CASE_CHECK(row, stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    f = fopen(path, "r");
    CU_ASSERT_FATAL(f != NULL);
    for (; fgets(line, sizeof(line), f) != NULL; n++) {
        line[strcspn(line, "\n")] = '\0';
        CASE_CHECK_GOT(row, n < json_array_size(wants) && strcmp(line, json_string_value(json_array_get(wants, n))) == 0, str_of(line));
    }
    fclose(f);
    CASE_CHECK(row, n == json_array_size(wants));
}

static void peers(void)
{
    json_t *rows = cases_load("tests/cases/launcher/peers.json"), *row;
    size_t i, k;

    json_array_foreach(rows, i, row)
    {
        const json_t *wants = json_object_get(row, "faults");
        struct addr_set set = {0};
        struct errlist faults;

        CU_ASSERT_FATAL(errlist_init(&faults, 0));
        CASE_CHECK(row, ingress_read_peers("EDGE_X", json_string_value(json_object_get(row, "list")), json_is_true(json_object_get(row, "any")), &arena,
                                           &set, &faults));
        CASE_CHECK(row, faults.n == json_array_size(wants));
        for (k = 0; k < faults.n && k < json_array_size(wants); k++)
            CASE_CHECK_GOT(row, strcmp(faults.items[k].path, "/EDGE_X") == 0 && strstr(faults.items[k].text, json_string_value(json_array_get(wants, k))) != NULL,
                           str_of(faults.items[k].text));
        if (wants == NULL)
            check_peer_file(row, &set);
        errlist_release(&faults);
        arena_reset(&arena);
    }
    json_decref(rows);
}

static void peers_that_do_not_fit(void)
{
    static char list[2048 * 10];
    struct addr_set set = {0};
    struct errlist faults;
    struct err e;

    for (int i = 0; i < 1025; i++)
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s10.0.%d.%d", i > 0 ? "," : "", i / 256, i % 256);
    CU_ASSERT_FATAL(errlist_init(&faults, 0));
    CU_ASSERT(ingress_read_peers("EDGE_X", list, false, &arena, &set, &faults));
    CU_ASSERT(faults.n == 1 && strstr(faults.items[0].text, "at most 1024") != NULL && strcmp(faults.items[0].path, "/EDGE_X") == 0);
    errlist_release(&faults);

    err_clear(&e);
    CU_ASSERT(!peer_file_write("/nowhere/at/all", "peers", &set, &e));
    CU_ASSERT(strstr(e.text, "/nowhere/at/all/peers") != NULL);
    arena_reset(&arena);
}

static bool write_refused(void *arg, size_t n)
{
    const struct addr_set *set = arg;
    struct err e;

    err_clear(&e);
    refuse_memory(n);
    const bool ok = peer_file_write(folder, "peers", set, &e), refused = refuse_memory_end();
    CU_ASSERT(ok == !refused && (ok || strstr(e.text, "cannot make") != NULL));
    return refused;
}

static void files_that_can_not_be_written(void)
{
    char long_folder[600];
    struct addr_range range;
    struct addr_set set;
    struct err e;

    CU_ASSERT_FATAL(addr_parse_cidr(STR("10.0.0.0/8"), &range));
    addr_set_build(&set, &range, 1);
    memset(long_folder, 'f', sizeof(long_folder) - 1);
    long_folder[sizeof(long_folder) - 1] = '\0';
    err_clear(&e);
    CU_ASSERT(!peer_file_write(long_folder, "peers", &set, &e) && strstr(e.text, "shorter than 512 bytes") != NULL);
    CU_ASSERT(refuse_memory_everywhere(write_refused, &set) >= 1);

    err_clear(&e);
    full_disk_begin();
    CU_ASSERT(!peer_file_write(folder, "peers", &set, &e));
    full_disk_end();
    CU_ASSERT(strstr(e.text, "cannot write") != NULL);
    err_clear(&e);
    CU_ASSERT(peer_file_write(folder, "peers", &set, &e));
}

static bool list_refused(void *arg, size_t n)
{
    struct addr_set set = {0};
    struct errlist faults;

    (void)arg;
    CU_ASSERT_FATAL(errlist_init(&faults, 0));
    refuse_memory(n);
    const bool read = ingress_read_peers("EDGE_X", "10.0.0.0/8,::1", false, &arena, &set, &faults);
    const bool refused = refuse_memory_end();
    CU_ASSERT(read != refused && faults.n == 0 && set.n == (refused ? 0 : 2));
    errlist_release(&faults);
    return refused;
}

static void lists_without_memory(void)
{
    CU_ASSERT(refuse_memory_everywhere(list_refused, NULL) >= 1);
    arena_reset(&arena);
}

void test_peer_file_register(void)
{
    CU_pSuite s = CU_add_suite("peer_file", set_up, tear_down);

    CU_add_test(s, "each list of peers is the file or the faults of its row", peers);
    CU_add_test(s, "too many peers and a folder that is not there are refused", peers_that_do_not_fit);
    CU_add_test(s, "a file that can't be made or written whole is an error, never a shorter list", files_that_can_not_be_written);
    CU_add_test(s, "a list that finds no memory is a fault, never an empty list", lists_without_memory);
}
