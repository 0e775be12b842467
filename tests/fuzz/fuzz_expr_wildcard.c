/* Any bytes as a wildcard and a text, parted by a line break: what matches is what trying everything finds. Asked through
 * the check of contradictions, which knows whether an `eq` beside a wildcard can hold. */
#include "common/expr/expr.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

enum { PATTERN_MAX = 64, TEXT_MAX = 64 };

/* reached[i]: the pattern so far matches the first i bytes of text. */
static bool matches(struct str pattern, struct str text, bool strict)
{
    bool reached[TEXT_MAX + 1] = {true};

    for (size_t p = 0; p < pattern.len; p++) {
        bool is_star = pattern.p[p] == '*', next[TEXT_MAX + 1] = {false};

        if (pattern.p[p] == '\\')
            p++;
        for (size_t i = 0; i <= text.len; i++) {
            if (is_star)
                next[i] = reached[i] || (i > 0 && next[i - 1]);
            else if (i > 0 && reached[i - 1])
                next[i] =
                    strict ? pattern.p[p] == text.p[i - 1] : ascii_lower(pattern.p[p]) == ascii_lower(text.p[i - 1]);
        }
        memcpy(reached, next, sizeof(reached));
    }
    return reached[text.len];
}

/* Whether op is a condition that text meets; *valid tells whether the pattern is one. */
static bool asked(const char *op, struct str pattern, struct str text, bool *valid)
{
    struct expr_context context = {.phase = EXPR_RATE, .deployment = &expr_deployment_any, .schema = 6, .path = ""};
    json_t *json = json_pack("{s:s,s:[{s:s,s:s,s:o},{s:s,s:s,s:o}]}", "combinator", "and", "rules", "field",
                             "tls.client.cert.subject", "operator", "eq", "value", json_stringn(text.p, text.len), "field",
                             "tls.client.cert.subject", "operator", op, "value", json_stringn(pattern.p, pattern.len));
    struct errlist errors, warnings;
    bool met;
    struct arena a;
    struct jx_doc doc = {.arena = &a, .errors = &errors};
    struct jx root = jx_root(json, &doc);
    const struct expr *x;

    GUARANTEE(json != NULL && errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    arena_init(&a, 4096, 0);
    x = expr_decode(&root, &a);
    *valid = x != NULL;
    if (x != NULL)
        GUARANTEE(expr_check(x, &context, &errors, &warnings) && warnings.n <= 1);
    GUARANTEE(*valid == (errors.n == 0));
    met = warnings.n == 0;
    arena_release(&a);
    json_decref(json);
    errlist_release(&errors);
    errlist_release(&warnings);
    return met;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = {(const char *)data, size}, pattern = str_sub(input, 0, str_find_byte(input, '\n')),
               text = str_sub(input, pattern.len + 1, input.len);
    bool valid, valid_strict, met, met_strict;

    if (pattern.len > PATTERN_MAX || text.len > TEXT_MAX || !str_is_utf8(input) ||
        str_find_byte(input, '\0') != SIZE_MAX)
        return 0;
    met = asked("wildcard", pattern, text, &valid);
    met_strict = asked("strict_wildcard", pattern, text, &valid_strict);
    GUARANTEE(valid == valid_strict);
    if (!valid)
        return 0;
    GUARANTEE(met == matches(pattern, text, false) && met_strict == matches(pattern, text, true));
    return 0;
}
