/* A file of counters in a folder of the test's own, on a clock that stands still, and what is counted in it. */
#ifndef TESTS_UNIT_COUNTS_RIG_H
#define TESTS_UNIT_COUNTS_RIG_H

#include <sys/types.h>

#include "spoa/record/counts.h"

enum { COUNTS_RIG_RULES_MAX = 2000 };

struct counts_rig {
    struct clock clock;
    uint64_t now_us;
    char folder[64];
    char stem[80];  /* what counts_open is given */
    char file[128]; /* what it makes of it; empty until a counts_rig_open */
};
extern struct counts_rig counts_rig;

int counts_rig_set_up(void);
int counts_rig_tear_down(void);
/* The file goes; the clock stays. */
void counts_rig_forget(void);
/* Ends the test when it fails. */
struct counts *counts_rig_open(void);
/* So many ticks, each a second later. */
void counts_rig_tick(struct counts *c, unsigned n);

/* Publishes a policy whose rules are those of three lists, joined by blanks. */
void counts_rig_prepare(struct counts *c, int64_t version, enum cohort cohort, const char *config, const char *rate, const char *header);
/* One allowed request that the upstream answered with status; config: the list of a record. */
void counts_rig_add(struct counts *c, int64_t version, enum cohort cohort, unsigned status, const char *config);

uint64_t counts_rig_requests(const struct counts_sums *sums);
uint64_t counts_rig_total(const struct counts *c);
/* Of counts_each_rule: a rule's first count, "matched" or "checked"; UINT64_MAX: there is no such rule. It fails the test when one comes twice. */
uint64_t counts_rig_rule(struct counts *c, enum count_phase phase, const char *id);

/* A process of its own that does something with the file until it is killed, or returns. */
pid_t counts_rig_fork(void (*run)(void *ctx), void *ctx);
void counts_rig_kill(pid_t pid);

#endif
