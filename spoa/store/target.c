/* VALKEY_URL in parts. No error quotes anything of the text: what looks like a host may be a password that lost its place. */
#include "spoa/store/target.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <sys/un.h>

#include "common/base/codec.h"
#include "common/base/parse.h"

enum {
    URL_MAX = 2048,
    DB_MAX = 65535,
    DIAL_TIMEOUT_MAX_MS = 60000,
    UNIX_PATH_MAX = sizeof(((struct sockaddr_un *)0)->sun_path)
};

/* The pieces of the text, not decoded. */
struct parts {
    struct str userinfo, place, path, query; /* place: "host:port" of TCP */
};

static bool wrong(struct err *e, const char *text)
{
    return err_set(e, ERR_BAD_VALUE, "", "%s", text);
}

static bool is_visible(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    return true;
}

static bool split_scheme(struct str *rest, bool *is_unix, struct err *e)
{
    const struct {
        struct str scheme;
        bool is_unix, is_tls;
    } known[] = {
        {STR("redis://"), false, false}, {STR("valkey://"), false, false}, {STR("unix://"), true, false},
        {STR("rediss://"), false, true}, {STR("valkeys://"), false, true},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (!str_eq_nocase(str_sub(*rest, 0, known[i].scheme.len), known[i].scheme))
            continue;
        if (known[i].is_tls)
            return wrong(e, "asks for TLS, which this build does not speak to Valkey: write redis:// and keep the way "
                            "there private");
        *is_unix = known[i].is_unix;
        *rest = str_sub(*rest, known[i].scheme.len, rest->len);
        return true;
    }
    return wrong(e, "must begin with redis://, valkey:// or unix://, as in \"redis://127.0.0.1:6379\"");
}

/* Where the authority ends: at the first of "/?#". */
static size_t authority_len(struct str s)
{
    size_t n = 0;

    while (n < s.len && memchr("/?#", s.p[n], 3) == NULL)
        n++;
    return n;
}

static bool split(struct str rest, struct parts *p, struct err *e)
{
    const size_t end = authority_len(rest);
    struct str authority = str_sub(rest, 0, end), after = str_sub(rest, end, rest.len);
    const size_t at = str_find_byte(authority, '@'), question = str_find_byte(after, '?');

    *p = (struct parts){.place = authority};
    if (at != SIZE_MAX) {
        p->userinfo = str_sub(authority, 0, at);
        p->place = str_sub(authority, at + 1, authority.len);
    }
    if (str_find_byte(p->place, '@') != SIZE_MAX || (at == SIZE_MAX && str_find_byte(after, '@') != SIZE_MAX))
        return wrong(e, "has a user or password with one of @ / ? # in it: write %40, %2F, %3F, %23 for them");
    if (str_find_byte(after, '#') != SIZE_MAX)
        return wrong(e, "must not have a fragment; a # in a user, password or path is written %23");
    p->path = str_sub(after, 0, question == SIZE_MAX ? after.len : question);
    if (question != SIZE_MAX)
        p->query = str_sub(after, question + 1, after.len);
    return true;
}

/* Into a C string; no room, bad escapes and NUL bytes are refused. */
static bool decode(struct str in, char *out, size_t cap)
{
    char plain[URL_MAX];
    size_t len = 0;
    bool ok = in.len <= sizeof(plain) && codec_percent_decode(in, false, plain, &len) && len < cap &&
              memchr(plain, '\0', len) == NULL;

    if (ok) {
        memcpy(out, plain, len);
        out[len] = '\0';
    }
    OPENSSL_cleanse(plain, sizeof(plain));
    return ok;
}

static bool read_userinfo(struct str userinfo, struct valkey_target *t, struct err *e)
{
    const size_t colon = str_find_byte(userinfo, ':');
    const struct str user = str_sub(userinfo, 0, colon == SIZE_MAX ? userinfo.len : colon);
    const struct str password = colon == SIZE_MAX ? STR_NONE : str_sub(userinfo, colon + 1, userinfo.len);

    if (!decode(user, t->user, sizeof(t->user)))
        return err_set(e, ERR_BAD_VALUE, "", "has an unreadable user: at most %zu bytes, special ones as %%XX",
                       sizeof(t->user) - 1);
    if (!decode(password, t->password, sizeof(t->password)))
        return err_set(e, ERR_BAD_VALUE, "", "has an unreadable password: at most %zu bytes, special ones as %%XX",
                       sizeof(t->password) - 1);
    return true;
}

/* A name, or an IPv4 address: what ends in a number must be one. */
static bool is_name(const char *host)
{
    const struct str s = str_of(host);
    const char *label = strrchr(host, '.');
    struct in_addr v4;

    for (size_t i = 0; i < s.len; i++)
        if (!ascii_is_alpha(s.p[i]) && !ascii_is_digit(s.p[i]) && memchr("-._", s.p[i], 3) == NULL)
            return false;
    if (s.len == 0 || s.len > 253 || s.p[0] == '.' || str_find(s, STR("..")) != SIZE_MAX)
        return false;
    label = label == NULL ? host : label + 1;
    if (*label == '\0' || strspn(label, "0123456789") != strlen(label))
        return true;
    return inet_pton(AF_INET, host, &v4) == 1;
}

