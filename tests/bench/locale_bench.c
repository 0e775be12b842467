/* What the choice of a locale costs: making a matcher, headers that are matched, and headers that are remembered; one line of JSON. */
#include <stdio.h>
#include <stdlib.h>

#include "common/http/locale.h"
#include "spoa/guard/locales.h"
#include "tests/bench/timing.h"

enum { RUNS = 25, CALLS = 2000 };

static const struct str supported[] = {STR("en"), STR("de"), STR("fr"), STR("es-419"), STR("es"), STR("pt-BR"), STR("zh-Hans"), STR("zh-Hant"), STR("ja"), STR("sr-Cyrl")};
static const struct str browser = STR("de-AT,de;q=0.9,en-US;q=0.8,en;q=0.7");
/* 16 ranges, 256 bytes; nothing of it is supported as it is asked for, and all of it must be looked at. */
static const struct str hostile = STR("sr-Latn-ME;q=0.1,sh-Latn-BA;q=0.2,zh-Kore-TW-x;q=0.3,xx-Latn-QQ;q=0.4,tlh;q=0.5,sr-Latn;q=0.6,zh-yue-Hant-HK;q=0.7,"
                                      "sr-ME;q=0.81,sr-Latn;q=0.82,sr-TR;q=0.83,sr-RO;q=0.84,sr-RU;q=0.85,hr;q=0.86,bs;q=0.87,cmn-Kore-TW-u-co-pinyin;q=0.9,sh-Latn-RS-fonipa;q=0.99");

struct bench {
    struct arena arena;
    const struct locale_matcher *matcher;
    struct locale_cache *cache;
    size_t chosen;
};

static void match_browser(struct bench *b)
{
    b->chosen += locale_choose(b->matcher, browser);
}

static void match_hostile(struct bench *b)
{
    b->chosen += locale_choose(b->matcher, hostile);
}

static void hit_browser(struct bench *b)
{
    bool hit;
    b->chosen += locale_cache_choose(b->cache, b->matcher, browser, 0, &hit);
}

static void hit_hostile(struct bench *b)
{
    bool hit;
    b->chosen += locale_cache_choose(b->cache, b->matcher, hostile, 0, &hit);
}

static void stop(const char *what)
{
    fprintf(stderr, "bench_locale: %s\n", what);
    exit(1);
}

static void make(struct bench *b)
{
    arena_release(&b->arena);
    if (!locale_matcher_make(&(struct str_list){supported, sizeof supported / sizeof supported[0]}, 0, &b->arena, &b->matcher))
        stop("no memory");
}

/* Nanoseconds a call, the median of the runs. */
static double measure(struct bench *b, void (*part)(struct bench *b), size_t calls)
{
    double ns[RUNS];
    for (size_t r = 0; r < RUNS; r++) {
        const double start = cpu_ns();
        for (size_t i = 0; i < calls; i++)
            part(b);
        ns[r] = (cpu_ns() - start) / (double) calls;
    }
    return median(ns, RUNS);
}

int main(void)
{
    static struct bench b;
    struct err e;
    err_clear(&e);
    arena_init(&b.arena, 64 * 1024, 0);
    if (!locale_cache_new(&b.cache, &e))
        stop(e.text);
    const double start = cpu_ns();
    make(&b);
    const double first_ns = cpu_ns() - start, make_ns = measure(&b, make, 1);
    const double browser_ns = measure(&b, match_browser, CALLS), hostile_ns = measure(&b, match_hostile, CALLS), hit_ns = measure(&b, hit_browser, CALLS),
                 hostile_hit_ns = measure(&b, hit_hostile, CALLS);
    printf("{\"bench\":\"locale\",\"first_matcher_ns\":%.0f,\"matcher_ns\":%.0f,\"matcher_bytes\":%zu,\"match_browser_ns\":%.0f,\"match_hostile_ns\":%.0f,"
           "\"hostile_bytes\":%zu,\"hit_browser_ns\":%.0f,\"hit_hostile_ns\":%.0f,\"tags\":%zu,\"sum\":%zu}\n",
           first_ns, make_ns, b.arena.used_bytes, browser_ns, hostile_ns, hostile.len, hit_ns, hostile_hit_ns, sizeof supported / sizeof supported[0], b.chosen);
    locale_cache_free(&b.cache);
    arena_release(&b.arena);
    return 0;
}
