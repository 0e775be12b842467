/* From a record to its line: what each member says, which records an agent takes, and which of their lines it writes. */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/counter.h"
#include "spoa/record/access_log.h"
#include "spoa/record/records.h"
#include "tests/unit/cases.h"
#include "tests/unit/refuse_memory.h"

static const char *const names[] = {
#define LOG_FIELD_ROW(id, name, type, when, stability, meaning) name,
#include "schemas/log_fields.def"
#undef LOG_FIELD_ROW
};
enum { N_NAMES = sizeof names / sizeof names[0] };

static json_t *line_of(const json_t *row, struct buf *out)
{
    const json_t *rate = json_object_get(row, "sample_rate");
    struct record r;
    struct outcome outcome;
    if (!CASE_CHECK(row, record_parse(case_str(row, "record"), &r)) || !CASE_CHECK(row, r.has_rec))
        return NULL;
    outcome_read(&r, &outcome);
    access_log_render(&r, &outcome, STR("2026-01-01T00:00:00.123Z"), rate != NULL ? (uint64_t) json_integer_value(rate) : RATE_WHOLE, out);
    return json_loadb(out->p, out->len, JSON_REJECT_DUPLICATES, NULL);
}

static void each_record_becomes_the_line_of_its_row(void)
{
    json_t *rows = cases_load("tests/cases/record/access_lines.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char storage[ACCESS_LINE_MAX];
        struct buf out;
        buf_init(&out, storage, sizeof storage);
        json_t *line = line_of(row, &out);
        CASE_CHECK_GOT(row, line != NULL && json_equal(line, json_object_get(row, "line")), buf_str(&out));
        json_decref(line);
    }
    json_decref(rows);
}

/* Nor is a byte written behind its room. */
static void a_line_that_has_no_room_is_none(void)
{
    json_t *rows = cases_load("tests/cases/record/access_lines.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char whole[ACCESS_LINE_MAX];
        struct buf out;
        buf_init(&out, whole, sizeof whole);
        json_decref(line_of(row, &out));
        const size_t len = out.len;
        for (size_t room = 0; room <= len; room++) {
            char *storage = malloc(room + 1);
            CU_ASSERT_FATAL(storage != NULL);
            storage[room] = '#';
            buf_init(&out, storage, room);
            json_decref(line_of(row, &out));
            CASE_CHECK(row, out.full == (room < len) && out.len <= room && storage[room] == '#');
            free(storage);
        }
    }
    json_decref(rows);
}

static size_t place_of(const char *name)
{
    for (size_t i = 0; i < N_NAMES; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return N_NAMES;
}

static void each_member_of_the_table_is_in_some_row_and_in_its_order(void)
{
    json_t *rows = cases_load("tests/cases/record/access_lines.json"), *row;
    bool seen[N_NAMES] = {false};
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char storage[ACCESS_LINE_MAX];
        struct buf out;
        size_t next = 0;
        const char *name;
        json_t *value;
        buf_init(&out, storage, sizeof storage);
        json_t *line = line_of(row, &out);
        json_object_foreach(line, name, value)
        {
            const size_t place = place_of(name);
            CASE_CHECK_GOT(row, place >= next && place < N_NAMES, str_of(name));
            next = place + 1;
            seen[place < N_NAMES ? place : 0] = true;
        }
        json_decref(line);
    }
    for (size_t k = 0; k < N_NAMES; k++)
        CU_ASSERT(seen[k]);
    json_decref(rows);
}

/* --- records: one agent that gets lines, its counters in a file of its own --- */

static uint64_t now_ms;

static uint64_t time_now(void *ctx)
{
    (void) ctx;
    return now_ms;
}

static const struct clock test_clock = {.mono_us = time_now, .real_ms = time_now};

struct agent_rig {
    char folder[40];
    int fds[2];
    struct counts *counts;
    struct writer writer;
    struct records records;
    char written[8192];
    size_t n_written;
};

