/* Records of a HAProxy that is stopping, on their way through the launcher. */
#include <CUnit/CUnit.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "spoa/launcher/late_records.h"
#include "tests/unit/cases.h"

static void lines_are_taken_apart(void)
{
    json_t *rows = cases_load("tests/cases/launcher/late_lines.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const json_t *agent = json_object_get(row, "agent");
        const struct str wanted = case_str(row, "record");
        char storage[LATE_RECORD_MAX];
        struct late_line found;
        struct buf record;

        buf_init(&record, storage, sizeof(storage));
        if (!CASE_CHECK(row, late_line_parse(case_str(row, "line"), &found, &record) == (wanted.len > 0)) || wanted.len == 0)
            continue;
        CASE_CHECK_GOT(row, str_eq(buf_str(&record), wanted), buf_str(&record));
        CASE_CHECK(row, found.stopping == json_is_true(json_object_get(row, "stopping")));
        CASE_CHECK(row, found.decided == (agent != NULL) && (agent == NULL || found.agent == json_integer_value(agent)));
        CASE_CHECK(row, str_starts(str_sub(case_str(row, "line"), found.len, SIZE_MAX), STR(",\"edge.record\"")));
    }
    json_decref(rows);
}

/* --- where they go --- */

enum { GOT_MAX = 65536 };

struct rig {
    char folder[32];
    int listeners[LATE_AGENTS_MAX];
    int out;
    struct output *output;
    struct late_records late;
};

static void rig_path(const struct rig *r, unsigned agent, struct sockaddr_un *name)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(name->sun_path, sizeof(name->sun_path), "%s/records-%u.sock", r->folder, agent);
}

static void rig_listen(struct rig *r, unsigned agent)
{
    struct sockaddr_un name;

    rig_path(r, agent, &name);
    (void)unlink(name.sun_path);
    r->listeners[agent] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(bind(r->listeners[agent], (const struct sockaddr *)&name, sizeof(name)) == 0 && listen(r->listeners[agent], 4) == 0);
}

static void rig_open(struct rig *r)
{
    int fds[2];
    struct err e;

    err_clear(&e);
    *r = (struct rig){.folder = "/tmp/edge-unit-XXXXXX", .listeners = {-1, -1}};
    CU_ASSERT_FATAL(mkdtemp(r->folder) != NULL && pipe2(fds, O_CLOEXEC) == 0);
    CU_ASSERT_FATAL(output_start(&r->output, fds[1], GOT_MAX, &e));
    close(fds[1]);
    r->out = fds[0];
    late_records_init(&r->late, r->folder, LATE_AGENTS_MAX, r->output);
}

/* What was printed; the rig is gone afterwards. */
static struct str rig_close(struct rig *r, char *storage)
{
    struct sockaddr_un name;
    size_t len = 0;
    ssize_t n;

    late_records_release(&r->late);
    output_stop(&r->output, 60000);
    while ((n = read(r->out, storage + len, GOT_MAX - len)) > 0)
        len += (size_t)n;
    close(r->out);
    for (unsigned i = 0; i < LATE_AGENTS_MAX; i++) {
        rig_path(r, i, &name);
        if (r->listeners[i] >= 0)
            close(r->listeners[i]);
        (void)unlink(name.sun_path);
    }
    CU_ASSERT_EQUAL(rmdir(r->folder), 0);
    return (struct str){storage, len};
}

/* The next connection of an agent's socket: everything that came over it until its end. */
static struct str agent_got(const struct rig *r, unsigned agent, char *storage)
{
    const int fd = accept(r->listeners[agent], NULL, NULL);
    size_t len = 0;
    ssize_t n;

    while ((n = read(fd, storage + len, GOT_MAX - len)) > 0)
        len += (size_t)n;
    close(fd);
    return (struct str){storage, len};
}

#define PART "3 1 a 7 allow - 192.0.2.1 - - - 0 - - - - - - 0123456789abcdef0123456789abcdef GET a.example - 0 - "
#define FIELDS(number) "200\\t12\\t4\\t--\\ttrue\\t-\\tplain\\tupstream\\t100\\t200\\t" number "\\t9\\t-"
#define DECIDED(stopping, path, number) "{\"msg\":\"access\",\"edge.record\":\"" stopping " 4\\t" PART path "\\t" FIELDS(number) "\"}"
#define UNDECIDED(stopping, number) "{\"msg\":\"access\",\"edge.record\":\"" stopping " 4\\t-\\t" FIELDS(number) "\"}"

static void put(struct rig *r, const char *line)
{
    late_records_line(&r->late, str_of(line));
}

static void a_process_that_goes_on_has_its_rings(void)
{
    char storage[GOT_MAX];
    struct rig r;

    rig_open(&r);
    rig_listen(&r, 1);
    put(&r, "{\"msg\":\"hello\"}");
    put(&r, DECIDED("0", "/a", "1"));
    put(&r, UNDECIDED("0", "2"));
    CU_ASSERT(r.late.agents[1].fd < 0);
    CU_ASSERT(str_eq(rig_close(&r, storage), STR("{\"msg\":\"hello\"}\n{\"msg\":\"access\"}\n")));
}

