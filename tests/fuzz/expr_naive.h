/* Expressions answered the slow and plain way, from their JSON and from a request made of their own literals: what
 * programs, their shared tables and their index are held against. */
#ifndef TESTS_FUZZ_EXPR_NAIVE_H
#define TESTS_FUZZ_EXPR_NAIVE_H

#include "common/expr/expr.h"
#include "common/http/pairs.h"
#include "tests/fuzz/guarantee.h"

enum { NAIVE_PAIRS_MAX = 24, NAIVE_REGEX_SUBJECT_MAX = 8192 };

struct naive_pairs {
    struct pair items[NAIVE_PAIRS_MAX];
    size_t n;
};

/* A request as it was made, and the facts that it became. */
struct naive {
    struct arena *arena;
    uint64_t random;
    struct naive_pairs headers, arguments, cookies, claims;
    struct str locale;
    struct expr_facts facts;
};

/* xorshift64: the same seed gives the same run. */
static inline uint64_t naive_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline struct str naive_string(const json_t *value)
{
    return (struct str){json_string_value(value), json_string_length(value)};
}

static inline bool naive_is(const json_t *object, const char *member, const char *value)
{
    return str_eq(naive_string(json_object_get(object, member)), str_of(value));
}

static inline char *naive_take(struct naive *n, size_t len)
{
    char *p = arena_take_bytes(n->arena, len);

    GUARANTEE(p != NULL);
    return p;
}

static inline struct str naive_join(struct naive *n, struct str a, struct str b)
{
    char *p = naive_take(n, a.len + b.len);
    struct buf out;

    buf_init(&out, p, a.len + b.len);
    buf_put(&out, a);
    buf_put(&out, b);
    return buf_str(&out);
}

/* ---- values ---- */

static inline void naive_add(struct naive_pairs *to, struct str name, struct str value)
{
    if (to->n < NAIVE_PAIRS_MAX)
        to->items[to->n++] = (struct pair){name, value};
}

/* Those of from with that name, or, without one, all its names. */
static inline void naive_pick(const struct naive_pairs *from, const struct str *name, bool readable, struct naive_pairs *out)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct pair *p = &from->items[i];

        if (readable && header_name_reserved(p->name))
            continue;
        if (name == NULL)
            naive_add(out, STR_NONE, p->name);
        else if (readable ? str_eq_nocase(p->name, *name) : str_eq(p->name, *name))
            naive_add(out, STR_NONE, p->value);
    }
}

static inline struct str naive_first_header(const struct naive *n, const char *name)
{
    for (size_t i = 0; i < n->headers.n; i++)
        if (str_eq(n->headers.items[i].name, str_of(name)))
            return n->headers.items[i].value;
    return STR_NONE;
}

static inline struct str naive_forwarded_for(struct naive *n)
{
    struct str all = STR_NONE;
    bool first = true;

    for (size_t i = 0; i < n->headers.n; i++) {
        if (!str_eq(n->headers.items[i].name, STR("x-forwarded-for")))
            continue;
        if (!first)
            all = naive_join(n, all, STR(", "));
        all = naive_join(n, all, n->headers.items[i].value);
        first = false;
    }
    return all;
}

static inline struct str naive_full_uri(struct naive *n)
{
    struct str all = n->facts.viewer.ssl ? STR("https://") : STR("http://");
    bool v6 = str_find_byte(n->facts.host, ':') != SIZE_MAX;

    all = naive_join(n, all, v6 ? STR("[") : STR_NONE);
    all = naive_join(n, all, n->facts.host);
    all = naive_join(n, all, v6 ? STR("]") : STR_NONE);
    return naive_join(n, all, n->facts.uri);
}

/* The texts that are one and never missing, and where they are kept. */
static inline struct str *naive_plain(struct naive *n, struct str field)
{
    struct expr_facts *f = &n->facts;
    const struct {
        const char *name;
        struct str *text;
    } plain[] = {
        {"http.host", &f->host},
        {"http.request.method", &f->method},
        {"http.request.version", &f->viewer.http_version},
        {"http.request.uri", &f->uri},
        {"http.request.uri.path", &f->path},
        {"ip.src.country", &f->viewer.country},
        {"ip.src.continent", &f->viewer.continent},
        {"tls.client.ja3", &f->viewer.ja3},
        {"tls.client.ja4", &f->viewer.ja4},
        {"tls.client.cert.subject", &f->viewer.cert.subject},
        {"tls.client.cert.issuer", &f->viewer.cert.issuer},
        {"tls.client.cert.serial", &f->viewer.cert.serial},
        {"tls.client.cert.sha256", &f->viewer.cert.sha256},
        {"edge.locale", &n->locale},
    };

    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (str_eq(field, str_of(plain[i].name)))
            return plain[i].text;
    return NULL;
}

