/* Any bytes as Accept-Language: ranges are tags of it in order of their weights, and what is chosen is one of the list, however the same wish is spelled. */
#include "common/http/locale.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

enum { MATCHERS = 3, TAGS_MAX = 8, RENDERED_MAX = ACCEPT_LANGUAGE_RANGES_MAX * (LANGUAGE_RANGE_MAX + sizeof ";q=0.000,") };

static const struct {
    struct str tags[TAGS_MAX];
    size_t n, fallback;
} lists[MATCHERS] = {
    {{{"en", 2}}, 1, 0},
    {{{"en", 2}, {"zh-Hans", 7}, {"zh-TW", 5}, {"sr-Latn", 7}, {"es-419", 6}, {"es", 2}, {"DE-at", 5}, {"x-none", 6}}, 8, 6},
    {{{"en-GB", 5}, {"en-US", 5}, {"zh", 2}, {"pt-BR", 5}, {"he", 2}, {"nb", 2}, {"sr", 2}}, 7, 2},
};

static const struct locale_matcher *matcher_get(size_t at)
{
    static const struct locale_matcher *made[MATCHERS];
    static struct arena a;

    if (made[at] == NULL) {
        const struct str_list list = {lists[at].tags, lists[at].n};

        if (at == 0)
            arena_init(&a, 4096, 0);
        GUARANTEE(locale_matcher_make(&list, lists[at].fallback, &a, &made[at]));
    }
    return made[at];
}

static void check_range(const struct language_range *r, struct str header)
{
    GUARANTEE(r->thousandths >= 1 && r->thousandths <= 1000);
    GUARANTEE(r->tag.p >= header.p && r->tag.p + r->tag.len <= header.p + header.len);
    GUARANTEE(r->tag.len >= 1 && r->tag.len <= LANGUAGE_RANGE_MAX);
    if (str_eq(r->tag, STR("*")))
        return;
    for (size_t i = 0; i < r->tag.len; i++)
        GUARANTEE(ascii_is_alpha(r->tag.p[i]) || ascii_is_digit(r->tag.p[i]) || ((r->tag.p[i] == '-' || r->tag.p[i] == '_') && i > 0 && i + 1 < r->tag.len));
    GUARANTEE(ascii_is_alpha(r->tag.p[0]));
}

static void check_order(const struct language_range *ranges, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        GUARANTEE(ranges[i - 1].thousandths >= ranges[i].thousandths);
        GUARANTEE(ranges[i - 1].thousandths > ranges[i].thousandths || ranges[i - 1].tag.p < ranges[i].tag.p);
    }
}

static struct str rendered(const struct language_range *ranges, size_t n, char *storage)
{
    struct buf b;

    buf_init(&b, storage, RENDERED_MAX);
    for (size_t i = 0; i < n; i++) {
        buf_put_cstr(&b, i == 0 ? "" : ",");
        buf_put(&b, ranges[i].tag);
        if (ranges[i].thousandths < 1000) {
            buf_put_cstr(&b, ";q=0.");
            for (unsigned unit = 100; unit > 0; unit /= 10)
                buf_put_byte(&b, (char)('0' + ranges[i].thousandths / unit % 10));
        }
    }
    GUARANTEE(!b.full);
    return buf_str(&b);
}

/* What was read, written out plainly, reads the same and gets the same. */
static void check_read_again(const struct language_range *ranges, size_t n, struct str header)
{
    struct language_range again[ACCEPT_LANGUAGE_RANGES_MAX];
    char storage[RENDERED_MAX];
    struct str plain = rendered(ranges, n, storage);

    if (plain.len > ACCEPT_LANGUAGE_MAX)
        return;
    GUARANTEE(accept_language_parse(plain, again) == n);
    for (size_t i = 0; i < n; i++)
        GUARANTEE(again[i].thousandths == ranges[i].thousandths && str_eq(again[i].tag, ranges[i].tag));
    for (size_t i = 0; i < MATCHERS; i++)
        GUARANTEE(locale_choose(matcher_get(i), plain) == locale_choose(matcher_get(i), header));
}

/* Neither case nor "_" for "-" makes a difference. */
static void check_spelled_otherwise(struct str header)
{
    char storage[ACCEPT_LANGUAGE_MAX];

    if (header.len > sizeof storage)
        return;
    for (size_t i = 0; i < header.len; i++) {
        char c = header.p[i];

        storage[i] = c == '-' ? '_' : c == ascii_lower(c) && ascii_is_alpha(c) ? (char)(c & ~0x20) : ascii_lower(c);
    }
    for (size_t i = 0; i < MATCHERS; i++)
        GUARANTEE(locale_choose(matcher_get(i), (struct str){storage, header.len}) == locale_choose(matcher_get(i), header));
}

static void check_chosen(const struct language_range *ranges, size_t n, struct str header)
{
    for (size_t i = 0; i < MATCHERS; i++) {
        size_t at = locale_choose(matcher_get(i), header);

        GUARANTEE(at < lists[i].n && str_eq(locale_tag(matcher_get(i), at), lists[i].tags[at]));
        if (n == 0 || str_eq(ranges[0].tag, STR("*")))
            GUARANTEE(at == lists[i].fallback);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str header = {(const char *)data, size};
    struct language_range ranges[ACCEPT_LANGUAGE_RANGES_MAX];
    size_t n = accept_language_parse(header, ranges);

    GUARANTEE(n <= ACCEPT_LANGUAGE_RANGES_MAX && (n == 0 || size <= ACCEPT_LANGUAGE_MAX));
    for (size_t i = 0; i < n; i++)
        check_range(&ranges[i], header);
    check_order(ranges, n);
    check_chosen(ranges, n, header);
    check_read_again(ranges, n, header);
    check_spelled_otherwise(header);
    return 0;
}