static void rig_start(struct agent_rig *rig, unsigned agent_index, uint64_t log_sample_rate)
{
    struct err e;
    err_clear(&e);
    now_ms = 1767225600123;
    memset(rig, 0, sizeof *rig);
    char file[64];
    snprintf(rig->folder, sizeof rig->folder, "/tmp/edge-access-log-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(rig->folder) != NULL);
    snprintf(file, sizeof file, "%s/counts", rig->folder);
    CU_ASSERT_FATAL(pipe(rig->fds) == 0);
    CU_ASSERT_FATAL(writer_start(&rig->writer, rig->fds[1], &e));
    CU_ASSERT_FATAL(counts_open(&rig->counts, file, &test_clock, &e));
    const struct records_options options = {
        .agent_index = agent_index, .log_sample_rate = log_sample_rate, .counts = rig->counts, .writer = &rig->writer, .clock = &test_clock};
    records_init(&rig->records, &options);
}

/* What was written is in written[0..n_written) then; the counters stay to be read until rig_end. */
static void rig_stop(struct agent_rig *rig)
{
    writer_stop(&rig->writer);
    close(rig->fds[1]);
    for (ssize_t n; (n = read(rig->fds[0], rig->written + rig->n_written, sizeof rig->written - 1 - rig->n_written)) > 0;)
        rig->n_written += (size_t) n;
    close(rig->fds[0]);
}

static void rig_end(struct agent_rig *rig)
{
    counts_close(&rig->counts);
    DIR *folder = opendir(rig->folder);
    CU_ASSERT_FATAL(folder != NULL);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        unlinkat(dirfd(folder), entry->d_name, 0); /* which refuses "." and ".." */
    closedir(folder);
    CU_ASSERT_EQUAL(rmdir(rig->folder), 0);
}

/* id: the request's. */
static void take(struct agent_rig *rig, unsigned agent, const char *decision, unsigned status, const char *id)
{
    char line[512];
    snprintf(line, sizeof line,
             "4\t3 %u a 3 %s - 192.0.2.1 - - - 0 - - - - - - %s GET a - 0 - /\t%u\t1\t0\t--\ttrue\t-\tplain\tupstream\t1\t2\t%u\t9\t-", agent,
             decision, id, status, 0u);
    records_take(&rig->records, str_of(line));
}

static uint64_t n_requests(const struct counts *counts)
{
    struct counts_sums sums;
    uint64_t n = 0;
    counts_totals(counts, &sums);
    for (size_t i = 0; i < DECISION_N; i++)
        n += sums.decisions[i];
    return n;
}

static void an_agent_takes_its_own_records_and_only_the_first_counts_those_without_verdict(void)
{
    static const char undecided[] = "4\t\t503\t1\t0\tPR\tfalse\t-\tplain\t<NOSRV>\t1\t2\t3\t4\tunavailable";
    for (unsigned agent = 0; agent < 2; agent++) {
        struct agent_rig rig;
        struct counts_sums sums;
        rig_start(&rig, agent, RATE_WHOLE);
        take(&rig, 0, "allow", 200, "first");
        take(&rig, 1, "allow", 200, "second");
        records_take(&rig.records, STR(undecided));
        rig_stop(&rig);
        CU_ASSERT_EQUAL(counter_get(&rig.records.n_own), 1);
        CU_ASSERT_EQUAL(counter_get(&rig.records.n_without_verdict), agent == 0 ? 1 : 0);
        CU_ASSERT_EQUAL(counter_get(&rig.records.n_malformed), 0);
        CU_ASSERT_EQUAL(atomic_load(&rig.writer.n_lines), 1);
        CU_ASSERT_PTR_NOT_NULL(strstr(rig.written, agent == 0 ? "\"request_id\":\"first\"" : "\"request_id\":\"second\""));
        counts_totals(rig.counts, &sums);
        CU_ASSERT_EQUAL(sums.decisions[DECISION_ALLOW], 1);
        CU_ASSERT_EQUAL(sums.decisions[DECISION_UNAVAILABLE], agent == 0 ? 1 : 0);
        rig_end(&rig);
    }
}

/* Each agent counts what is malformed among its own, so that it is counted once. */
static void of_a_record_that_another_agent_keeps_only_the_number_is_read(void)
{
    struct agent_rig rig;
    rig_start(&rig, 1, RATE_WHOLE);
    records_take(&rig.records, STR("4\t3 0 nonsense\t200\t1\t0\t--\ttrue\t-\tplain\tupstream\t1\t2\t0\t9\t-"));
    take(&rig, 0, "nodecision", 200, "id");
    CU_ASSERT_EQUAL(counts_others(rig.counts), 2);
    CU_ASSERT_EQUAL(counter_get(&rig.records.n_malformed), 0);
    records_take(&rig.records, STR("4\t2 0 a 3\t200\t1\t0\t--\ttrue\t-\tplain\tupstream\t1\t2\t0\t9\t-"));
    take(&rig, 1, "nodecision", 200, "id");
    CU_ASSERT_EQUAL(counts_others(rig.counts), 2);
    CU_ASSERT_EQUAL(counter_get(&rig.records.n_malformed), 2);
    rig_stop(&rig);
    CU_ASSERT_EQUAL(rig.n_written, 0);
    rig_end(&rig);
}

static void what_cannot_be_read_is_counted_but_haproxys_word_that_it_dropped_some_is_no_record(void)
{
    struct agent_rig rig;
    rig_start(&rig, 0, RATE_WHOLE);
    records_take(&rig.records, STR("nonsense"));
    records_take(&rig.records, STR_NONE);
    records_take(&rig.records, STR("4\t3 0 a 3 nodecision - - - - - 0 - - - - - - - - - - 0 - -\t200\t1\t0\t--\ttrue\t-\tplain\tupstream\t1\t2\t3\t4\t-"));
    CU_ASSERT_EQUAL(counter_get(&rig.records.n_malformed), 3);
    records_take(&rig.records, (struct str){"1 event dropped", sizeof "1 event dropped"});
    records_take(&rig.records, (struct str){"12 events dropped", sizeof "12 events dropped"});
    CU_ASSERT_EQUAL(counter_get(&rig.records.n_malformed), 3);
    CU_ASSERT_EQUAL(n_requests(rig.counts), 0);
    rig_stop(&rig);
    CU_ASSERT_EQUAL(rig.n_written, 0);
    rig_end(&rig);
}

/* The shares of "id" and "Request-1" are 46 and 2724 (schemas/sampling_vectors.def). */
static const struct {
    const char *decision, *id;
    unsigned status;
    uint64_t rate;
    bool written, says_rate;
} choices[] = {
    {"allow", "id", 200, 10000, true, false},         {"allow", "id", 200, 47, true, true},
    {"allow", "id", 200, 46, false, false},           {"allow", "id", 200, 0, false, false},
    {"allow", "Request-1", 200, 2725, true, true},    {"allow", "Request-1", 404, 2725, true, true},
    {"allow", "Request-1", 404, 2724, false, false},  {"allow", "Request-1", 499, 2724, false, false},
    {"allow", "Request-1", 500, 2724, true, false},   {"allow", "Request-1", 999, 2724, true, false},
    {"allow", "Request-1", 999, 9999, true, false},   {"would_block", "Request-1", 200, 0, true, false},
    {"block", "Request-1", 403, 0, true, false},      {"rate_limited", "Request-1", 429, 0, true, false},
    {"preflight", "id", 204, 47, true, true},         {"preflight", "id", 204, 46, false, false},
    {"path", "Request-1", 400, 0, true, false},       {"unavailable", "Request-1", 503, 0, true, false},
};

static void only_allowed_requests_below_500_and_preflights_are_sampled_by_their_ids_hash_and_all_are_counted(void)
{
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        struct agent_rig rig;
        rig_start(&rig, 0, choices[i].rate);
        take(&rig, 0, choices[i].decision, choices[i].status, choices[i].id);
        rig_stop(&rig);
        CU_ASSERT_EQUAL(rig.n_written > 0, choices[i].written);
        CU_ASSERT_EQUAL(strstr(rig.written, "\"edge.sample_rate\":0.") != NULL, choices[i].says_rate);
        CU_ASSERT_EQUAL(counter_get(&rig.records.n_sampled_out), choices[i].written ? 0 : 1);
        CU_ASSERT_EQUAL(counter_get(&rig.records.n_own), 1);
        CU_ASSERT_EQUAL(n_requests(rig.counts), 1);
        rig_end(&rig);
    }
}

