/* Near misses: signs and words of other rule languages, and the words to write instead. */
#include "common/expr/hints_priv.h"

struct synonym {
    const char *wrong, *right;
};

/* A longer one before those that it begins with. */
static const struct synonym signs[] = {
    {"===", "eq"}, {"!==", "ne"},     {"==", "eq"},  {"!=", "ne"}, {"<>", "ne"}, {"<=", "le"},
    {">=", "ge"},  {"=~", "matches"}, {"&&", "and"}, {"||", "or"}, {"=", "eq"},  {"<", "lt"},
    {">", "gt"},   {"~", "matches"},  {"!", "not"},  {"&", "and"}, {"|", "or"},
};

static const struct synonym fields[] = {
    {"ip", "ip.src"},
    {"src", "ip.src"},
    {"src.ip", "ip.src"},
    {"client.ip", "ip.src"},
    {"client_ip", "ip.src"},
    {"remote_addr", "ip.src"},
    {"geoip.country", "ip.src.country"},
    {"geoip.continent", "ip.src.continent"},
    {"geoip.asnum", "ip.src.asnum"},
    {"ip.geoip.asnum", "ip.src.asnum"},
    {"asn", "ip.src.asnum"},
    {"ip.asn", "ip.src.asnum"},
    {"ip.src.asn", "ip.src.asnum"},
    {"uri", "http.request.uri"},
    {"url", "http.request.full_uri"},
    {"http.url", "http.request.full_uri"},
    {"header", "http.request.headers"},
    {"http.header", "http.request.headers"},
    {"http.request.header", "http.request.headers"},
    {"cookie", "http.request.cookies"},
    {"http.cookie", "http.request.cookies"},
    {"http.request.cookie", "http.request.cookies"},
    {"arg", "http.request.uri.args"},
    {"param", "http.request.uri.args"},
    {"params", "http.request.uri.args"},
    {"claim", "http.request.jwt.claims"},
    {"jwt", "http.request.jwt.claims"},
    {"referrer", "http.referer"},
    {"useragent", "http.user_agent"},
    {"xff", "http.x_forwarded_for"},
    {"scheme", "ssl"},
    {"https", "ssl"},
    {"tls", "ssl"},
    {"bot", "client.verified_bot"},
    {"cf.client.bot", "client.verified_bot"},
    {"signals", "client.signals"},
    {"locale", "edge.locale"},
};

static const struct synonym operators[] = {
    {"is", "eq"},         {"equal", "eq"},           {"equals", "eq"},        {"like", "wildcard"},
    {"glob", "wildcard"}, {"regex", "matches"},      {"match", "matches"},    {"includes", "contains"},
    {"has", "contains"},  {"prefix", "starts_with"}, {"suffix", "ends_with"}, {"begins_with", "starts_with"},
    {"less", "lt"},       {"greater", "gt"},
};

static const char *find(const struct synonym *rows, size_t n, struct str word)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(word, str_of(rows[i].wrong)))
            return rows[i].right;
    return NULL;
}

const char *hint_field(struct str name)
{
    return find(fields, sizeof(fields) / sizeof(fields[0]), name);
}

const char *hint_operator(struct str name)
{
    return find(operators, sizeof(operators) / sizeof(operators[0]), name);
}

/* The sign at which word has one. */
static const struct synonym *find_sign(struct str word, size_t *at)
{
    for (*at = 0; *at < word.len; ++*at)
        for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
            if (str_starts(str_sub(word, *at, word.len), str_of(signs[i].wrong)))
                return &signs[i];
    return NULL;
}

bool hint_signs(const struct token *word, struct err *e)
{
    struct pos pos = word->pos;
    size_t at;
    const struct synonym *sign = find_sign(word->text, &at);
    enum op op;

    if (sign == NULL)
        return false;
    pos.column += (unsigned)at;
    if (operator_find(str_of(sign->right), &op))
        fail_at(e, pos, ERR_EXPR_UNKNOWN_OPERATOR, "\"%s\" is written as a word: write %s, with blanks around it",
                sign->wrong, sign->right);
    else
        fail_at(e, pos, ERR_EXPR_SYNTAX, "\"%s\" is written as a word: write %s, with blanks around it", sign->wrong,
                sign->right);
    return true;
}

/* Whether word is keyword but for upper and lower case. */
static bool is_misspelt(const struct token *word, const char *keyword, struct err *e)
{
    if (!str_eq_nocase(word->text, str_of(keyword)))
        return false;
    fail_at(e, word->pos, ERR_EXPR_SYNTAX, "\"%.*s\" is written in lower case: write %s", STR_ARG(word->text), keyword);
    return true;
}

bool hint_joint(const struct token *word, struct err *e)
{
    return word->kind == TOKEN_WORD &&
           (hint_signs(word, e) || is_misspelt(word, "and", e) || is_misspelt(word, "or", e));
}

bool hint_condition(const struct token *word, struct err *e)
{
    enum op op;

    if (str_eq(word->text, STR("and")) || str_eq(word->text, STR("or"))) {
        fail_at(e, word->pos, ERR_EXPR_SYNTAX, "a field is missing before %.*s", STR_ARG(word->text));
        return true;
    }
    if (operator_find(word->text, &op)) {
        if (operator_info(op)->call)
            fail_at(e, word->pos, ERR_EXPR_SYNTAX, "%s is written %s(field, \"text\")", operator_info(op)->name,
                    operator_info(op)->name);
        else
            fail_at(e, word->pos, ERR_EXPR_SYNTAX, "a field is missing before %s", operator_info(op)->name);
        return true;
    }
    if (str_eq_nocase(word->text, STR("false"))) {
        fail_at(e, word->pos, ERR_EXPR_SYNTAX, "no expression is false by itself: write not true, or disable the rule");
        return true;
    }
    return is_misspelt(word, "not", e) || is_misspelt(word, "true", e) || is_misspelt(word, "and", e) ||
           is_misspelt(word, "or", e) || hint_signs(word, e);
}
