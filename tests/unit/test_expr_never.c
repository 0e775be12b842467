/* Expressions that are proven never to match, held against every request of a small world, and wildcards held against
 * a matcher that tries everything. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "tests/unit/cases.h"
#include "tests/unit/expr_rows.h"

/* Whether the check of ast warns that it never matches. */
static bool is_never(const json_t *ast)
{
    struct expr_context context = {.phase = EXPR_RATE, .deployment = &expr_deployment_any, .schema = 6, .path = ""};
    const struct expr *x = expr_row_decode(ast);
    bool never = false;

    CU_ASSERT_FATAL(x != NULL);
    CU_ASSERT_FATAL(expr_check(x, &context, &expr_errors, &expr_warnings));
    for (size_t i = 0; i < expr_warnings.n; i++)
        never = never || expr_warnings.items[i].code == ERR_NEVER_TRUE;
    expr_forget();
    return never;
}

/* ---- the small world ---- */

enum { N_TEXTS = 16, N_SYSTEMS = 8, N_LISTS = 8, LISTED = 3 };

static const char *const texts[N_TEXTS] = {"",    "a",   "b",   "aa",  "ab",  "ba",  "bb",  "aaa",
                                           "aab", "aba", "abb", "baa", "bab", "bba", "bbb", "A"};

struct world {
    const char *user_agent;
    const char *headers[LISTED];
    size_t n_headers;
    int64_t asnum; /* -1: missing */
    bool ssl;
};

static struct world world_at(size_t n)
{
    struct world w = {.user_agent = texts[n % N_TEXTS], .ssl = n / N_TEXTS % 2 != 0};
    size_t listed = n / N_TEXTS / 2 % N_LISTS;

    w.asnum = (int64_t)(n / N_TEXTS / 2 / N_LISTS) - 1;
    for (size_t i = 0; i < LISTED; i++)
        if ((listed >> i & 1) != 0)
            w.headers[w.n_headers++] = texts[1 + i];
    return w;
}

enum { N_WORLDS = N_TEXTS * 2 * N_LISTS * (N_SYSTEMS + 1) };

/* ---- what a request of it answers ---- */

static bool naive_wildcard(const char *pattern, const char *text, bool strict)
{
    if (*pattern == '*')
        return naive_wildcard(pattern + 1, text, strict) ||
               (*text != '\0' && naive_wildcard(pattern, text + 1, strict));
    if (*pattern == '\\')
        pattern++;
    if (*pattern == '\0' || *text == '\0')
        return *pattern == *text;
    if (strict ? *pattern != *text : ascii_lower(*pattern) != ascii_lower(*text))
        return false;
    return naive_wildcard(pattern + 1, text + 1, strict);
}

static bool text_has(const char *op, const char *literal, const char *text)
{
    size_t n = strlen(text), n_literal = strlen(literal);

    if (strcmp(op, "contains") == 0)
        return strstr(text, literal) != NULL;
    if (strcmp(op, "starts_with") == 0)
        return strncmp(text, literal, n_literal) == 0;
    if (strcmp(op, "ends_with") == 0)
        return n >= n_literal && strcmp(text + n - n_literal, literal) == 0;
    if (strcmp(op, "wildcard") == 0 || strcmp(op, "strict_wildcard") == 0)
        return naive_wildcard(literal, text, op[0] == 's');
    return strcmp(text, literal) == 0;
}

static bool number_has(const char *op, const json_t *literal, int64_t n)
{
    int64_t first = json_integer_value(literal), last = first;

    if (json_is_string(literal))
        CU_ASSERT_FATAL(sscanf(json_string_value(literal), "%ld..%ld", &first, &last) == 2);
    if (strcmp(op, "lt") == 0)
        return n < first;
    if (strcmp(op, "le") == 0)
        return n <= first;
    if (strcmp(op, "gt") == 0)
        return n > first;
    if (strcmp(op, "ge") == 0)
        return n >= first;
    return first <= n && n <= last;
}

