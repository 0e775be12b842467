/* Any bytes as a path: what is accepted is normal, forwarded safely, and free of dot-segments however an upstream
 * reads it. */
#include "common/base/codec.h"
#include "common/http/path.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static bool is_dots(struct str s)
{
    return str_eq(s, STR(".")) || str_eq(s, STR(".."));
}

/* Cuts the front up to separator off rest; false at the end. */
static bool next_piece(struct str *rest, struct str separator, struct str *piece)
{
    if (rest->p == NULL)
        return false;
    size_t end = str_find(*rest, separator);
    *piece = str_sub(*rest, 0, end);
    *rest = end == SIZE_MAX ? STR_NONE : (struct str){rest->p + end + separator.len, rest->len - end - separator.len};
    return true;
}

static void check_normal(struct str normal, bool twice_encoded)
{
    GUARANTEE(str_starts(normal, STR("/")));
    GUARANTEE(str_find(normal, STR("//")) == SIZE_MAX);
    GUARANTEE(str_is_utf8(normal));
    GUARANTEE(str_find_byte(normal, '\0') == SIZE_MAX);
    GUARANTEE(str_find_byte(normal, '\\') == SIZE_MAX);
    GUARANTEE(str_find_byte(normal, ';') == SIZE_MAX);
    GUARANTEE(twice_encoded || str_find(normal, STR("%2f")) == SIZE_MAX);
    struct str segment;
    for (struct str rest = normal; next_piece(&rest, STR("/"), &segment);) {
        GUARANTEE(!is_dots(segment));
        struct str part, parts = segment;
        bool whole = str_find(segment, STR("%2F")) == SIZE_MAX;
        while (!whole && !twice_encoded && next_piece(&parts, STR("%2F"), &part))
            GUARANTEE(!is_dots(part));
    }
}

static void check_forward(struct str forward)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@/";
    for (size_t i = 0; i < forward.len; i++) {
        if (forward.p[i] == '%') {
            GUARANTEE(forward.len - i > 2 && codec_hex_digit(forward.p[i + 1]) >= 0 &&
                      codec_hex_digit(forward.p[i + 2]) >= 0);
            continue;
        }
        GUARANTEE(memchr(legal, forward.p[i], sizeof(legal) - 1) != NULL);
    }
}

/* An upstream that decodes every escape, %2F too, before it looks at segments, and drops parameters or doesn't. */
static void check_eager_upstream(struct str raw, struct arena *a)
{
    char *p = arena_take_bytes(a, raw.len);
    size_t len = 0;
    GUARANTEE(p != NULL && codec_percent_decode(raw, false, p, &len));
    struct str segment;
    for (struct str rest = {p, len}; next_piece(&rest, STR("/"), &segment);) {
        GUARANTEE(!str_eq(segment, STR("..")));
        GUARANTEE(!str_eq(str_sub(segment, 0, str_find_byte(segment, ';')), STR("..")));
        GUARANTEE(str_find_byte(segment, '\\') == SIZE_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str raw = {(const char *)data, size};
    struct arena a;
    struct path path = {STR("untouched"), STR("untouched")}, again;
    arena_init(&a, 4096, 0);
    enum path_verdict v = path_normalise(raw, &a, &path);
    GUARANTEE(v < PATH_N_VERDICTS && v != PATH_NO_MEMORY);
    GUARANTEE(a.used_bytes <= 4 * size);
    if (v == PATH_OK) {
        bool twice_encoded = str_find(raw, STR("%25")) != SIZE_MAX;
        check_normal(path.normal, twice_encoded);
        check_forward(path.forward);
        check_eager_upstream(raw, &a);
        /* Escaping can make it longer than what is read. */
        if (path.forward.len <= PATH_RAW_MAX) {
            GUARANTEE(path_normalise(path.forward, &a, &again) == PATH_OK);
            GUARANTEE(str_eq(again.normal, path.normal) && str_eq(again.forward, path.forward));
        }
        GUARANTEE(twice_encoded ||
                  (path_normalise(path.normal, &a, &again) == PATH_OK && str_eq(again.normal, path.normal)));
    } else {
        GUARANTEE(str_eq(path.normal, STR("untouched")) && str_eq(path.forward, STR("untouched")));
    }
    arena_release(&a);
    return 0;
}
