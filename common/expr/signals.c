/* client.signals: what the headers and the connection hint about a client, one small function a row of signals.def. */
#include "common/expr/signals_priv.h"

static bool has_header(const struct client *c, enum wanted w)
{
    return c->headers[w] != NULL;
}

static bool names(const struct client *c, struct str word)
{
    return str_find(c->user_agent, word) != SIZE_MAX;
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
    static const bool first_bytes[256] = {['w'] = true, ['a'] = true, ['i'] = true, ['c'] = true, ['m'] = true, ['l'] = true};
    size_t found = sizeof(user_agent_systems) / sizeof(user_agent_systems[0]);

    for (size_t at = 0; at < c->user_agent.len; at++) {
        if (!first_bytes[(unsigned char)c->user_agent.p[at]])
            continue;
        struct str rest = str_sub(c->user_agent, at, c->user_agent.len);
        for (size_t i = 0; i < found; i++)
            if (begins_with(rest, user_agent_systems[i].text))
                found = i;
    }
    return found < sizeof(user_agent_systems) / sizeof(user_agent_systems[0]) ? user_agent_systems[found].system : SYSTEM_UNKNOWN;
}

static enum system hinted_system(const struct client *c)
{
    if (!has_header(c, SEC_CH_UA_PLATFORM))
        return SYSTEM_UNKNOWN;
    for (size_t i = 0; i < sizeof(hinted_systems) / sizeof(hinted_systems[0]); i++)
        if (str_eq_nocase(c->headers[SEC_CH_UA_PLATFORM]->value, hinted_systems[i].text))
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
    return !has_header(c, ACCEPT);
}

static bool is_NO_ACCEPT_LANGUAGE(const struct client *c)
{
    return c->browser != NULL && !has_header(c, ACCEPT_LANGUAGE);
}

static bool is_NO_ACCEPT_ENCODING(const struct client *c)
{
    return c->browser != NULL && !has_header(c, ACCEPT_ENCODING);
}

static bool is_PLATFORM_MISMATCH(const struct client *c)
{
    enum system hinted = hinted_system(c);

    if (hinted == SYSTEM_UNKNOWN)
        return false;
    enum system said = system_of_user_agent(c);
    return said != SYSTEM_UNKNOWN && said != hinted;
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
    return c->browser != NULL && always_sends(c, c->browser->fetch_metadata) && !has_header(c, SEC_FETCH_SITE);
}

/* A page inside an Android app ("; wv)") sends no hints. */
static bool is_NO_CLIENT_HINTS(const struct client *c)
{
    return c->browser != NULL && always_sends(c, c->browser->client_hints) && !has_header(c, SEC_CH_UA) &&
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

    signals_client_read(f, &c);
    for (size_t i = 0; i < SIGNAL_N; i++)
        signals |= (uint32_t)holds[i](&c) << i;
    return signals;
}