static bool literal_holds(const struct world *w, const char *field, const char *op, const json_t *literal)
{
    bool any = false;

    if (strcmp(field, "ssl") == 0)
        return json_is_true(literal) == w->ssl;
    if (strcmp(field, "ip.src.asnum") == 0)
        return w->asnum >= 0 && number_has(op, literal, w->asnum);
    if (strcmp(field, "http.user_agent") == 0)
        return text_has(op, json_string_value(literal), w->user_agent);
    for (size_t i = 0; i < w->n_headers; i++)
        any = any || text_has(op, json_string_value(literal), w->headers[i]);
    return any;
}

static bool answer(const struct world *w, const json_t *x)
{
    const json_t *rules = json_object_get(x, "rules"), *value = json_object_get(x, "value"), *item;
    const char *field = json_string_value(json_object_get(x, "field")),
               *op = json_string_value(json_object_get(x, "operator"));
    bool all =
        strcmp(json_is_string(json_object_get(x, "combinator")) ? json_string_value(json_object_get(x, "combinator"))
                                                                : "",
               "and") == 0;
    bool out = all;
    size_t i;

    if (rules != NULL) {
        json_array_foreach(rules, i, item) out = all ? out && answer(w, item) : out || answer(w, item);
        return out != json_is_true(json_object_get(x, "not"));
    }
    out = !json_is_array(value) && literal_holds(w, field, op, value);
    json_array_foreach(value, i, item) out = out || literal_holds(w, field, op, item);
    return out != (strcmp(op, "ne") == 0 || strcmp(op, "not_in") == 0);
}

/* ---- random trees over it ---- */

static uint64_t random_state;

