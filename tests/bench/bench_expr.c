/* What expressions cost a request: CPU time of a phase of many rules, one JSON line a shape of policy. */
#include <stdio.h>
#include <stdlib.h>

#include "common/expr/expr.h"
#include "tests/bench/timing.h"

enum { RULES = 200, CONDITIONS = 32, RUNS = 9, REQUESTS = 2000, ARENA_BYTES = 65536 };

static void stop(const char *what, struct str detail)
{
    fprintf(stderr, "bench_expr: %s: %.*s\n", what, STR_ARG(detail));
    exit(1);
}

/* ---- conditions ---- */

/* The i-th condition that the request below does not fulfil; two of different i are never the same. */
static void put_false(struct buf *b, unsigned i)
{
    switch (i % 10) {
    case 0:
        buf_printf(b, "http.host eq \"shop%u.example\"", i);
        break;
    case 1:
        buf_printf(b, "http.request.uri.path eq \"/v1/orders/%u\"", i);
        break;
    case 2:
        buf_printf(b, "http.request.uri.path in {\"/v1/carts/%u\" \"/v1/items/%u\" \"/v1/users/%u\"}", i, i, i);
        break;
    case 3:
        buf_printf(b, "starts_with(http.request.uri.path, \"/v1/orders/x%u/\")", i);
        break;
    case 4:
        buf_printf(b, "http.request.uri.path contains \"/part%u/\"", i);
        break;
    case 5:
        buf_printf(b, "http.request.uri.path wildcard \"/v1/*/part%u/*\"", i);
        break;
    case 6:
        buf_printf(b, "http.request.headers[\"x-tenant\"] eq \"tenant-%u\"", i);
        break;
    case 7:
        buf_printf(b, "http.request.cookies[\"group\"] eq \"g%u\"", i);
        break;
    case 8:
        buf_printf(b, "ip.src in {10.%u.%u.0/24}", i / 250 % 250, i % 250);
        break;
    default:
        buf_printf(b, "ip.src.asnum in {%u..%u}", 100000 + 10 * i, 100005 + 10 * i);
    }
}

/* As above, each with a header of its own. */
static void put_false_header(struct buf *b, unsigned i)
{
    buf_printf(b, "http.request.headers[\"x-h%u\"] eq \"v\"", i);
}

/* A rule as people write it; the request is of the first rule's host. */
static void put_realistic(struct buf *b, unsigned i, unsigned n_hosts)
{
    unsigned host = i % n_hosts;

    if (i % 5 == 0)
        buf_printf(b, "http.host eq \"shop%u.example\" and starts_with(http.request.uri.path, \"/v1/part%u/\")", host, i);
    else if (i % 5 == 1)
        buf_printf(b, "http.host eq \"shop%u.example\" and http.request.method in {\"POST\" \"PUT\"} and http.request.uri.path eq \"/v1/login%u\"", host, i);
    else if (i % 5 == 2)
        buf_printf(b, "http.host in {\"shop%u.example\" \"www%u.example\"} and not ip.src in {10.%u.0.0/16}", host, host, i);
    else if (i % 5 == 3)
        buf_printf(b, "starts_with(http.request.uri.path, \"/admin%u/\") and ip.src not_in {192.0.2.0/24}", i);
    else
        buf_printf(b, "http.host eq \"shop%u.example\" and http.request.uri.path wildcard \"/V%u/*/export\" and http.request.headers[\"x-tenant\"] eq \"t%u\"", host, i, i);
}

/* ---- policies ---- */

struct shape {
    const char *name;
    unsigned n_rules, n_conditions, n_distinct; /* n_distinct 0: realistic rules */
    void (*put)(struct buf *b, unsigned i);
    bool joined_by_and; /* of negated conditions: all are asked too */
};

static void put_rule(const struct shape *s, unsigned rule, struct buf *b)
{
    if (s->n_distinct == 0) {
        put_realistic(b, rule, s->n_rules / 4);
        return;
    }
    for (unsigned c = 0; c < s->n_conditions; c++) {
        buf_put_cstr(b, c == 0 ? "" : s->joined_by_and ? " and " : " or ");
        buf_put_cstr(b, s->joined_by_and ? "not " : "");
        /* Each rule takes others of the distinct ones, in another order. */
        s->put(b, s->n_distinct == s->n_rules * s->n_conditions ? rule * s->n_conditions + c
                                                                : (rule * 7 + c * (1 + rule % 3)) % s->n_distinct);
    }
}

static struct expr_set *make_set(const struct shape *s, struct arena *a)
{
    struct expr_set *set;
    size_t program;

    if (!expr_set_new(a, &set))
        stop(s->name, STR("no memory"));
    for (unsigned i = 0; i < s->n_rules; i++) {
        const struct expr *x = NULL;
        struct err e = {0};
        char text[EXPR_TEXT_MAX];
        struct buf b;

        buf_init(&b, text, sizeof(text));
        put_rule(s, i, &b);
        if (!expr_parse(buf_str(&b), a, &x, &e))
            stop(s->name, str_of(e.text));
        if (!expr_set_add(set, x, &program))
            stop(s->name, STR("no memory"));
    }
    if (!expr_set_finish(set))
        stop(s->name, STR("no memory"));
    return set;
}