static inline void naive_texts(struct naive *n, const json_t *leaf, struct naive_pairs *out)
{
    struct str field = naive_string(json_object_get(leaf, "field")), key = naive_string(json_object_get(leaf, "key"));
    const struct str *plain = naive_plain(n, field);

    out->n = 0;
    if (plain != NULL)
        naive_add(out, STR_NONE, *plain);
    else if (naive_is(leaf, "field", "http.request.uri.query"))
        naive_add(out, STR_NONE, n->facts.query);
    else if (naive_is(leaf, "field", "http.request.full_uri"))
        naive_add(out, STR_NONE, naive_full_uri(n));
    else if (naive_is(leaf, "field", "http.user_agent"))
        naive_add(out, STR_NONE, naive_first_header(n, "user-agent"));
    else if (naive_is(leaf, "field", "http.referer"))
        naive_add(out, STR_NONE, naive_first_header(n, "referer"));
    else if (naive_is(leaf, "field", "http.x_forwarded_for"))
        naive_add(out, STR_NONE, naive_forwarded_for(n));
    else if (naive_is(leaf, "field", "http.request.headers"))
        naive_pick(&n->headers, &key, true, out);
    else if (naive_is(leaf, "field", "http.request.headers.names"))
        naive_pick(&n->headers, NULL, true, out);
    else if (naive_is(leaf, "field", "http.request.uri.args"))
        naive_pick(&n->arguments, &key, false, out);
    else if (naive_is(leaf, "field", "http.request.uri.args.names"))
        naive_pick(&n->arguments, NULL, false, out);
    else if (naive_is(leaf, "field", "http.request.cookies"))
        naive_pick(&n->cookies, &key, false, out);
    else
        naive_pick(&n->claims, &key, false, out);
}

/* ---- conditions ---- */

static inline enum match naive_not(enum match m)
{
    if (m == MATCH_ERROR)
        return m;
    return m == MATCH_YES ? MATCH_NO : MATCH_YES;
}

static inline enum match naive_match(bool yes)
{
    return yes ? MATCH_YES : MATCH_NO;
}

/* By a table of which beginnings of text the wildcard's beginnings reach. */
static inline bool naive_wildcard(struct naive *n, struct str text, struct str w, bool strict)
{
    char *reached = naive_take(n, text.len + 1);

    memset(reached, 0, text.len + 1);
    reached[0] = 1;
    for (size_t i = 0; i < w.len; i++) {
        bool star = w.p[i] == '*';
        char c;

        i += w.p[i] == '\\';
        c = w.p[i];
        /* A star reaches on from where it is; a byte moves each place by one, so they are gone through backwards. */
        for (size_t j = 1; star && j <= text.len; j++)
            reached[j] = reached[j] || reached[j - 1];
        for (size_t j = text.len + 1; !star && j-- > 0;)
            reached[j] = j > 0 && reached[j - 1] &&
                         (strict ? text.p[j - 1] == c : ascii_lower(text.p[j - 1]) == ascii_lower(c));
    }
    return reached[text.len] != 0;
}

static inline bool naive_contains(struct str text, struct str part)
{
    for (size_t i = 0; i + part.len <= text.len; i++)
        if (part.len == 0 || memcmp(text.p + i, part.p, part.len) == 0)
            return true;
    return false;
}

/* Of regular expressions only those that are plain text: naive_knows looks. */
static inline enum match naive_text(struct naive *n, const json_t *leaf, struct str text, struct str literal)
{
    if (naive_is(leaf, "operator", "contains"))
        return naive_match(naive_contains(text, literal));
    if (naive_is(leaf, "operator", "starts_with"))
        return naive_match(str_eq(str_sub(text, 0, literal.len), literal));
    if (naive_is(leaf, "operator", "ends_with"))
        return naive_match(text.len >= literal.len && str_eq(str_sub(text, text.len - literal.len, text.len), literal));
    if (naive_is(leaf, "operator", "wildcard") || naive_is(leaf, "operator", "strict_wildcard"))
        return naive_match(naive_wildcard(n, text, literal, naive_is(leaf, "operator", "strict_wildcard")));
    if (naive_is(leaf, "operator", "matches"))
        return text.len > NAIVE_REGEX_SUBJECT_MAX || !str_is_utf8(text) ? MATCH_ERROR : naive_match(naive_contains(text, literal));
    return naive_match(str_eq(text, literal));
}

static inline enum match naive_any_text(struct naive *n, const json_t *leaf, struct str literal)
{
    enum match out = MATCH_NO;
    struct naive_pairs texts;

    naive_texts(n, leaf, &texts);
    for (size_t i = 0; i < texts.n; i++) {
        enum match one = naive_text(n, leaf, texts.items[i].value, literal);

        if (one == MATCH_YES || out == MATCH_NO)
            out = one;
        if (out == MATCH_YES)
            break;
    }
    return out;
}

