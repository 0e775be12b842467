/* client.signals: what the headers and the connection hint about a client, one small function a row of signals.def. */
#include "common/expr/values_priv.h"

enum { SCANNED_MAX = 512 };

/* Kinds of words, as bits. */
enum kind { KIND_OTHER = 0, KIND_TOOL = 1, KIND_SCANNER = 2, KIND_CRAWLER = 4, KIND_HEADLESS = 8 };
enum place { BEGINS, ENDS };

struct word {
    enum kind kind;
    enum place place;
    struct str text;
};

struct browser {
    struct str token;
    unsigned oldest, fetch_metadata, client_hints; /* versions: major * 100 + minor */
};

static const struct word words[] = {
#define USER_AGENT_WORD(kind, place, word) {KIND_##kind, place, {(word), sizeof(word) - 1}},
#define BROWSER(id, token, oldest, fetch_metadata, client_hints)
#include "schemas/user_agents.def"
#undef USER_AGENT_WORD
#undef BROWSER
};

static const struct browser browsers[] = {
#define USER_AGENT_WORD(kind, place, word)
#define BROWSER(id, token, oldest, fetch_metadata, client_hints)                                                       \
    {{(token), sizeof(token) - 1}, (oldest), (fetch_metadata), (client_hints)},
#include "schemas/user_agents.def"
#undef USER_AGENT_WORD
#undef BROWSER
};

/* What the rows' functions look at. */
struct client {
    const struct expr_facts *facts;
    char lower[SCANNED_MAX];
    struct str user_agent; /* lower case, cut */
    unsigned kinds;
    const struct browser *browser; /* NULL: claims to be none, or says itself that it is no person's */
    unsigned version;              /* major * 100 + minor */
};

static bool find_header(const struct client *c, struct str name, struct str *value)
{
    return c->facts->headers != NULL && headers_get(c->facts->headers, name, value);
}

static bool has_header(const struct client *c, struct str name)
{
    struct str value;

    return find_header(c, name, &value);
}

static bool names(const struct client *c, struct str word)
{
    return str_find(c->user_agent, word) != SIZE_MAX;
}

/* ---- reading a User-Agent ---- */

static bool is_piece_byte(char c)
{
    return (c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '.' || c == '_' || c == '-';
}

static enum kind kind_of(struct str piece)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        const struct word *w = &words[i];

        if (w->place == BEGINS ? w->text.p[0] == piece.p[0] && str_starts(piece, w->text) : str_ends(piece, w->text))
            return w->kind;
    }
    return KIND_OTHER;
}

static unsigned kinds_of(struct str user_agent)
{
    unsigned kinds = 0;

    for (size_t i = 0; i < user_agent.len;) {
        size_t from = i;

        while (i < user_agent.len && is_piece_byte(user_agent.p[i]))
            i++;
        if (i > from)
            kinds |= kind_of(str_sub(user_agent, from, i));
        else
            i++;
    }
    return kinds;
}

/* "16.4.1" is 1604, "99" 9900: what is behind the second dot does not count, and four digits are more than any has. */
static unsigned read_version(struct str s)
{
    unsigned major = 0, minor = 0;
    size_t i = 0;

    for (; i < s.len && i < 4 && ascii_is_digit(s.p[i]); i++)
        major = major * 10 + (unsigned)(s.p[i] - '0');
    if (i + 1 < s.len && s.p[i] == '.' && ascii_is_digit(s.p[i + 1])) {
        minor = (unsigned)(s.p[i + 1] - '0');
        if (i + 2 < s.len && ascii_is_digit(s.p[i + 2]))
            minor = minor * 10 + (unsigned)(s.p[i + 2] - '0');
    }
    return major * 100 + minor;
}

/* Where word stands behind a blank, so that "headlesschrome/" is no "chrome/". */
static size_t find_product(struct str user_agent, struct str word)
{
    for (size_t from = 0;;) {
        size_t at = str_find(str_sub(user_agent, from, user_agent.len), word);

        if (at == SIZE_MAX)
            return SIZE_MAX;
        if (from + at > 0 && user_agent.p[from + at - 1] == ' ')
            return from + at;
        from += at + 1;
    }
}