static size_t draw(size_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static json_t *drawn_text(const char *op)
{
    static const char *const patterns[] = {"a*", "*a", "*b*", "a*b", "A*", "*B", "*", "b*a*", "ab", "*a*b", ""};

    if (strstr(op, "wildcard") != NULL)
        return json_string(patterns[draw(sizeof(patterns) / sizeof(patterns[0]))]);
    if (op[0] == 'c' || op[0] == 's' || strcmp(op, "ends_with") == 0)
        return json_string(texts[1 + draw(N_TEXTS - 1)]);
    return json_string(texts[draw(N_TEXTS)]);
}

static json_t *drawn_number(bool set)
{
    if (set && draw(2) == 0) {
        size_t first = draw(N_SYSTEMS);

        return json_sprintf("%zu..%zu", first, first + draw(4));
    }
    return json_integer(1 + (json_int_t)draw(N_SYSTEMS - 1));
}

static json_t *drawn_leaf(void)
{
    static const char *const ops[] = {"eq",          "ne",        "in",       "not_in",         "contains",
                                      "starts_with", "ends_with", "wildcard", "strict_wildcard"};
    static const char *const int_ops[] = {"eq", "ne", "in", "not_in", "lt", "le", "gt", "ge"};
    size_t field = draw(8);
    bool is_number = field == 6;
    const char *op = is_number ? int_ops[draw(8)] : ops[draw(9)];
    bool set = strcmp(op, "in") == 0 || strcmp(op, "not_in") == 0;
    json_t *value;

    if (field == 7)
        return json_pack("{s:s,s:s,s:b}", "field", "ssl", "operator", draw(2) == 0 ? "eq" : "ne", "value",
                         (int)draw(2));
    value = set ? json_array() : is_number ? drawn_number(false) : drawn_text(op);
    for (size_t n = set ? 1 + draw(3) : 0; n > 0; n--)
        json_array_append_new(value, is_number ? drawn_number(true) : drawn_text(op));
    if (is_number)
        return json_pack("{s:s,s:s,s:o}", "field", "ip.src.asnum", "operator", op, "value", value);
    if (field < 4)
        return json_pack("{s:s,s:s,s:o}", "field", "http.user_agent", "operator", op, "value", value);
    return json_pack("{s:s,s:s,s:s,s:o}", "field", "http.request.headers", "key", field == 4 ? "x-a" : "X-A",
                     "operator", op, "value", value);
}

/* Recursion ends: a level lower each time. */
static json_t *drawn_tree(size_t levels)
{
    json_t *rules;

    if (levels == 0 || draw(4) == 0)
        return drawn_leaf();
    rules = json_array();
    for (size_t n = 1 + draw(3); n > 0; n--)
        json_array_append_new(rules, drawn_tree(levels - 1));
    return json_pack("{s:s,s:b,s:o}", "combinator", draw(3) == 0 ? "or" : "and", "not", draw(4) == 0, "rules", rules);
}

static void warned_trees_match_no_request(void)
{
    enum { TREES = 6000, WARNED_AT_LEAST = 400 };
    size_t n_warned = 0;

    random_state = 20261130;
    for (size_t n = 0; n < TREES; n++) {
        json_t *tree = drawn_tree(3);

        CU_ASSERT_FATAL(tree != NULL);
        if (is_never(tree)) {
            bool matches = false;

            for (size_t i = 0; i < N_WORLDS; i++) {
                struct world w = world_at(i);

                matches = matches || answer(&w, tree);
            }
            CASE_CHECK(tree, !matches);
            n_warned++;
        }
        json_decref(tree);
    }
    CU_ASSERT(n_warned > WARNED_AT_LEAST);
}

/* ---- wildcards: an `eq` beside one is a contradiction exactly when the text does not match ---- */

static bool wildcard_matches(const char *op, const char *pattern, const char *text)
{
    json_t *ast =
        json_pack("{s:s,s:[{s:s,s:s,s:s},{s:s,s:s,s:s}]}", "combinator", "and", "rules", "field", "http.user_agent",
                  "operator", "eq", "value", text, "field", "http.user_agent", "operator", op, "value", pattern);
    bool never;

    CU_ASSERT_FATAL(ast != NULL);
    never = is_never(ast);
    json_decref(ast);
    return !never;
}

static void check_wildcard(const json_t *row)
{
    const char *pattern = json_string_value(json_object_get(row, "pattern"));
    const char *text = json_string_value(json_object_get(row, "text"));

    CASE_CHECK(row, wildcard_matches("wildcard", pattern, text) == json_is_true(json_object_get(row, "matches")));
    CASE_CHECK(row, wildcard_matches("strict_wildcard", pattern, text) == json_is_true(json_object_get(row, "strict")));
}

static void wildcards(void)
{
    expr_each_row("tests/cases/expr/wildcard.json", check_wildcard);
}

static void random_wildcards(void)
{
    enum { ROUNDS = 10000, LEN = 10 };

    random_state = 7;
    for (size_t n = 0; n < ROUNDS; n++) {
        char pattern[LEN + 1], text[LEN + 1];
        size_t len = 0, text_len = draw(LEN);

        for (size_t wanted = draw(LEN); len < wanted;) {
            char c = "aab*AB\\"[draw(7)];

            if (c == '*' && len > 0 && pattern[len - 1] == '*')
                continue;
            if (c == '\\') {
                pattern[len++] = c;
                c = '\\';
            }
            pattern[len++] = c;
        }
        pattern[len] = '\0';
        for (size_t i = 0; i < text_len; i++)
            text[i] = "aabAB\\"[draw(6)];
        text[text_len] = '\0';
        CU_ASSERT(wildcard_matches("wildcard", pattern, text) == naive_wildcard(pattern, text, false));
        CU_ASSERT(wildcard_matches("strict_wildcard", pattern, text) == naive_wildcard(pattern, text, true));
    }
}

void test_expr_never_register(void)
{
    CU_pSuite s = CU_add_suite("expr_never", expr_set_up, expr_tear_down);

    CU_add_test(s, "an expression that is said never to match matches no request of a small world",
                warned_trees_match_no_request);
    CU_add_test(s, "a wildcard matches what its row says, whatever the case unless it is strict", wildcards);
    CU_add_test(s, "a wildcard matches what a matcher that tries everything finds", random_wildcards);
}
