/* Requests made of the literals of expressions, so that their conditions are near to being fulfilled. */
#ifndef TESTS_FUZZ_EXPR_WORLD_H
#define TESTS_FUZZ_EXPR_WORLD_H

#include "tests/fuzz/expr_naive.h"

enum { WORLD_LEAVES_MAX = EXPR_PROGRAMS_MAX * EXPR_CONDITIONS_MAX, WORLD_TEXT_MAX = 80 };

struct world_leaves {
    const json_t *items[WORLD_LEAVES_MAX];
    size_t n;
};

static inline void world_collect(struct world_leaves *leaves, const json_t *node)
{
    const json_t *rules = json_object_get(node, "rules"), *item;
    size_t i;

    json_array_foreach(rules, i, item) world_collect(leaves, item);
    GUARANTEE(leaves->n < WORLD_LEAVES_MAX);
    if (rules == NULL)
        leaves->items[leaves->n++] = node;
}

/* A literal, part of one, one with a byte more at either end or in other case. */
static inline struct str world_text(struct naive *n, struct str s)
{
    char *p;

    s = str_sub(s, 0, WORLD_TEXT_MAX);
    switch (naive_random(&n->random) % 8) {
    case 0:
        return str_sub(s, 0, naive_random(&n->random) % (s.len + 1));
    case 1:
        return naive_join(n, s, STR("x"));
    case 2:
        return naive_join(n, STR("/x"), s);
    case 3:
        p = naive_take(n, s.len);
        for (size_t i = 0; i < s.len; i++)
            p[i] = ascii_is_alpha(s.p[i]) ? (char)(s.p[i] ^ 0x20) : s.p[i];
        return (struct str){p, s.len};
    default:
        return s;
    }
}

/* As a header or cookie can carry it: without what would end or trim it. */
static inline struct str world_clean(struct naive *n, struct str s, bool lower)
{
    char *p = naive_take(n, s.len);

    for (size_t i = 0; i < s.len; i++)
        p[i] = s.p[i] == ';' || s.p[i] == ' ' || s.p[i] == '\t' || s.p[i] == '\r' || s.p[i] == '\n' ? '_'
               : lower                                                                               ? ascii_lower(s.p[i])
                                                                                                     : s.p[i];
    return (struct str){p, s.len};
}

static inline void world_put_address(struct naive *n, struct str literal)
{
    struct addr_range r;

    n->facts.has_ip = addr_parse_cidr(str_sub(literal, 0, str_find(literal, STR(".."))), &r);
    if (!n->facts.has_ip)
        return;
    n->facts.ip = naive_random(&n->random) % 2 == 0 ? r.first : r.last;
    n->facts.ip.b[15] = (uint8_t)(n->facts.ip.b[15] + naive_random(&n->random) % 3 - 1);
}

static inline void world_put_number(struct naive *n, const json_t *value)
{
    int64_t number = json_is_string(value) ? strtoll(json_string_value(value), NULL, 10) : json_integer_value(value);

    n->facts.viewer.has_asnum = true;
    n->facts.viewer.asnum = number;
    if (number > INT64_MIN && number < INT64_MAX)
        n->facts.viewer.asnum += (int64_t)(naive_random(&n->random) % 3) - 1;
}

/* Into the header list. The cookies' own header is made of them. */
static inline void world_put_header(struct naive *n, struct str name, struct str value)
{
    name = world_clean(n, name, true);
    if (name.len > 0 && !str_eq(name, STR("cookie")))
        naive_add(&n->headers, name, value);
}

