/* Remembered locales: the same that matching finds, in bounded memory, whatever headers come and from however many threads; and what a policy takes over. */
#include <CUnit/CUnit.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>

#include "spoa/guard/guard.h"
#include "tests/unit/policy_cases.h"
#include "tests/unit/refuse_memory.h"

enum { MADE_UP = 20000, MADE_UP_MAX = 64, THREADS = 4, ROUNDS = 20000, MINUTE_MS = 60000, CACHE_BYTES_MAX = 640 * 1024 };

static const struct str tags[] = {STR("en"), STR("de-CH"), STR("pt-BR")};
static struct arena arena;
static const struct locale_matcher *matcher;

static int set_up(void)
{
    arena_init(&arena, 65536, 0);
    return locale_matcher_make(&(struct str_list){tags, 3}, 0, &arena, &matcher) ? 0 : 1;
}

static int tear_down(void)
{
    arena_release(&arena);
    return 0;
}

static struct locale_cache *cache_new(void)
{
    struct locale_cache *c = NULL;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FATAL(locale_cache_new(&c, &e));
    return c;
}

/* A header that no browser sends, of its own for each number; padded to len bytes. */
static struct str made_up(char *text, size_t number, size_t len)
{
    size_t n = (size_t) snprintf(text, MADE_UP_MAX, "de;q=0.%06zu", number);

    while (n < len)
        text[n++] = ',';
    return (struct str){text, n};
}

/* True: it was remembered. */
static bool ask(struct locale_cache *c, struct str header, uint64_t now_ms)
{
    bool hit;

    CU_ASSERT_EQUAL(locale_cache_choose(c, matcher, header, now_ms, &hit), locale_choose(matcher, header));
    return hit;
}

static void a_header_is_matched_once(void)
{
    static const struct str headers[] = {STR("de-AT,de;q=0.9"), STR("pt"), STR("xx"), STR("\xff\x00,de"), STR(",")};
    struct locale_cache *c = cache_new();

    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
            CU_ASSERT_EQUAL(ask(c, headers[i], 1), round > 0);
    CU_ASSERT(!ask(c, STR("de-AT,de;q=0.90"), 1));
    CU_ASSERT(!ask(c, STR("DE-AT,de;q=0.9"), 1));
    locale_cache_free(&c);
    CU_ASSERT_PTR_NULL(c);
    locale_cache_free(&c);
}

static void for_a_header_that_is_missing_or_too_long_nothing_is_matched(void)
{
    char text[ACCEPT_LANGUAGE_MAX + 1];
    struct locale_cache *c = cache_new();

    CU_ASSERT(ask(c, STR_NONE, 1));
    CU_ASSERT(ask(c, made_up(text, 1, ACCEPT_LANGUAGE_MAX + 1), 1));
    CU_ASSERT(!ask(c, made_up(text, 1, ACCEPT_LANGUAGE_MAX), 1));
    CU_ASSERT(ask(c, made_up(text, 1, ACCEPT_LANGUAGE_MAX), 1));
    locale_cache_free(&c);
}

/* Of MADE_UP different headers: how many are remembered. */
static size_t flood(struct locale_cache *c, size_t len, uint64_t now_ms)
{
    char text[ACCEPT_LANGUAGE_MAX];
    size_t n = 0;

    for (size_t i = 0; i < MADE_UP; i++)
        (void) ask(c, made_up(text, i, len), now_ms);
    for (size_t i = 0; i < MADE_UP; i++)
        n += ask(c, made_up(text, i, len), now_ms);
    return n;
}

/* Guards memory: made-up headers cost their matching and no more. */
static void a_flood_of_made_up_headers_fills_the_cache_and_no_more(void)
{
    for (size_t len = 0; len <= ACCEPT_LANGUAGE_MAX; len += ACCEPT_LANGUAGE_MAX) {
        struct locale_cache *c = cache_new();
        const size_t kept = flood(c, len, 1);
        CU_ASSERT(kept <= LOCALES_MAX && kept * len <= LOCALES_BYTES_MAX);
        CU_ASSERT(kept >= (len == 0 ? LOCALES_MAX : LOCALES_BYTES_MAX / ACCEPT_LANGUAGE_MAX) * 9 / 10);
        CU_ASSERT(malloc_usable_size(c) <= CACHE_BYTES_MAX);
        locale_cache_free(&c);
    }
}

/* Guards honest clients: a flood can't keep what they send out for longer than a minute. */
static void after_a_flood_there_is_room_again_within_a_minute(void)
{
    static const struct str usual = STR("pt-BR,pt;q=0.9,en;q=0.8");
    struct locale_cache *c = cache_new();
    char text[ACCEPT_LANGUAGE_MAX];

    flood(c, 0, 1);
    CU_ASSERT(!ask(c, usual, 1));
    CU_ASSERT(!ask(c, usual, MINUTE_MS));
    CU_ASSERT(!ask(c, usual, MINUTE_MS + 1));
    CU_ASSERT(ask(c, usual, MINUTE_MS + 1));
    /* It stays for another minute, however much comes behind it. */
    for (size_t i = 0; i < MADE_UP; i++)
        (void) ask(c, made_up(text, MADE_UP + i, 0), 2 * MINUTE_MS);
    CU_ASSERT(ask(c, usual, 2 * MINUTE_MS));
    locale_cache_free(&c);
}

/* Guards the bound of a minute: threads look at their clocks one after the other. */
static void who_looked_at_the_clock_earlier_renews_nothing(void)
{
    static const struct str usual = STR("pt-BR,pt;q=0.9,en;q=0.8");
    struct locale_cache *c = cache_new();

    flood(c, 0, 2);
    CU_ASSERT(!ask(c, usual, 1));
    CU_ASSERT(!ask(c, usual, 1));
    locale_cache_free(&c);
}