static inline bool naive_address(const struct expr_facts *f, struct str literal)
{
    size_t dots = str_find(literal, STR(".."));
    struct addr_range r;
    bool v4;

    if (dots == SIZE_MAX)
        GUARANTEE(addr_parse_cidr(literal, &r));
    else
        GUARANTEE(addr_parse(str_sub(literal, 0, dots), &r.first) &&
                  addr_parse(str_sub(literal, dots + 2, literal.len), &r.last));
    v4 = addr_is_v4(&r.first) && addr_is_v4(&r.last);
    return f->has_ip && v4 == addr_is_v4(&f->ip) && memcmp(f->ip.b, r.first.b, 16) >= 0 && memcmp(f->ip.b, r.last.b, 16) <= 0;
}

static inline bool naive_number(const struct expr_facts *f, const json_t *leaf, const json_t *value)
{
    int64_t number = f->viewer.asnum, first, last;
    char *end;

    if (!f->viewer.has_asnum)
        return false;
    first = last = json_integer_value(value);
    if (json_is_string(value)) {
        first = strtoll(json_string_value(value), &end, 10);
        last = strtoll(end + 2, NULL, 10);
    }
    if (naive_is(leaf, "operator", "lt"))
        return number < first;
    if (naive_is(leaf, "operator", "le"))
        return number <= first;
    if (naive_is(leaf, "operator", "gt"))
        return number > first;
    if (naive_is(leaf, "operator", "ge"))
        return number >= first;
    return number >= first && number <= last;
}

static inline bool naive_truth(const struct expr_facts *f, const json_t *leaf)
{
    if (naive_is(leaf, "field", "ssl"))
        return f->viewer.ssl;
    if (naive_is(leaf, "field", "tls.client.cert.present"))
        return f->viewer.cert.present;
    return naive_is(leaf, "field", "tls.client.cert.verified") ? f->viewer.cert.verified : f->verified_bot;
}

static inline bool naive_signal(const struct expr_facts *f, struct str name)
{
    for (size_t i = 0; i < expr_n_signals(); i++)
        if (str_eq(name, str_of(expr_signal_name(i))))
            return (expr_facts_signals(f) >> i & 1) != 0;
    return false;
}

static inline enum match naive_literal(struct naive *n, const json_t *leaf, const json_t *value)
{
    if (naive_is(leaf, "field", "ip.src"))
        return naive_match(naive_address(&n->facts, naive_string(value)));
    if (naive_is(leaf, "field", "ip.src.asnum"))
        return naive_match(naive_number(&n->facts, leaf, value));
    if (json_is_boolean(value))
        return naive_match(naive_truth(&n->facts, leaf) == json_is_true(value));
    if (naive_is(leaf, "field", "client.signals"))
        return naive_match(naive_signal(&n->facts, naive_string(value)));
    return naive_any_text(n, leaf, naive_string(value));
}

static inline enum match naive_leaf(struct naive *n, const json_t *leaf)
{
    const json_t *value = json_object_get(leaf, "value"), *item;
    enum match out = MATCH_NO;
    size_t i;

    if (!json_is_array(value))
        out = naive_literal(n, leaf, value);
    json_array_foreach(value, i, item) if (naive_literal(n, leaf, item) == MATCH_YES) out = MATCH_YES;
    return naive_is(leaf, "operator", "ne") || naive_is(leaf, "operator", "not_in") ? naive_not(out) : out;
}

static inline enum match naive_answer(struct naive *n, const json_t *node)
{
    const json_t *rules = json_object_get(node, "rules"), *rule;
    bool all = naive_is(node, "combinator", "and"), has[3] = {false};
    enum match out = naive_match(all);
    size_t i;

    if (rules == NULL)
        return naive_leaf(n, node);
    json_array_foreach(rules, i, rule) has[naive_answer(n, rule)] = true;
    if (has[MATCH_ERROR])
        out = MATCH_ERROR;
    if (has[naive_match(!all)])
        out = naive_match(!all);
    return json_is_true(json_object_get(node, "not")) ? naive_not(out) : out;
}

/* Whether no regular expression of it is more than plain text. */
static inline bool naive_knows(const json_t *node)
{
    const json_t *rules = json_object_get(node, "rules"), *rule;
    struct str pattern = naive_string(json_object_get(node, "value"));
    bool known = true;
    size_t i;

    json_array_foreach(rules, i, rule) known = known && naive_knows(rule);
    for (i = 0; naive_is(node, "operator", "matches") && i < pattern.len; i++)
        known = known && (ascii_is_alpha(pattern.p[i]) || ascii_is_digit(pattern.p[i]));
    return known;
}

#endif