static inline void world_put_text(struct naive *n, const json_t *leaf, struct str text)
{
    struct str field = naive_string(json_object_get(leaf, "field")), key = naive_string(json_object_get(leaf, "key"));
    struct str *plain = naive_plain(n, field);

    if (plain != NULL)
        *plain = text;
    else if (str_eq(field, STR("http.user_agent")))
        world_put_header(n, STR("user-agent"), text);
    else if (str_eq(field, STR("http.referer")))
        world_put_header(n, STR("referer"), text);
    else if (str_eq(field, STR("http.x_forwarded_for")))
        world_put_header(n, STR("x-forwarded-for"), text);
    else if (str_eq(field, STR("http.request.headers")))
        world_put_header(n, key, text);
    else if (str_eq(field, STR("http.request.headers.names")))
        world_put_header(n, text, STR("v"));
    else if (str_eq(field, STR("http.request.uri.args")))
        naive_add(&n->arguments, key, text);
    else if (str_eq(field, STR("http.request.uri.args.names")))
        naive_add(&n->arguments, text, STR("v"));
    else if (str_eq(field, STR("http.request.cookies")))
        naive_add(&n->cookies, key, world_clean(n, text, false));
    else if (str_eq(field, STR("http.request.jwt.claims")))
        naive_add(&n->claims, key, text);
}

static inline void world_put(struct naive *n, const json_t *leaf)
{
    const json_t *value = json_object_get(leaf, "value");

    if (json_is_array(value))
        value = json_array_get(value, naive_random(&n->random) % json_array_size(value));
    if (naive_is(leaf, "field", "ip.src"))
        world_put_address(n, naive_string(value));
    else if (naive_is(leaf, "field", "ip.src.asnum"))
        world_put_number(n, value);
    else if (json_is_string(value))
        world_put_text(n, leaf, world_text(n, naive_string(value)));
}

/* ---- from what was put to facts ---- */

static inline void world_encode(struct buf *b, struct str s)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < s.len; i++) {
        buf_put_byte(b, '%');
        buf_put_byte(b, digits[(unsigned char)s.p[i] >> 4]);
        buf_put_byte(b, digits[(unsigned char)s.p[i] & 15]);
    }
}

/* Every name and value is encoded whole. */
static inline struct str world_query(struct naive *n)
{
    size_t cap = NAIVE_PAIRS_MAX * (6 * (size_t)EXPR_TEXT_MAX + 2);
    struct buf b;

    buf_init(&b, naive_take(n, cap), cap);
    for (size_t i = 0; i < n->arguments.n; i++) {
        buf_put_cstr(&b, i == 0 ? "" : "&");
        world_encode(&b, n->arguments.items[i].name);
        buf_put_byte(&b, '=');
        world_encode(&b, n->arguments.items[i].value);
    }
    GUARANTEE(!b.full);
    return buf_str(&b);
}

static inline struct str world_cookies(struct naive *n)
{
    struct str all = STR_NONE;

    for (size_t i = 0; i < n->cookies.n; i++) {
        all = naive_join(n, all, i == 0 ? STR_NONE : STR("; "));
        all = naive_join(n, all, n->cookies.items[i].name);
        all = naive_join(n, all, STR("="));
        all = naive_join(n, all, n->cookies.items[i].value);
    }
    return all;
}

static inline const struct headers *world_headers(struct naive *n)
{
    struct headers *out = ARENA_NEW(n->arena, struct headers);

    GUARANTEE(out != NULL);
    out->items = ARENA_NEW_N(n->arena, n->headers.n, struct header);
    GUARANTEE(out->items != NULL);
    for (size_t i = 0; i < n->headers.n; i++)
        out->items[out->n++] = (struct header){n->headers.items[i].name, n->headers.items[i].value};
    return out;
}

/* One claim for each name, with all its values. */
static inline const struct expr_claims *world_claims(struct naive *n)
{
    struct expr_claims *out = ARENA_NEW(n->arena, struct expr_claims);
    struct expr_claim *claims = ARENA_NEW_N(n->arena, n->claims.n, struct expr_claim);

    GUARANTEE(out != NULL && claims != NULL);
    for (size_t i = 0; i < n->claims.n; i++) {
        struct str name = n->claims.items[i].name, *values = ARENA_NEW_N(n->arena, n->claims.n, struct str);
        bool is_new = true;

        GUARANTEE(values != NULL);
        for (size_t j = 0; j < out->n; j++)
            is_new = is_new && !str_eq(claims[j].name, name);
        if (!is_new)
            continue;
        claims[out->n] = (struct expr_claim){.name = name, .values = values};
        for (size_t j = i; j < n->claims.n; j++)
            if (str_eq(n->claims.items[j].name, name))
                values[claims[out->n].n_values++] = n->claims.items[j].value;
        out->n++;
    }
    out->items = claims;
    return out;
}

