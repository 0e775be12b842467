/* What an access record costs the agent that keeps it: CPU time of each part and of the whole, one line of JSON. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spoa/record/access_log.h"
#include "spoa/record/records.h"
#include "tests/bench/timing.h"

/* A burst is what the writer's queue takes; in the pause behind it, which costs this thread nothing, its thread writes. */
enum { RUNS = 25, BURST = 3000, PAUSE_US = 20000 };

static const char policy_file[] = "tests/bench/realistic.json";

/* A usual request of a browser. */
static const char record_text[] =
    "4\t3 0 a 1 allow - 198.51.100.7 DE 64500 t13d1516h2_8daaf6152771_02713d6af862 400 searches:c pages-of-the-shop,pages-of-search site - - - "
    "8f14e45fceea167a5a36dedd4bea2543 GET shop.example page,sort,utm_source 0 "
    "Mozilla/5.0\\u0020(X11;\\u0020Linux\\u0020x86_64)\\u0020AppleWebKit/537.36\\u0020(KHTML,\\u0020like\\u0020Gecko)\\u0020Chrome/131.0.0.0\\u0020Safari/537.36 "
    "/v1/orders/4711/items/of/the/request\t200\t12\t0\t--\ttrue\t-\tplain\tupstream\t812\t5120\t5\t9\t-";

struct bench {
    struct counts *counts;
    struct writer writer;
    struct records records, of_other;
    struct record record;
    struct outcome outcome;
    size_t line_bytes;
};

static void stop(const char *what, const struct err *e)
{
    fprintf(stderr, "bench_record: %s: %s\n", what, e != NULL ? e->text : "");
    exit(1);
}

static void parse(struct bench *b)
{
    if (!record_parse((struct str){record_text, sizeof record_text - 1}, &b->record))
        stop("the record is refused", NULL);
}

static void outcome(struct bench *b)
{
    outcome_read(&b->record, &b->outcome);
}

static void count(struct bench *b)
{
    counts_number(b->counts, 9, 5);
    counts_add(b->counts, &b->record.rec, &b->outcome);
}

static void render(struct bench *b)
{
    char storage[ACCESS_LINE_MAX];
    struct buf out;
    buf_init(&out, storage, sizeof storage);
    access_log_render(&b->record, &b->outcome, STR("2026-01-01T00:00:00.123Z"), RATE_WHOLE, &out);
    b->line_bytes = out.len;
}

/* In an agent that stands by. */
static void other(struct bench *b)
{
    records_take(&b->of_other, (struct str){record_text, sizeof record_text - 1});
}

static void whole(struct bench *b)
{
    records_take(&b->records, (struct str){record_text, sizeof record_text - 1});
}

/* Nanoseconds a call, the median of the runs. */
static double measure(struct bench *b, void (*part)(struct bench *b), unsigned pause_us)
{
    double ns[RUNS];
    for (size_t r = 0; r < RUNS; r++) {
        const double start = cpu_ns();
        for (size_t i = 0; i < BURST; i++)
            part(b);
        ns[r] = (cpu_ns() - start) / BURST;
        usleep(pause_us);
    }
    return median(ns, RUNS);
}

static struct policy *make_policy(void)
{
    struct policy *p = NULL;
    struct errlist errors, warnings;
    if (!errlist_init(&errors, 0) || !errlist_init(&warnings, 0))
        stop("no memory", NULL);
    json_t *document = json_load_file(policy_file, 0, NULL);
    if (document == NULL || !policy_compile(document, &policy_options_any, &p, &errors, &warnings))
        stop(policy_file, errors.n > 0 ? &errors.items[0] : NULL);
    json_decref(document);
    errlist_release(&errors);
    errlist_release(&warnings);
    return p;
}

static void folder_remove(const char *path)
{
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        unlinkat(dirfd(folder), entry->d_name, 0); /* which refuses "." and ".." */
    if (folder != NULL)
        closedir(folder);
    rmdir(path);
}

int main(void)
{
    static struct bench b;
    char folder[40], file[64];
    struct err e;
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct policy *p = make_policy();
    err_clear(&e);
    snprintf(folder, sizeof folder, "/tmp/edge-bench-record-XXXXXX");
    if (mkdtemp(folder) == NULL)
        stop("no folder for counters", NULL);
    snprintf(file, sizeof file, "%s/counts", folder);
    if (null < 0 || !writer_start(&b.writer, null, &e) || !counts_open(&b.counts, file, &clock_system, &e))
        stop("cannot start", &e);
    counts_prepare(b.counts, p, COHORT_ACTIVE);
    const struct records_options options = {
        .log_sample_rate = RATE_WHOLE, .counts = b.counts, .writer = &b.writer, .clock = &clock_system};
    records_init(&b.records, &options);
    b.of_other = b.records;
    b.of_other.options.agent_index = 1;

    const double parse_ns = measure(&b, parse, 0), outcome_ns = measure(&b, outcome, 0), count_ns = measure(&b, count, 0),
                 render_ns = measure(&b, render, 0), whole_ns = measure(&b, whole, PAUSE_US), other_ns = measure(&b, other, 0);
    printf("{\"bench\":\"record\",\"record_bytes\":%zu,\"line_bytes\":%zu,\"parse_ns\":%.0f,\"outcome_ns\":%.0f,\"count_ns\":%.0f,\"render_ns\":%.0f,"
           "\"whole_ns\":%.0f,\"of_another_agent_ns\":%.0f,\"lines_dropped\":%ju}\n",
           sizeof record_text - 1, b.line_bytes, parse_ns, outcome_ns, count_ns, render_ns, whole_ns, other_ns, (uintmax_t) atomic_load(&b.writer.n_dropped));
    counts_close(&b.counts);
    folder_remove(folder);
    writer_stop(&b.writer);
    policy_free(&p);
    close(null);
    return 0;
}
