/* What the tests of counters share. */
#include "tests/unit/counts_rig.h"

#include <CUnit/CUnit.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct counts_rig counts_rig;

static uint64_t rig_now(void *ctx)
{
    (void)ctx;
    return counts_rig.now_us;
}

int counts_rig_set_up(void)
{
    counts_rig = (struct counts_rig){.clock = {.mono_us = rig_now, .real_ms = rig_now}, .now_us = 1000000000};
    (void)snprintf(counts_rig.folder, sizeof(counts_rig.folder), "/tmp/edge-counts-XXXXXX");
    if (mkdtemp(counts_rig.folder) == NULL)
        return 1;
    (void)snprintf(counts_rig.stem, sizeof(counts_rig.stem), "%s/counts-0", counts_rig.folder);
    return 0;
}

int counts_rig_tear_down(void)
{
    counts_rig_forget();
    return rmdir(counts_rig.folder);
}

void counts_rig_forget(void)
{
    if (counts_rig.file[0] != '\0')
        (void)unlink(counts_rig.file);
    counts_rig.file[0] = '\0';
}

struct counts *counts_rig_open(void)
{
    struct counts *c = NULL;
    struct err e;
    char pattern[100];
    glob_t found;

    err_clear(&e);
    if (!counts_open(&c, counts_rig.stem, &counts_rig.clock, &e))
        fprintf(stderr, "counts_open: %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    (void)snprintf(pattern, sizeof(pattern), "%s.*", counts_rig.stem);
    CU_ASSERT_EQUAL_FATAL(glob(pattern, 0, NULL, &found), 0);
    CU_ASSERT_EQUAL_FATAL(found.gl_pathc, 1);
    (void)snprintf(counts_rig.file, sizeof(counts_rig.file), "%s", found.gl_pathv[0]);
    globfree(&found);
    return c;
}

void counts_rig_tick(struct counts *c, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        counts_rig.now_us += 1000000;
        counts_tick(c);
    }
}

/* The next word of *words, which it passes. */
static struct str word_take(const char **words)
{
    const char *from = *words + strspn(*words, " ");
    const size_t len = strcspn(from, " ");

    *words = from + len;
    return (struct str){from, len};
}

void counts_rig_prepare(struct counts *c, int64_t version, enum cohort cohort, const char *config, const char *rate, const char *header)
{
    struct config_rule *configs = calloc(COUNTS_RIG_RULES_MAX, sizeof(*configs));
    struct rate_rule *rates = calloc(COUNTS_RIG_RULES_MAX, sizeof(*rates));
    struct header_rule *headers = calloc(COUNTS_RIG_RULES_MAX, sizeof(*headers));
    struct policy p = {.version = version, .config_rules = configs, .rate_rules = rates, .header_rules = headers};

    CU_ASSERT_FATAL(configs != NULL && rates != NULL && headers != NULL);
    for (struct str id; (id = word_take(&config)).len > 0 && p.n_config_rules < COUNTS_RIG_RULES_MAX;)
        configs[p.n_config_rules++].id = id;
    for (struct str id; (id = word_take(&rate)).len > 0 && p.n_rate_rules < COUNTS_RIG_RULES_MAX;)
        rates[p.n_rate_rules++].id = id;
    for (struct str id; (id = word_take(&header)).len > 0 && p.n_header_rules < COUNTS_RIG_RULES_MAX;)
        headers[p.n_header_rules++].id = id;
    counts_prepare(c, &p, cohort);
    free(configs);
    free(rates);
    free(headers);
}

void counts_rig_add(struct counts *c, int64_t version, enum cohort cohort, unsigned status, const char *config)
{
    const struct rec rec = {.config_version = version, .cohort = cohort, .decision = DECISION_ALLOW, .config_rules = str_of(config)};
    const struct outcome outcome = {.decision = DECISION_ALLOW, .origin = ORIGIN_UPSTREAM, .status = status};

    counts_add(c, &rec, &outcome);
}

uint64_t counts_rig_requests(const struct counts_sums *sums)
{
    uint64_t n = 0;

    for (size_t i = 0; i <= OUTCOME_STATUS_MAX; i++)
        n += sums->codes[ORIGIN_EDGE][i] + sums->codes[ORIGIN_UPSTREAM][i];
    return n;
}

uint64_t counts_rig_total(const struct counts *c)
{
    struct counts_sums sums;

    counts_totals(c, &sums);
    return counts_rig_requests(&sums);
}

struct wanted {
    enum count_phase phase;
    struct str id;
    uint64_t n;
};

static void look_at(void *ctx, const struct counts_rule *rule)
{
    struct wanted *w = ctx;

    if (rule->phase != w->phase || !str_eq(rule->id, w->id))
        return;
    CU_ASSERT_EQUAL(w->n, UINT64_MAX);
    w->n = rule->counts[0];
}

uint64_t counts_rig_rule(struct counts *c, enum count_phase phase, const char *id)
{
    struct wanted w = {phase, str_of(id), UINT64_MAX};

    counts_each_rule(c, look_at, &w);
    return w.n;
}

pid_t counts_rig_fork(void (*run)(void *ctx), void *ctx)
{
    const pid_t pid = fork();

    if (pid == 0) {
        run(ctx);
        _exit(0);
    }
    CU_ASSERT_TRUE_FATAL(pid > 0);
    return pid;
}

void counts_rig_kill(pid_t pid)
{
    CU_ASSERT_EQUAL(kill(pid, SIGKILL), 0);
    CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
}