static void of_one_that_stops_every_agent_gets_every_record(void)
{
    char storage[GOT_MAX], wanted[1024];
    struct rig r;

    rig_open(&r);
    for (unsigned agent = 0; agent < LATE_AGENTS_MAX; agent++)
        rig_listen(&r, agent);
    put(&r, DECIDED("1", "/a", "11"));
    put(&r, UNDECIDED("1", "12"));
    for (unsigned agent = 0; agent < LATE_AGENTS_MAX; agent++)
        CU_ASSERT(shutdown(r.late.agents[agent].fd, SHUT_WR) == 0);
    const int len = snprintf(wanted, sizeof(wanted), "153 4\t" PART "/a\t200\t12\t4\t--\ttrue\t-\tplain\tupstream\t100\t200\t10\t9\t-\n"
                                                      "53 4\t-\t200\t12\t4\t--\ttrue\t-\tplain\tupstream\t100\t200\t11\t9\t-\n");
    for (unsigned agent = 0; agent < LATE_AGENTS_MAX; agent++)
        CU_ASSERT(str_eq(agent_got(&r, agent, storage), (struct str){wanted, (size_t)len}));
    CU_ASSERT(str_eq(rig_close(&r, storage), STR("{\"msg\":\"access\"}\n")));
}

static bool is_line_of(struct str printed, const char *path)
{
    const struct str wanted[] = {STR("\"msg\":\"access\""), STR("\"edge.decision\":\"allow\""), STR("\"edge.config_version\":7"), str_of(path)};

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (str_find(printed, wanted[i]) == SIZE_MAX)
            return false;
    return str_find(printed, STR("edge.record")) == SIZE_MAX;
}

static void an_agent_that_is_none_of_ours_has_nothing(void)
{
    char storage[GOT_MAX];
    struct rig r;

    rig_open(&r);
    put(&r, "{\"edge.record\":0,\"edge.record\":\"1 4\\t3 64 a 7 allow - 192.0.2.1 - - - 0 - - - - - - 0123456789abcdef0123456789abcdef GET a.example - 0 - /x\\t" FIELDS("5") "\"}");
    CU_ASSERT(is_line_of(rig_close(&r, storage), "\"url.path\":\"/x\""));
}

static void where_the_agent_that_decided_is_gone_its_line_is_made_here(void)
{
    char storage[GOT_MAX];
    struct rig r;

    rig_open(&r);
    rig_listen(&r, 0);
    put(&r, DECIDED("1", "/gone", "11"));
    CU_ASSERT(r.late.agents[0].fd >= 0 && r.late.agents[1].fd < 0);
    CU_ASSERT(is_line_of(rig_close(&r, storage), "\"url.path\":\"/gone\""));
}

static void an_agent_that_was_exchanged_gets_the_next_record(void)
{
    char storage[GOT_MAX];
    struct rig r;
    int fd;

    rig_open(&r);
    rig_listen(&r, 1);
    put(&r, DECIDED("1", "/old", "11"));
    fd = accept(r.listeners[1], NULL, NULL);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    close(r.listeners[1]);
    rig_listen(&r, 1);
    put(&r, DECIDED("1", "/new", "12"));
    CU_ASSERT_FATAL(r.late.agents[1].fd >= 0);
    CU_ASSERT_EQUAL(shutdown(r.late.agents[1].fd, SHUT_WR), 0);
    CU_ASSERT(str_find(agent_got(&r, 1, storage), STR("/new")) != SIZE_MAX);
    CU_ASSERT_EQUAL(rig_close(&r, storage).len, 0);
}

/* It reads nothing: once its socket is full its lines are made here, and the others are not asked to wait for each of them. */
static void an_agent_that_does_not_read_holds_nothing_up(void)
{
    char storage[GOT_MAX];
    unsigned n = 0;
    struct rig r;
    int fd;

    rig_open(&r);
    rig_listen(&r, 1);
    put(&r, DECIDED("1", "/full", "11"));
    fd = accept(r.listeners[1], NULL, NULL);
    CU_ASSERT_FATAL(fd >= 0);
    while (r.late.agents[1].fd >= 0 && n++ < 100000)
        put(&r, DECIDED("1", "/full", "12"));
    CU_ASSERT(r.late.agents[1].fd < 0);
    put(&r, DECIDED("1", "/after", "13"));
    CU_ASSERT(r.late.agents[1].fd < 0);
    const struct str printed = rig_close(&r, storage);
    CU_ASSERT(is_line_of(printed, "\"url.path\":\"/full\"") && is_line_of(printed, "\"url.path\":\"/after\""));
    close(fd);
}

void test_late_records_register(void)
{
    CU_pSuite s = CU_add_suite("late_records", NULL, NULL);

    CU_add_test(s, "a line is parted from the record at its end, and nothing else is taken for one", lines_are_taken_apart);
    CU_add_test(s, "of a process that goes on only what nobody decided is printed", a_process_that_goes_on_has_its_rings);
    CU_add_test(s, "of one that stops every agent gets every record, as from a ring", of_one_that_stops_every_agent_gets_every_record);
    CU_add_test(s, "where the agent that decided is gone its line is made here", where_the_agent_that_decided_is_gone_its_line_is_made_here);
    CU_add_test(s, "an agent that this edge does not have has nothing", an_agent_that_is_none_of_ours_has_nothing);
    CU_add_test(s, "an agent that was exchanged gets the next record", an_agent_that_was_exchanged_gets_the_next_record);
    CU_add_test(s, "an agent that does not read holds nothing up", an_agent_that_does_not_read_holds_nothing_up);
}
