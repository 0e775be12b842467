/* How the benchmarks written in C take time: CPU time of their one thread, the median of several runs. */
#ifndef TESTS_BENCH_TIMING_H
#define TESTS_BENCH_TIMING_H

#include <stdlib.h>
#include <time.h>

static inline double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static inline int double_order(const void *x, const void *y)
{
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

/* Sorts values: the first is then the least. */
static inline double median(double *values, size_t n)
{
    qsort(values, n, sizeof values[0], double_order);
    return values[n / 2];
}

#endif