static inline struct str world_locale(void *ctx, struct str accept_language)
{
    const struct naive *n = ctx;

    (void)accept_language;
    return n->locale;
}

/* Some of the leaves put their literals into an otherwise empty request. */
static inline void world_make(struct naive *n, const struct world_leaves *leaves, struct arena *a)
{
    size_t n_puts = leaves->n == 0 ? 0 : naive_random(&n->random) % 24;

    n->arena = a;
    n->headers.n = n->arguments.n = n->cookies.n = n->claims.n = 0;
    n->locale = STR_NONE;
    GUARANTEE(expr_facts_begin(&n->facts, a));
    n->facts.locale = world_locale;
    n->facts.locale_ctx = n;
    n->facts.viewer.ssl = naive_random(&n->random) % 2 == 0;
    n->facts.viewer.cert.present = naive_random(&n->random) % 2 == 0;
    n->facts.verified_bot = naive_random(&n->random) % 2 == 0;
    for (size_t i = 0; i < n_puts; i++)
        world_put(n, leaves->items[naive_random(&n->random) % leaves->n]);
    if (n->cookies.n > 0)
        naive_add(&n->headers, STR("cookie"), world_cookies(n));
    if (n->headers.n == NAIVE_PAIRS_MAX && !str_eq(n->headers.items[n->headers.n - 1].name, STR("cookie")))
        n->cookies.n = 0;
    n->facts.query = world_query(n);
    n->facts.headers = world_headers(n);
    n->facts.claims = world_claims(n);
}

/* ---- programs against it ---- */

struct world_policy {
    struct expr_set *set;
    json_t *trees[EXPR_PROGRAMS_MAX]; /* by program */
    size_t n;
    struct world_leaves leaves;
};

/* Takes json over. */
static inline void world_add(struct world_policy *p, const struct expr *x, json_t *json)
{
    size_t program;

    GUARANTEE(json != NULL && p->n < EXPR_PROGRAMS_MAX);
    GUARANTEE(expr_set_add(p->set, x, &program) && program == p->n);
    p->trees[p->n++] = json;
    world_collect(&p->leaves, json);
}

/* Every program answers as the naive evaluator does, whatever was asked before; none that is not NO is left out. */
static inline void world_check(struct world_policy *p, uint64_t seed, size_t rounds)
{
    struct naive *n = calloc(1, sizeof(*n));
    struct arena a;

    GUARANTEE(n != NULL && seed != 0 && expr_set_finish(p->set));
    n->random = seed;
    arena_init(&a, 65536, 0);
    for (size_t round = 0; round < rounds; round++) {
        struct expr_candidates candidates;
        struct expr_run run;

        world_make(n, &p->leaves, &a);
        GUARANTEE(expr_run_init(&run, p->set, &n->facts, &a));
        expr_run_candidates(&run, &candidates);
        for (size_t i = 0, at = naive_random(&n->random) % (p->n + 1); i < p->n; i++, at++) {
            enum match wanted = naive_answer(n, p->trees[at % p->n]);

            GUARANTEE(expr_run(&run, at % p->n) == wanted);
            GUARANTEE(wanted == MATCH_NO || expr_is_candidate(&candidates, at % p->n));
        }
        arena_reset(&a);
    }
    arena_release(&a);
    free(n);
}

static inline void world_forget(struct world_policy *p)
{
    for (size_t i = 0; i < p->n; i++)
        json_decref(p->trees[i]);
    p->n = 0;
}

#endif