static void *ask_much(void *arg)
{
    struct locale_cache *c = arg;
    char text[ACCEPT_LANGUAGE_MAX];
    size_t n_wrong = 0;

    for (size_t i = 0; i < ROUNDS; i++) {
        const struct str header = i % 2 == 0 ? tags[i / 2 % 3] : made_up(text, i, 0);
        bool hit;
        n_wrong += locale_cache_choose(c, matcher, header, i * MINUTE_MS / 1000, &hit) != locale_choose(matcher, header);
    }
    return n_wrong == 0 ? NULL : c;
}

static void threads_that_fill_and_renew_it_together_choose_as_one_does(void)
{
    struct locale_cache *c = cache_new();
    pthread_t threads[THREADS];
    void *wrong;

    for (size_t i = 0; i < THREADS; i++)
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, ask_much, c) == 0);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &wrong);
        CU_ASSERT_PTR_NULL(wrong);
    }
    locale_cache_free(&c);
}

/* --- From policy to policy --- */

static struct policy *policy_with(const char *second, const char *fallback)
{
    json_t *row = json_pack("{s:s, s:{s:{s:[s, s], s:s}}}", "base", "minimal", "set", "/global/locale", "supported", "en", second, "default", fallback);
    struct policy *p = policy_case_compile(row);
    json_decref(row);
    return p;
}

static struct guard *guard_of(const struct policy *p, const struct guard *before)
{
    struct guard *g = NULL;
    struct err e;

    err_clear(&e);
    CU_ASSERT_FATAL(guard_new(&g, p, before, &e));
    CU_ASSERT_PTR_NOT_NULL_FATAL(g->locales);
    return g;
}

static void only_a_policy_that_chooses_alike_takes_over_what_is_remembered(void)
{
    static const struct {
        const char *second, *fallback;
        bool alike;
    } rows[] = {{"de", "en", true}, {"DE", "en", true}, {"de-CH", "en", false}, {"de", "de", false}};
    struct policy *first = policy_with("de", "en");
    struct guard *before = guard_of(first, NULL);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct policy *p = policy_with(rows[i].second, rows[i].fallback);
        struct guard *g = guard_of(p, before);
        CU_ASSERT_EQUAL(g->locales == before->locales, rows[i].alike);
        guard_free(&g);
        policy_free(&p);
    }
    CU_ASSERT(!ask(before->locales, STR("de"), 1)); /* it is there still */
    guard_free(&before);
    policy_free(&first);
}

static void what_is_remembered_lives_as_long_as_any_guard_that_has_it(void)
{
    for (int order = 0; order < 2; order++) {
        struct policy *p = policy_with("de", "en");
        struct guard *guards[2] = {guard_of(p, NULL), NULL};
        guards[1] = guard_of(p, guards[0]);
        guard_free(&guards[order]);
        CU_ASSERT(!ask(guards[1 - order]->locales, STR("de"), 1));
        CU_ASSERT(ask(guards[1 - order]->locales, STR("de"), 1));
        guard_free(&guards[1 - order]);
        policy_free(&p);
    }
}

static bool guard_refused(void *arg, size_t n)
{
    struct guard *g = NULL;
    struct err e;

    err_clear(&e);
    refuse_memory(n);
    const bool ok = guard_new(&g, arg, NULL, &e), refused = refuse_memory_end();
    CU_ASSERT(ok == !refused && ok == (g != NULL) && (ok || e.code == ERR_NO_MEMORY));
    guard_free(&g);
    return refused;
}

static void without_memory_there_is_no_guard(void)
{
    struct policy *p = policy_with("de", "en");

    CU_ASSERT_EQUAL(refuse_memory_everywhere(guard_refused, p), 3);
    policy_free(&p);
}

static bool matcher_refused(void *arg, size_t n)
{
    const struct locale_matcher *m = NULL;
    struct arena a;
    (void) arg;

    arena_init(&a, 1024, 0);
    refuse_memory(n);
    const bool ok = locale_matcher_make(&(struct str_list){tags, 3}, 0, &a, &m), refused = refuse_memory_end();
    CU_ASSERT(ok == !refused && ok == (m != NULL));
    arena_release(&a);
    return refused;
}

static void a_matcher_is_made_whole_or_not_at_all(void)
{
    CU_ASSERT(refuse_memory_everywhere(matcher_refused, NULL) > 3);
}

void test_locales_register(void)
{
    CU_Suite *suite = CU_add_suite("locales", set_up, tear_down);

    CU_ADD_TEST(suite, a_header_is_matched_once);
    CU_ADD_TEST(suite, for_a_header_that_is_missing_or_too_long_nothing_is_matched);
    CU_ADD_TEST(suite, a_flood_of_made_up_headers_fills_the_cache_and_no_more);
    CU_ADD_TEST(suite, after_a_flood_there_is_room_again_within_a_minute);
    CU_ADD_TEST(suite, who_looked_at_the_clock_earlier_renews_nothing);
    CU_ADD_TEST(suite, threads_that_fill_and_renew_it_together_choose_as_one_does);
    CU_ADD_TEST(suite, only_a_policy_that_chooses_alike_takes_over_what_is_remembered);
    CU_ADD_TEST(suite, what_is_remembered_lives_as_long_as_any_guard_that_has_it);
    CU_ADD_TEST(suite, without_memory_there_is_no_guard);
    CU_ADD_TEST(suite, a_matcher_is_made_whole_or_not_at_all);
}
