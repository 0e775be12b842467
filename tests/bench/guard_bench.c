/* What the backstop costs a request, with few clients and with a million of each kind of address, and what a client costs in memory. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spoa/guard/backstop.h"
#include "tests/bench/timing.h"

enum { FEW = 1000, MANY = 1000000, ENTRIES_MAX = 10000000, CHECKS = 1000000, RUNS = 5, SECONDS = 60, PAGE = 4096 };

static void stop(const char *what)
{
    fprintf(stderr, "bench_guard: %s\n", what);
    exit(1);
}

/* Bytes of this process that are in memory. */
static double resident(void)
{
    long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL || fscanf(f, "%ld %ld", &size, &pages) != 2)
        stop("/proc/self/statm cannot be read");
    fclose(f);
    return (double) pages * PAGE;
}

/* The n-th client: one after the other, as a provider hands them out. */
static struct addr v4_of(uint64_t n)
{
    const uint8_t b[4] = {100, (uint8_t) (n >> 16), (uint8_t) (n >> 8), (uint8_t) n};
    return addr_from_v4(b);
}

static struct addr v6_of(uint64_t n)
{
    uint8_t b[16] = {0x20, 0x01, 0x0d, 0xb8};
    for (size_t i = 0; i < 4; i++)
        b[4 + i] = (uint8_t) (n >> (8 * (3 - i)));
    return addr_from_v6(b);
}

/* IPv4 that end alike: one of each of many networks. */
static struct addr spread_of(uint64_t n)
{
    const uint8_t b[4] = {(uint8_t) n, (uint8_t) (n >> 8), (uint8_t) (n >> 16), 1};
    return addr_from_v4(b);
}

static struct backstop *backstop_of(uint64_t max_entries)
{
    const struct backstop_settings settings = {.params = {.limit = 1000000000, .burst = 1000, .period_ms = 3600000}, .max_entries = max_entries};
    struct backstop *b = NULL;
    struct err e;
    err_clear(&e);
    if (!backstop_new(&b, &settings, &e))
        stop(e.text);
    return b;
}

static uint64_t random_next(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005U + 1442695040888963407U;
    return state >> 33;
}

/* Clients in random order. The seed of a table is its own, so each run has a new one. */
static double ns_of_check(struct addr (*client)(uint64_t n), uint64_t n_clients, double *bytes)
{
    double ns[RUNS];
    for (size_t run = 0; run < RUNS; run++) {
        struct backstop *b = backstop_of(MANY);
        struct rate_store_stats stats;
        struct rate_verdict v;
        struct addr a;
        for (uint64_t i = 0; i < n_clients; i++) {
            a = client(i);
            if (backstop_check(b, &a, 1000, &v) != RATE_COUNTED)
                stop("a client found no place");
        }
        const double start = cpu_ns();
        for (size_t i = 0; i < CHECKS; i++) {
            a = client(random_next() % n_clients);
            (void) backstop_check(b, &a, 1000 + i, &v);
        }
        ns[run] = (cpu_ns() - start) / CHECKS;
        backstop_stats(b, &stats);
        *bytes = (double) stats.memory_bytes / (double) n_clients;
        backstop_free(&b);
    }
    return median(ns, RUNS);
}

/* A sweep of a full table none of whose clients has gone, then of one whose clients all have. */
static void measure_sweep(double *kept_us, double *gone_us)
{
    struct backstop *b = backstop_of(MANY);
    struct rate_verdict v;
    for (uint64_t i = 0; i < MANY; i++) {
        struct addr a = v4_of(i);
        (void) backstop_check(b, &a, 1000, &v);
    }
    double start = cpu_ns();
    size_t n = backstop_sweep(b, 1000);
    *kept_us = (cpu_ns() - start) / 1000;
    if (n != MANY)
        stop("a client was forgotten too early");
    start = cpu_ns();
    for (size_t i = 0; i < SECONDS; i++)
        n = backstop_sweep(b, 100000000);
    *gone_us = (cpu_ns() - start) / 1000 / SECONDS;
    if (n != 0)
        stop("a client was not forgotten");
    backstop_free(&b);
}

int main(void)
{
    const double before = resident();
    struct backstop *b = backstop_of(ENTRIES_MAX);
    struct rate_verdict v;
    const double empty = resident() - before;
    for (uint64_t i = 0; i < FEW; i++) {
        struct addr a = v4_of(i);
        (void) backstop_check(b, &a, 1000, &v);
    }
    const double few = resident() - before;
    for (uint64_t i = 0; i < ENTRIES_MAX; i++) {
        struct addr a = v4_of(i);
        (void) backstop_check(b, &a, 1000, &v);
    }
    const double full = resident() - before;
    backstop_free(&b);

    double bytes, unused, kept_us, gone_us;
    const double few_ns = ns_of_check(v4_of, FEW, &unused), v4_ns = ns_of_check(v4_of, MANY, &bytes), v6_ns = ns_of_check(v6_of, MANY, &unused),
                 spread_ns = ns_of_check(spread_of, MANY, &unused);
    measure_sweep(&kept_us, &gone_us);
    printf("{\"bench\":\"guard\",\"few_clients_ns\":%.0f,\"million_v4_ns\":%.0f,\"million_v6_ns\":%.0f,\"million_v4_spread_ns\":%.0f,\"bytes_per_client\":%.1f,"
           "\"sweep_us\":%.0f,\"sweep_all_gone_us\":%.0f,\"ten_million_empty_kib\":%.0f,\"ten_million_of_1000_kib\":%.0f,\"ten_million_full_mib\":%.0f}\n",
           few_ns, v4_ns, v6_ns, spread_ns, bytes, kept_us, gone_us, empty / 1024, few / 1024, full / 1048576);
    return 0;
}
