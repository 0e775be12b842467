/* Fills counters for tests of the pages that show them. */
#include "tests/unit/counted.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64];

bool counted_init(struct counts **out)
{
    char file[128];
    struct err e;
    err_clear(&e);
    snprintf(folder, sizeof folder, "/tmp/edge-unit-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return false;
    snprintf(file, sizeof file, "%s/counts-0", folder);
    return counts_open(out, file, &clock_system, &e);
}

void counted_release(struct counts **c)
{
    counts_close(c);
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        (void) unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    (void) rmdir(folder);
}

void counted_prepare(struct counts *c, int64_t version)
{
    const struct config_rule config = {.id = STR("shut")};
    const struct rate_rule rate = {.id = STR("login")};
    const struct header_rule header = {.id = STR("tag")};
    const struct policy p = {
        .version = version,
        .config_rules = &config, .n_config_rules = 1,
        .rate_rules = &rate, .n_rate_rules = 1,
        .header_rules = &header, .n_header_rules = 1,
    };
    counts_prepare(c, &p, COHORT_ACTIVE);
}

void counted_add(struct counts *c, const struct rec *rec, enum decision decision, enum origin origin, unsigned status, uint64_t latency_ms)
{
    const struct outcome outcome = {.decision = decision, .origin = origin, .status = status, .latency_ms = latency_ms, .duration_ms = latency_ms};
    counts_add(c, rec, &outcome);
}

enum { ID = TOPK_ID_MAX };
static char ids[3][POLICY_RULES_MAX][ID + 16]; /* with room for what stands around it in a list */

static void name_rules(int64_t version)
{
    for (size_t phase = 0; phase < 3; phase++)
        for (unsigned i = 0; i < POLICY_RULES_MAX; i++) {
            char name[16];
            memset(ids[phase][i], 'r', ID);
            const int n = snprintf(name, sizeof name, "%u-%03u-", (unsigned) version, i);
            memcpy(ids[phase][i], name, (size_t) n);
        }
}

static void prepare_full(struct counts *c, int64_t version)
{
    static struct config_rule config[POLICY_RULES_MAX];
    static struct rate_rule rate[POLICY_RULES_MAX];
    static struct header_rule header[POLICY_RULES_MAX];
    for (size_t i = 0; i < POLICY_RULES_MAX; i++) {
        config[i].id = (struct str){ids[0][i], ID};
        rate[i].id = (struct str){ids[1][i], ID};
        header[i].id = (struct str){ids[2][i], ID};
    }
    const struct policy p = {
        .version = version,
        .config_rules = config, .n_config_rules = POLICY_RULES_MAX,
        .rate_rules = rate, .n_rate_rules = POLICY_RULES_MAX,
        .header_rules = header, .n_header_rules = POLICY_RULES_MAX,
    };
    counts_prepare(c, &p, COHORT_ACTIVE);
}

/* Each way in which a rule's requests are told apart by their end. */
static void add_all(struct counts *c, int64_t version, size_t i)
{
    char config[ID + 2], limits[ID + 8];
    snprintf(config, sizeof config, "!%.*s", ID, ids[0][i]);
    snprintf(limits, sizeof limits, "%.*s:clwfkx", ID, ids[1][i]);
    struct rec rec = {.config_version = version, .config_rules = str_of(config), .limits = str_of(limits), .header_rules = {ids[2][i], ID}};
    rec.decision = DECISION_BLOCK;
    counted_add(c, &rec, DECISION_BLOCK, ORIGIN_EDGE, 503, 0);
    counted_add(c, &rec, DECISION_BLOCK, ORIGIN_EDGE, 401, 0);
    rec.decision = DECISION_WOULD_BLOCK;
    counted_add(c, &rec, DECISION_WOULD_BLOCK, ORIGIN_UPSTREAM, 500, 0);
}

size_t counted_fill(struct counts *c)
{
    for (int64_t version = 1; version <= COUNTS_VERSIONS_MAX; version++) {
        name_rules(version);
        prepare_full(c, version);
        for (size_t i = 0; i < POLICY_RULES_MAX; i++)
            add_all(c, version, i);
        for (unsigned status = 0; status <= OUTCOME_STATUS_MAX; status++) {
            const struct rec rec = {.config_version = version};
            counted_add(c, &rec, DECISION_ALLOW, ORIGIN_EDGE, status, 0);
            counted_add(c, &rec, DECISION_ALLOW, ORIGIN_UPSTREAM, status, 0);
        }
    }
    return (size_t) COUNTS_VERSIONS_MAX * 3 * POLICY_RULES_MAX;
}