/* A new thread has no context for hashes yet. */
static void *take_without_memory(void *arg)
{
    refuse_memory_of_ours(0);
    take(arg, 0, "allow", 200, "Request-1");
    CU_ASSERT(refuse_memory_end());
    return NULL;
}

static void a_line_that_nobody_can_choose_about_is_written_and_stands_for_itself(void)
{
    struct agent_rig rig;
    pthread_t thread;
    rig_start(&rig, 0, 1);
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, take_without_memory, &rig) == 0);
    pthread_join(thread, NULL);
    rig_stop(&rig);
    CU_ASSERT(rig.n_written > 0);
    CU_ASSERT_PTR_NULL(strstr(rig.written, "sample_rate"));
    rig_end(&rig);
}

static void each_line_has_the_time_that_its_record_came(void)
{
    static const struct {
        uint64_t ms;
        const char *id, *time;
    } rows[] = {{1767225600123, "a", "2026-01-01T00:00:00.123Z"}, {1767225600123, "b", "2026-01-01T00:00:00.123Z"},
                {1767225600124, "c", "2026-01-01T00:00:00.124Z"}, {1767225600000, "d", "2026-01-01T00:00:00.000Z"}};
    struct agent_rig rig;
    rig_start(&rig, 0, RATE_WHOLE);
    for (size_t i = 0; i < 4; i++) {
        now_ms = rows[i].ms;
        take(&rig, 0, "allow", 200, rows[i].id);
    }
    rig_stop(&rig);
    char *line = rig.written;
    for (size_t i = 0; i < 4; i++) {
        json_t *j = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
        CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "time")), rows[i].time);
        CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "request_id")), rows[i].id);
        json_decref(j);
        line = strchr(line, '\n') + 1;
    }
    rig_end(&rig);
}