static void read_browser(struct client *c)
{
    if (!str_starts(c->user_agent, STR("mozilla/")) || c->kinds != 0)
        return;
    for (size_t i = 0; i < sizeof(browsers) / sizeof(browsers[0]); i++) {
        struct str token = browsers[i].token;
        size_t at = find_product(c->user_agent, token);

        if (at == SIZE_MAX || (str_eq(token, STR("version/")) && !names(c, STR(" safari/"))))
            continue;
        c->browser = &browsers[i];
        c->version = read_version(str_sub(c->user_agent, at + token.len, c->user_agent.len));
        return;
    }
}

static void read_client(const struct expr_facts *f, struct client *c)
{
    struct str sent;

    c->facts = f;
    c->user_agent = STR_NONE;
    c->kinds = 0;
    c->browser = NULL;
    c->version = 0;
    if (!find_header(c, STR("user-agent"), &sent))
        return;
    sent = str_sub(sent, 0, SCANNED_MAX);
    for (size_t i = 0; i < sent.len; i++)
        c->lower[i] = ascii_lower(sent.p[i]);
    c->user_agent = (struct str){c->lower, sent.len};
    c->kinds = kinds_of(c->user_agent);
    read_browser(c);
}

/* ---- systems ---- */

enum system { SYSTEM_UNKNOWN, SYSTEM_WINDOWS, SYSTEM_MAC, SYSTEM_CHROME_OS, SYSTEM_ANDROID, SYSTEM_IOS, SYSTEM_LINUX };

struct system_name {
    struct str text;
    enum system system;
};

/* In this order: Android names Linux, iOS names Mac OS. */
static const struct system_name user_agent_systems[] = {
    {{"windows nt", 10}, SYSTEM_WINDOWS}, {{"android", 7}, SYSTEM_ANDROID}, {{"iphone", 6}, SYSTEM_IOS},
    {{"ipad", 4}, SYSTEM_IOS},            {{"cros ", 5}, SYSTEM_CHROME_OS}, {{"macintosh", 9}, SYSTEM_MAC},
    {{"linux", 5}, SYSTEM_LINUX},
};

static const struct system_name hinted_systems[] = {
    {{"\"Windows\"", 9}, SYSTEM_WINDOWS},    {{"\"Android\"", 9}, SYSTEM_ANDROID},
    {{"\"iOS\"", 5}, SYSTEM_IOS},            {{"\"Chrome OS\"", 11}, SYSTEM_CHROME_OS},
    {{"\"macOS\"", 7}, SYSTEM_MAC},          {{"\"Chromium OS\"", 13}, SYSTEM_CHROME_OS},
    {{"\"Linux\"", 7}, SYSTEM_LINUX},
};

static enum system system_of_user_agent(const struct client *c)
{
    for (size_t i = 0; i < sizeof(user_agent_systems) / sizeof(user_agent_systems[0]); i++)
        if (names(c, user_agent_systems[i].text))
            return user_agent_systems[i].system;
    return SYSTEM_UNKNOWN;
}

static enum system hinted_system(const struct client *c)
{
    struct str value = STR_NONE;

    if (!find_header(c, STR("sec-ch-ua-platform"), &value))
        return SYSTEM_UNKNOWN;
    for (size_t i = 0; i < sizeof(hinted_systems) / sizeof(hinted_systems[0]); i++)
        if (str_eq_nocase(value, hinted_systems[i].text))
            return hinted_systems[i].system;
    return SYSTEM_UNKNOWN;
}

/* ---- the rows ---- */

static bool is_NO_USER_AGENT(const struct client *c)
{
    return c->user_agent.len == 0;
}

static bool is_TOOL_USER_AGENT(const struct client *c)
{
    return (c->kinds & KIND_TOOL) != 0;
}