/* ---- the request ---- */

static void fill_facts(struct expr_facts *f, struct arena *a)
{
    static struct header items[] = {
        {{"host", 4}, {"shop0.example", 13}},
        {{"user-agent", 10}, {"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36", 101}},
        {{"accept", 6}, {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 63}},
        {{"accept-encoding", 15}, {"gzip, deflate, br, zstd", 23}},
        {{"accept-language", 15}, {"en-US,en;q=0.9,de;q=0.8", 23}},
        {{"sec-ch-ua", 9}, {"\"Chromium\";v=\"131\"", 18}},
        {{"sec-ch-ua-mobile", 16}, {"?0", 2}},
        {{"sec-ch-ua-platform", 18}, {"\"Linux\"", 7}},
        {{"sec-fetch-dest", 14}, {"document", 8}},
        {{"sec-fetch-mode", 14}, {"navigate", 8}},
        {{"sec-fetch-site", 14}, {"none", 4}},
        {{"x-tenant", 8}, {"tenant-of-the-request", 21}},
        {{"cookie", 6}, {"sid=0123456789abcdef; group=none-of-them; theme=dark", 52}},
        {{"referer", 7}, {"https://shop0.example/v1/", 25}},
        {{"x-forwarded-for", 15}, {"198.51.100.7", 12}},
    };
    static const struct headers headers = {items, sizeof(items) / sizeof(items[0])};

    if (!expr_facts_begin(f, a))
        stop("facts", STR("no memory"));
    f->host = STR("shop0.example");
    f->method = STR("GET");
    f->path = STR("/v1/orders/4711/items/of/the/request");
    f->uri = STR("/v1/orders/4711/items/of/the/request?page=2&sort=name");
    f->query = STR("page=2&sort=name");
    f->headers = &headers;
    f->viewer.asnum = 64500;
    f->viewer.has_asnum = f->has_ip = addr_parse(STR("198.51.100.7"), &f->ip);
}

static unsigned run_once(const struct expr_set *set, const struct shape *s, struct arena *a)
{
    struct expr_candidates candidates;
    struct expr_facts facts;
    struct expr_run run;
    unsigned n_yes = 0;

    fill_facts(&facts, a);
    if (!expr_run_init(&run, set, &facts, a))
        stop(s->name, STR("no memory"));
    expr_run_worth_asking(&run, &candidates);
    for (unsigned i = 0; i < s->n_rules; i++)
        if (expr_is_candidate(&candidates, i))
            n_yes += expr_run(&run, i) == MATCH_YES;
    arena_reset(a);
    return n_yes;
}

static void measure(const struct shape *s)
{
    struct arena policy, request;
    double ns[RUNS], before, median_ns;
    const struct expr_set *set;
    unsigned n_yes = 0;

    arena_init(&policy, ARENA_BYTES, 0);
    arena_init(&request, ARENA_BYTES, 0);
    before = cpu_ns();
    set = make_set(s, &policy);
    before = cpu_ns() - before;
    for (int r = 0; r < RUNS; r++) {
        double start = cpu_ns();

        for (int i = 0; i < REQUESTS; i++)
            n_yes = run_once(set, s, &request);
        ns[r] = (cpu_ns() - start) / REQUESTS;
    }
    median_ns = median(ns, RUNS);
    printf("{\"bench\":\"expr\",\"shape\":\"%s\",\"rules\":%u,\"predicates\":%zu,\"matched\":%u,\"cpu_us\":%.2f,\"min_us\":%.2f,"
           "\"compile_ms\":%.1f}\n",
           s->name, s->n_rules, expr_set_n_predicates(set), n_yes, median_ns / 1e3, ns[0] / 1e3, before / 1e6);
    arena_release(&request);
    arena_release(&policy);
}

static bool is_named(const char *name, char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Arguments: the names of the shapes to measure; none: all. */
int main(int argc, char **argv)
{
    static const struct shape shapes[] = {
        {"repeating", RULES, CONDITIONS, 60, put_false, false},
        {"repeating_and", RULES, CONDITIONS, 60, put_false, true},
        {"distinct", RULES, CONDITIONS, RULES * CONDITIONS, put_false, false},
        {"distinct_and", RULES, CONDITIONS, RULES * CONDITIONS, put_false, true},
        {"distinct_headers", RULES, CONDITIONS, RULES * CONDITIONS, put_false_header, false},
        {"realistic_20", 20, 0, 0, NULL, false},
        {"realistic_200", RULES, 0, 0, NULL, false},
    };

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        if (argc < 2 || is_named(shapes[i].name, argv + 1))
            measure(&shapes[i]);
    return 0;
}