static void a_tick_a_second_tells_what_never_came(void)
{
    struct agent_rig rig;
    rig_start(&rig, 0, RATE_WHOLE);
    records_take(&rig.records, STR("4\t\t503\t1\t0\tPR\tfalse\t-\tplain\t<NOSRV>\t1\t2\t0\t9\tunavailable"));
    records_take(&rig.records, STR("4\t\t503\t1\t0\tPR\tfalse\t-\tplain\t<NOSRV>\t1\t2\t3\t9\tunavailable"));
    CU_ASSERT_EQUAL(counts_lost(rig.counts), 0);
    for (int i = 0; i < 4; i++) {
        now_ms += 1000 * 1000; /* the clock of the counters takes them for microseconds */
        records_tick(&rig.records);
    }
    CU_ASSERT_EQUAL(counts_lost(rig.counts), 2);
    rig_stop(&rig);
    rig_end(&rig);
}

static void a_client_that_left_is_sampled_as_what_is_below_500(void)
{
    static const char left[] = "4\t3 0 a 3 allow - 192.0.2.1 - - - 0 - - - - - - id GET a - 0 - /\t-1\t1\t-1\tCC\tfalse\t-\tplain\tupstream\t1\t2\t0\t9\t-";
    struct agent_rig rig;
    rig_start(&rig, 0, 46);
    records_take(&rig.records, STR(left));
    rig_stop(&rig);
    CU_ASSERT_EQUAL(rig.n_written, 0);
    CU_ASSERT_EQUAL(counter_get(&rig.records.n_sampled_out), 1);
    rig_end(&rig);
}

void test_access_log_register(void)
{
    CU_pSuite s = CU_add_suite("access_log", NULL, NULL);
    CU_add_test(s, "each record becomes the line of its row", each_record_becomes_the_line_of_its_row);
    CU_add_test(s, "a line that has no room is none", a_line_that_has_no_room_is_none);
    CU_add_test(s, "a tick a second tells what never came", a_tick_a_second_tells_what_never_came);
    CU_add_test(s, "each member of the table is in some row, and in its order", each_member_of_the_table_is_in_some_row_and_in_its_order);
    CU_add_test(s, "an agent takes its own records and only the first counts those without verdict",
                an_agent_takes_its_own_records_and_only_the_first_counts_those_without_verdict);
    CU_add_test(s, "of a record that another agent keeps only the number is read", of_a_record_that_another_agent_keeps_only_the_number_is_read);
    CU_add_test(s, "what cannot be read is counted, but HAProxy's word that it dropped some is no record",
                what_cannot_be_read_is_counted_but_haproxys_word_that_it_dropped_some_is_no_record);
    CU_add_test(s, "only allowed requests below 500 are sampled, by their id's hash, and all are counted",
                only_allowed_requests_below_500_and_preflights_are_sampled_by_their_ids_hash_and_all_are_counted);
    CU_add_test(s, "a line that nobody can choose about is written and stands for itself",
                a_line_that_nobody_can_choose_about_is_written_and_stands_for_itself);
    CU_add_test(s, "each line has the time that its record came", each_line_has_the_time_that_its_record_came);
    CU_add_test(s, "a client that left is sampled as what is below 500", a_client_that_left_is_sampled_as_what_is_below_500);
}
