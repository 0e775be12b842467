/* Access records: HAProxy's line and the agent's part of it, read back and rendered. */
#include <CUnit/CUnit.h>
#include <unistd.h>

#include "spoa/record/access_log.h"
#include "tests/unit/case_raw.h"

static struct arena scratch;

static int set_up(void)
{
    arena_init(&scratch, 4096, 0);
    return 0;
}

static int tear_down(void)
{
    arena_release(&scratch);
    return 0;
}

static void render(const json_t *row, struct buf *out)
{
    struct record r;
    if (CASE_CHECK(row, record_parse(case_str(row, "record"), &r)) && CASE_CHECK(row, r.has_rec))
        access_log_render(&r, 1767225600123, &scratch, out);
}

static void each_record_becomes_the_line_of_its_row(void)
{
    json_t *rows = cases_load("tests/cases/record/lines.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        char storage[ACCESS_LINE_MAX];
        struct buf out;
        buf_init(&out, storage, sizeof storage);
        render(row, &out);
        json_t *line = json_loadb(out.p, out.len, JSON_REJECT_DUPLICATES, NULL);
        CASE_CHECK_GOT(row, line != NULL && json_equal(line, json_object_get(row, "line")), buf_str(&out));
        json_decref(line);
        arena_reset(&scratch);
    }
    json_decref(rows);
}

static void a_record_of_another_shape_is_refused(void)
{
    json_t *rows = cases_load("tests/cases/record/refused.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        struct record r;
        CASE_CHECK(row, !record_parse(case_str(row, "record"), &r));
    }
    json_decref(rows);
}

/* Written, read back, and what a reader of the line decodes: the text again. */
static void check_text(const json_t *row)
{
    char storage[REC_MAX], raw[256], rec[REC_MAX];
    struct buf b, whole;
    struct rec parsed;
    size_t room = (size_t) json_integer_value(json_object_get(row, "room"));
    buf_init(&b, storage, sizeof storage);
    rec_put_text(&b, case_raw(row, "text", raw, sizeof raw), (size_t) json_integer_value(json_object_get(row, "max")), room);
    CASE_CHECK_GOT(row, str_eq(buf_str(&b), case_str(row, "want")), buf_str(&b));
    CASE_CHECK(row, !b.full && b.len <= room);
    buf_init(&whole, rec, sizeof rec);
    buf_put_cstr(&whole, "2 0 7 allow 192.0.2.1 - - - id GET - ");
    buf_put(&whole, buf_str(&b));
    if (CASE_CHECK(row, rec_parse(buf_str(&whole), &parsed)))
        CASE_CHECK(row, str_eq(parsed.path, str_eq(buf_str(&b), STR("-")) ? STR_NONE : buf_str(&b)));
}

static void each_text_is_written_as_its_row_says(void)
{
    json_t *rows = cases_load("tests/cases/record/texts.json"), *row;
    size_t i;
    json_array_foreach(rows, i, row) check_text(row);
    json_decref(rows);
}

static struct str long_id(const struct policy *p, size_t i)
{
    (void) p;
    (void) i;
    return STR("a-rule-id-of-sixty-four-characters-which-is-as-long-as-they-get");
}

static void ids_that_do_not_fit_are_counted_instead(void)
{
    char storage[REC_MAX];
    struct buf b;
    struct rule_hits hits = {.n = POLICY_RULES_MAX};
    buf_init(&b, storage, sizeof storage);
    rec_put_ids(&b, NULL, &hits, long_id);
    CU_ASSERT_FALSE(b.full);
    CU_ASSERT(b.len <= REC_IDS_MAX + 8);
    size_t n_written = 1;
    for (size_t i = 0; i < b.len; i++)
        n_written += b.p[i] == ',';
    char tail[16];
    snprintf(tail, sizeof tail, ",+%zu", POLICY_RULES_MAX - (n_written - 1));
    CU_ASSERT(str_ends(buf_str(&b), str_of(tail)));
}

static uint64_t fixed_ms(void *ctx)
{
    (void) ctx;
    return 1767225600123;
}

static void an_agent_takes_its_own_records_and_only_the_first_counts_those_without_verdict(void)
{
    static const char wire[] = "3\t2 %u 3 allow 192.0.2.1 - - - id GET a /\t200\t1\t0\t--\ttrue\t0\tplain\tupstream\t1\t2\t3\t4\t-";
    static const char bare[] = "3\t\t503\t1\t0\tPR\tfalse\t0\tplain\t<NOSRV>\t1\t2\t3\t4\t-";
    static const struct clock clock = {.mono_us = fixed_ms, .real_ms = fixed_ms};
    for (unsigned agent = 0; agent < 2; agent++) {
        int fds[2];
        struct writer w;
        struct access_log log;
        struct err e;
        char line[512];
        err_clear(&e);
        CU_ASSERT_FATAL(pipe(fds) == 0);
        CU_ASSERT_FATAL(writer_start(&w, fds[1], &e));
        access_log_init(&log, agent, &w, &clock);
        for (unsigned other = 0; other < 2; other++) {
            snprintf(line, sizeof line, wire, other);
            access_log_record(&log, str_of(line));
        }
        access_log_record(&log, str_of(bare));
        access_log_record(&log, STR("nonsense"));
        writer_stop(&w);
        access_log_release(&log);
        CU_ASSERT_EQUAL(atomic_load(&log.n_own), 1);
        CU_ASSERT_EQUAL(atomic_load(&log.n_without_verdict), agent == 0 ? 1 : 0);
        CU_ASSERT_EQUAL(atomic_load(&log.n_malformed), 1);
        CU_ASSERT_EQUAL(atomic_load(&w.n_lines), 1);
        close(fds[0]);
        close(fds[1]);
    }
}

void test_record_register(void)
{
    CU_pSuite s = CU_add_suite("record", set_up, tear_down);
    CU_add_test(s, "each record becomes the line of its row", each_record_becomes_the_line_of_its_row);
    CU_add_test(s, "a record of another shape is refused", a_record_of_another_shape_is_refused);
    CU_add_test(s, "each text is written as its row says, and reads back", each_text_is_written_as_its_row_says);
    CU_add_test(s, "rule ids that do not fit are counted instead", ids_that_do_not_fit_are_counted_instead);
    CU_add_test(s, "an agent takes its own records and only the first counts those without verdict",
                an_agent_takes_its_own_records_and_only_the_first_counts_those_without_verdict);
}