static bool read_place(struct str place, struct valkey_target *t, struct err *e)
{
    const bool is_v6 = place.len > 0 && place.p[0] == '[';
    const size_t close = str_find_byte(place, ']'),
                 colon = is_v6 && close != SIZE_MAX ? close + 1 : str_find_byte(place, ':');
    const struct str host = is_v6 ? str_sub(place, 1, close) : str_sub(place, 0, colon);
    struct in6_addr v6;
    struct err unquoted = {0};
    uint64_t port = 6379;

    if (str_find_byte(place, ',') != SIZE_MAX)
        return wrong(e, "names several hosts, but this build speaks to one Valkey, not to a cluster: write one host");
    if (host.len == 0)
        return wrong(e, "has no host, as in \"redis://127.0.0.1:6379\"");
    if (host.len >= sizeof(t->host))
        return wrong(e, "has a host that is too long: at most 253 bytes");
    memcpy(t->host, host.p, host.len);
    t->host[host.len] = '\0';
    if (is_v6 ? close == SIZE_MAX || inet_pton(AF_INET6, t->host, &v6) != 1 : !is_name(t->host))
        return wrong(e, "has an unreadable host: a name, an IPv4 address, or an IPv6 address in brackets; then "
                        "user:password stand before an @");
    if (colon < place.len && (place.p[colon] != ':' ||
                              !parse_u64(str_sub(place, colon + 1, place.len), 1, UINT16_MAX, &port, "", &unquoted)))
        return wrong(
            e, "has an unreadable port: a number from 1 to 65535 after the host; then user:password stand before an @");
    t->port = (uint16_t)port;
    return true;
}

static bool read_db(struct str text, struct valkey_target *t, struct err *e)
{
    struct err unquoted = {0};
    uint64_t db;

    if (!parse_u64(text, 0, DB_MAX, &db, "", &unquoted))
        return err_set(
            e, ERR_BAD_VALUE, "",
            "has an unreadable database: a number from 0 to %d, as in \"redis://host/1\" or \"unix:///path?db=1\"",
            DB_MAX);
    t->db = (unsigned)db;
    return true;
}

static bool read_dial_timeout(struct str text, struct valkey_target *t, struct err *e)
{
    struct err unquoted = {0};
    uint64_t ms;

    if (!parse_duration_ms(text, &ms, "", &unquoted) || ms == 0 || ms > DIAL_TIMEOUT_MAX_MS)
        return wrong(e, "has an unreadable dial_timeout: a duration from 1ms to 1m, as in \"?dial_timeout=500ms\"");
    t->dial_timeout_ms = ms;
    return true;
}

static bool read_query(struct str query, struct valkey_target *t, struct err *e)
{
    const struct str dial = STR("dial_timeout="), db = STR("db=");
    bool dial_seen = false, db_seen = false;

    while (query.len > 0) {
        const size_t amp = str_find_byte(query, '&');
        const struct str one = str_sub(query, 0, amp == SIZE_MAX ? query.len : amp);

        query = amp == SIZE_MAX ? STR_NONE : str_sub(query, amp + 1, query.len);
        if (str_starts(one, dial) && !dial_seen) {
            dial_seen = true;
            if (!read_dial_timeout(str_sub(one, dial.len, one.len), t, e))
                return false;
        } else if (t->is_unix && str_starts(one, db) && !db_seen) {
            db_seen = true;
            if (!read_db(str_sub(one, db.len, one.len), t, e))
                return false;
        } else {
            return wrong(e, t->is_unix
                                ? "has an unknown or repeated parameter: there are ?dial_timeout= and ?db=, each once"
                                : "has an unknown or repeated parameter: there is ?dial_timeout= once; the database "
                                  "stands in the path");
        }
    }
    return true;
}

static bool read_unix(const struct parts *p, struct valkey_target *t, struct err *e)
{
    if (p->place.len > 0 || p->path.len < 2)
        return wrong(e, "needs the absolute path of a socket, as in \"unix:///run/valkey/valkey.sock\"");
    if (!decode(p->path, t->host, UNIX_PATH_MAX))
        return err_set(e, ERR_BAD_VALUE, "", "has an unreadable path: at most %d bytes, special ones as %%XX",
                       (int)UNIX_PATH_MAX - 1);
    return true;
}

static bool read_tcp(const struct parts *p, struct valkey_target *t, struct err *e)
{
    const struct str db = p->path.len > 0 ? str_sub(p->path, 1, p->path.len) : STR_NONE;

    return read_place(p->place, t, e) && (db.len == 0 || read_db(db, t, e));
}

bool valkey_target_parse(const char *url, struct valkey_target *out, struct err *e)
{
    struct valkey_target t = {.dial_timeout_ms = VALKEY_DIAL_TIMEOUT_MS};
    struct str rest = str_of(url);
    struct parts p;
    bool ok;

    if (rest.len > URL_MAX || !is_visible(rest))
        return err_set(e, ERR_BAD_VALUE, "", "must be at most %d bytes of visible ASCII; others are written %%XX",
                       URL_MAX);
    ok = split_scheme(&rest, &t.is_unix, e) && split(rest, &p, e) && read_userinfo(p.userinfo, &t, e) &&
         (t.is_unix ? read_unix(&p, &t, e) : read_tcp(&p, &t, e)) && read_query(p.query, &t, e);
    if (ok)
        *out = t;
    valkey_target_release(&t);
    return ok;
}

void valkey_target_release(struct valkey_target *t)
{
    OPENSSL_cleanse(t->user, sizeof(t->user));
    OPENSSL_cleanse(t->password, sizeof(t->password));
}

const char *valkey_target_name(const struct valkey_target *t, char *buffer, size_t size)
{
    if (t->is_unix)
        (void)snprintf(buffer, size, "%s", t->host);
    else
        (void)snprintf(buffer, size, strchr(t->host, ':') == NULL ? "%s:%u" : "[%s]:%u", t->host, (unsigned)t->port);
    return buffer;
}
