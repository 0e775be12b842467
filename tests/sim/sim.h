/* Seeded simulation: a subject runs random legal events on a virtual clock and checks its invariants after each. The same seed runs the same
 * events, and a failure prints it. */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

struct sim {
    const char *subject;
    uint64_t seed, step, n_steps;
    uint64_t random; /* state of the generator */
    uint64_t now_us; /* moved by the subject alone */
};

/* Rows of subjects.def: sim_<name> runs steps until sim_next says that they are over. */
#define SIM_SUBJECT(name) void sim_##name(struct sim *s);
#include "tests/sim/subjects.def"
#undef SIM_SUBJECT

/* Counts a step. False: that was the last. */
bool sim_next(struct sim *s);
/* 0 <= result < below; below > 0. */
uint64_t sim_draw(struct sim *s, uint64_t below);
/* True in one of n. */
bool sim_one_in(struct sim *s, uint64_t n);

/* Prints subject, seed and step, and ends the run. */
_Noreturn void sim_broken(const struct sim *s, const char *invariant, const char *file, int line);
#define SIM_CHECK(s, condition) ((condition) ? (void)0 : sim_broken((s), #condition, __FILE__, __LINE__))

#endif
