/* Runs the simulations: each subject with fixed seeds, or one seed as long as asked. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/parse.h"
#include "tests/sim/sim.h"

enum { SEEDS = 50, STEPS = 20000 };

static const struct {
    const char *name;
    void (*run)(struct sim *);
} subjects[] = {
#define SIM_SUBJECT(name) {#name, sim_##name},
#include "tests/sim/subjects.def"
#undef SIM_SUBJECT
};

bool sim_next(struct sim *s)
{
    return s->step++ < s->n_steps;
}

/* splitmix64: any seed is a good one, 0 included. */
uint64_t sim_draw(struct sim *s, uint64_t below)
{
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

bool sim_one_in(struct sim *s, uint64_t n)
{
    return sim_draw(s, n) == 0;
}

void sim_broken(const struct sim *s, const char *invariant, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s: broken at step %" PRIu64 ", %" PRIu64 " us: %s\n", file, line, s->subject, s->step,
            s->now_us, invariant);
    fprintf(stderr, "again: sim --seed %" PRIu64 " --steps %" PRIu64 " %s\n", s->seed, s->n_steps, s->subject);
    exit(1);
}

static bool number(const char *text, uint64_t *out)
{
    struct err e = {0};

    return text != NULL && parse_u64(str_of(text), 0, UINT64_MAX, out, "", &e);
}

static void run(size_t i, uint64_t seed, uint64_t steps)
{
    struct sim s = {.subject = subjects[i].name, .seed = seed, .random = seed, .n_steps = steps};

    subjects[i].run(&s);
}

struct options {
    uint64_t first, n_seeds, steps;
    const char *only; /* NULL: all subjects */
};

static bool read_options(struct options *o, char **args)
{
    while (*args != NULL) {
        if (strcmp(*args, "--seed") == 0) {
            o->n_seeds = 1;
            if (!number(*++args, &o->first))
                return false;
        } else if (strcmp(*args, "--steps") == 0) {
            if (!number(*++args, &o->steps))
                return false;
        } else if (**args != '-' && o->only == NULL) {
            o->only = *args;
        } else {
            return false;
        }
        args++;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o = {.first = 1, .n_seeds = SEEDS, .steps = STEPS};
    bool found = false;

    if (argc < 1 || !read_options(&o, argv + 1)) {
        fprintf(stderr, "usage: sim [--seed N] [--steps N] [SUBJECT]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        if (o.only != NULL && strcmp(o.only, subjects[i].name) != 0)
            continue;
        found = true;
        for (uint64_t n = 0; n < o.n_seeds; n++)
            run(i, o.first + n, o.steps);
        printf("sim: %s: %" PRIu64 " seeds of %" PRIu64 " steps hold\n", subjects[i].name, o.n_seeds, o.steps);
    }
    if (!found)
        fprintf(stderr, "sim: there is no subject of that name in tests/sim/subjects.def\n");
    return found ? 0 : 2;
}