static bool is_SCANNER_USER_AGENT(const struct client *c)
{
    return (c->kinds & KIND_SCANNER) != 0;
}

static bool is_CRAWLER_USER_AGENT(const struct client *c)
{
    return (c->kinds & KIND_CRAWLER) != 0;
}

static bool is_HEADLESS_USER_AGENT(const struct client *c)
{
    return (c->kinds & KIND_HEADLESS) != 0;
}

static bool is_OUTDATED_BROWSER(const struct client *c)
{
    return c->browser != NULL && c->version < c->browser->oldest;
}

static bool is_NO_ACCEPT(const struct client *c)
{
    return !has_header(c, STR("accept"));
}

static bool is_NO_ACCEPT_LANGUAGE(const struct client *c)
{
    return c->browser != NULL && !has_header(c, STR("accept-language"));
}

static bool is_NO_ACCEPT_ENCODING(const struct client *c)
{
    return c->browser != NULL && !has_header(c, STR("accept-encoding"));
}

static bool is_PLATFORM_MISMATCH(const struct client *c)
{
    enum system said = system_of_user_agent(c), hinted = hinted_system(c);

    return said != SYSTEM_UNKNOWN && hinted != SYSTEM_UNKNOWN && said != hinted;
}

static bool is_PLAIN_HTTP(const struct client *c)
{
    return !c->facts->viewer.ssl;
}

/* Whether the browser always sends what it has since that version (0: never) on an encrypted connection. */
static bool always_sends(const struct client *c, unsigned since)
{
    return c->facts->viewer.ssl && since != 0 && c->version >= since;
}

static bool is_NO_FETCH_METADATA(const struct client *c)
{
    return c->browser != NULL && always_sends(c, c->browser->fetch_metadata) && !has_header(c, STR("sec-fetch-site"));
}

/* A page inside an Android app ("; wv)") sends no hints. */
static bool is_NO_CLIENT_HINTS(const struct client *c)
{
    return c->browser != NULL && always_sends(c, c->browser->client_hints) && !has_header(c, STR("sec-ch-ua")) &&
           !names(c, STR("; wv)"));
}

static bool is_HTTP_1_0(const struct client *c)
{
    return str_eq(c->facts->viewer.http_version, STR("1.0"));
}

/* Every browser of the table that is not outdated speaks HTTP/2 where the connection is encrypted. */
static bool is_BROWSER_HTTP_1(const struct client *c)
{
    return c->browser != NULL && c->version >= c->browser->oldest && str_starts(c->facts->viewer.http_version, STR("1."));
}

/* ---- JA4: protocol, version (2), d or i (server name), number of ciphers (2) and extensions (2), ALPN (2) ---- */

static bool ja4_part_is(const struct client *c, size_t at, struct str part)
{
    return str_eq(str_sub(c->facts->viewer.ja4, at, at + part.len), part);
}

static bool is_JA4_OLD_TLS(const struct client *c)
{
    return ja4_part_is(c, 1, STR("11")) || ja4_part_is(c, 1, STR("10")) || ja4_part_is(c, 1, STR("s3")) ||
           ja4_part_is(c, 1, STR("s2"));
}

static bool is_JA4_NO_ALPN(const struct client *c)
{
    return c->browser != NULL && ja4_part_is(c, 8, STR("00"));
}

static bool is_JA4_NO_SNI(const struct client *c)
{
    return ja4_part_is(c, 3, STR("i"));
}

uint32_t signals_of(const struct expr_facts *f)
{
    static bool (*const holds[SIGNAL_N])(const struct client *) = {
#define SIGNAL_ROW(id, name, source, meaning) [SIGNAL_##id] = is_##id,
#include "schemas/signals.def"
#undef SIGNAL_ROW
    };
    struct client c;
    uint32_t signals = 0;

    read_client(f, &c);
    for (size_t i = 0; i < SIGNAL_N; i++)
        signals |= (uint32_t)holds[i](&c) << i;
    return signals;
}
