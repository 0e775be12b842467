/* Locale: which of a product's languages an Accept-Language gets, row by row, and that it is always one of them. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "common/http/locale.h"
#include "tests/unit/cases.h"

enum { ROW_TAGS_MAX = 16, MANY = 100, RANDOM_HEADERS = 100000, RANDOM_HEADER_MAX = 300 };

static struct arena arena;

static int set_up(void)
{
    arena_init(&arena, 65536, 0);
    return 0;
}

static int tear_down(void)
{
    arena_release(&arena);
    return 0;
}

static const struct locale_matcher *matcher_of(const struct str *tags, size_t n, size_t fallback)
{
    const struct str_list list = {tags, n};
    const struct locale_matcher *m = NULL;

    CU_ASSERT_FATAL(locale_matcher_make(&list, fallback, &arena, &m));
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    return m;
}

static void check_row(const json_t *row)
{
    const json_t *list = json_object_get(row, "supported"), *item;
    struct str tags[ROW_TAGS_MAX], chosen = STR_NONE;
    const struct locale_matcher *m;
    size_t fallback = SIZE_MAX, i, at;

    CU_ASSERT_FATAL(json_array_size(list) <= ROW_TAGS_MAX);
    json_array_foreach(list, i, item)
    {
        tags[i] = str_of(json_string_value(item));
        if (str_eq(tags[i], case_str(row, "default")))
            fallback = i;
    }
    CU_ASSERT_FATAL(fallback != SIZE_MAX);
    m = matcher_of(tags, json_array_size(list), fallback);
    at = locale_choose(m, case_str(row, "header"));
    if (CASE_CHECK(row, at < json_array_size(list)))
        chosen = locale_tag(m, at);
    CASE_CHECK_GOT(row, str_eq(chosen, case_str(row, "locale")), chosen);
}

static void rows_of_locales(void)
{
    json_t *rows = cases_load("tests/cases/http/locale.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        check_row(row);
        arena_reset(&arena);
    }
    json_decref(rows);
}

/* Distinct languages, or regions of one, so that each tag is the only best answer to itself; 100 of them. */
static const char many[] = "af am ar as az be bg bn br bs ca cs cy da de dsb el en es et eu fa fi fo fr fy ga gd gl gu ha he hi hr hsb hu hy ig is it "
                           "ja ka kk km kn ko kok ky lb lo lt lv mi mk ml mn mr ms mt my ne nl nn or pa pl ps rm ro ru rw sd si sk sl so sq sv sw ta te "
                           "tg th ti tk tr tt ug uk ur uz vi wo xh yo zu en-GB fr-CA es-MX pt-PT";

static size_t split(struct str text, struct str *tags)
{
    size_t n = 0;

    while (text.len > 0) {
        size_t end = str_find_byte(text, ' ');

        tags[n++] = str_sub(text, 0, end);
        text = end == SIZE_MAX ? STR_NONE : str_sub(text, end + 1, text.len);
    }
    return n;
}

static void each_serves_itself(void)
{
    struct str tags[MANY];

    CU_ASSERT_EQUAL_FATAL(split(STR(many), tags), MANY);
    for (size_t n = 1; n <= MANY; n++) {
        const struct locale_matcher *m = matcher_of(tags, n, n / 2);

        for (size_t i = 0; i < n; i++) {
            CU_ASSERT_EQUAL(locale_choose(m, tags[i]), i);
            CU_ASSERT(str_eq(locale_tag(m, i), tags[i]));
        }
        CU_ASSERT_EQUAL(locale_choose(m, STR("x-none")), n / 2);
        CU_ASSERT_EQUAL(locale_choose(m, STR_NONE), n / 2);
        arena_reset(&arena);
    }
}

/* xorshift64: the same bytes in every run. */
static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Half of them any bytes, half of them pieces of headers, which get further. */
static struct str random_header(uint64_t *seed, char *storage)
{
    static const char *const pieces[] = {"en", "de", "zh", "sr", "-", "_", "Hant", "TW", "419", ",", ", ", ";q=", "0.", "5", "1", "*", "x", "u", "\xff", " "};
    bool any_bytes = next(seed) % 2 == 0;
    size_t len = next(seed) % RANDOM_HEADER_MAX;
    struct buf b;

    buf_init(&b, storage, len);
    while (b.len < len && !b.full)
        if (any_bytes)
            buf_put_byte(&b, (char)next(seed));
        else
            buf_put_cstr(&b, pieces[next(seed) % (sizeof pieces / sizeof pieces[0])]);
    return buf_str(&b);
}

static void always_one_of_them(void)
{
    static const struct str tags[] = {{"en", 2}, {"de-AT", 5}, {"zh-Hans", 7}, {"zh-TW", 5}, {"sr-Latn", 7}, {"es-419", 6}, {"x-none", 6}};
    const size_t n = sizeof tags / sizeof tags[0];
    const struct locale_matcher *m = matcher_of(tags, n, 1);
    uint64_t seed = 0x5eed10ca1e;
    char storage[RANDOM_HEADER_MAX];
    size_t seen[sizeof tags / sizeof tags[0]] = {0};

    for (size_t i = 0; i < RANDOM_HEADERS; i++) {
        struct str header = random_header(&seed, storage);
        size_t at = locale_choose(m, header);

        CU_ASSERT_FATAL(at < n);
        seen[at]++;
        CU_ASSERT_EQUAL_FATAL(locale_choose(m, header), at);
        if (header.len > ACCEPT_LANGUAGE_MAX)
            CU_ASSERT_EQUAL_FATAL(at, 1);
    }
    CU_ASSERT(seen[0] > 0 && seen[1] > 0 && seen[2] > 0 && seen[4] > 0);
    arena_reset(&arena);
}

static void equal_or_not(void)
{
    static const struct str tags[] = {{"en", 2}, {"de", 2}, {"fr", 2}}, again[] = {{"en", 2}, {"de", 2}, {"fr", 2}};
    static const struct str turned[] = {{"de", 2}, {"en", 2}, {"fr", 2}}, other[] = {{"en", 2}, {"de", 2}, {"it", 2}};
    const struct locale_matcher *m = matcher_of(tags, 3, 0);

    CU_ASSERT(locale_matcher_equal(m, m));
    CU_ASSERT(locale_matcher_equal(m, matcher_of(again, 3, 0)));
    CU_ASSERT(!locale_matcher_equal(m, matcher_of(again, 3, 1)));
    CU_ASSERT(!locale_matcher_equal(m, matcher_of(again, 2, 0)));
    CU_ASSERT(!locale_matcher_equal(matcher_of(again, 2, 0), m));
    CU_ASSERT(!locale_matcher_equal(m, matcher_of(turned, 3, 0)));
    CU_ASSERT(!locale_matcher_equal(m, matcher_of(other, 3, 0)));
    arena_reset(&arena);
}

static void no_memory(void)
{
    struct str tags[MANY];
    const struct str_list list = {tags, split(STR(many), tags)};
    const struct locale_matcher *m = NULL;
    struct arena small;

    arena_init(&small, 64, 64);
    CU_ASSERT(!locale_matcher_make(&list, 0, &small, &m));
    CU_ASSERT_PTR_NULL(m);
    arena_release(&small);
}

void test_locale_register(void)
{
    CU_pSuite s = CU_add_suite("locale", set_up, tear_down);

    CU_add_test(s, "a request gets the language, script and region that it wants most of those there are", rows_of_locales);
    CU_add_test(s, "of 1 to 100 languages each one is served to who asks for it", each_serves_itself);
    CU_add_test(s, "security: whatever Accept-Language holds, what is chosen is one of the list, and the same each time", always_one_of_them);
    CU_add_test(s, "matchers are equal when they choose alike", equal_or_not);
    CU_add_test(s, "a matcher that runs out of memory says so and gives nothing", no_memory);
}
