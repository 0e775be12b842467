/* Which HAProxy a binary is. */
#include "spoa/launcher/haproxy_version.h"

#include <stdint.h>

#include "common/base/parse.h"
#include "spoa/launcher/spawn.h"

enum { ANSWER_MAX_BYTES = 2048, ANSWER_TIMEOUT_MS = 10000, NUMBER_MAX = 10000 };

/* Takes a number off the front of *s. */
static bool take_number(struct str *s, unsigned *out)
{
    uint64_t value;
    size_t n = 0;
    struct err e;

    while (n < s->len && ascii_is_digit(s->p[n]))
        n++;
    err_clear(&e);
    if (!parse_u64(str_sub(*s, 0, n), 0, NUMBER_MAX, &value, "", &e))
        return false;
    *s = str_sub(*s, n, s->len);
    *out = (unsigned)value;
    return true;
}

bool haproxy_version_parse(struct str text, struct haproxy_version *out)
{
    /* The name was spelled with a hyphen up to 2.3. */
    const struct str word = STR("Proxy version ");
    const size_t at = str_find(text, word);
    struct haproxy_version v;

    if (!str_starts(text, STR("HA")) || at == SIZE_MAX)
        return false;
    text = str_sub(text, at + word.len, text.len);
    if (!take_number(&text, &v.major) || !str_starts(text, STR(".")))
        return false;
    text = str_sub(text, 1, text.len);
    if (!take_number(&text, &v.minor))
        return false;
    *out = v;
    return true;
}

bool haproxy_version_check(const char *path, char *const envp[], struct err *e)
{
    char name[] = "haproxy", flag[] = "-v", storage[ANSWER_MAX_BYTES];
    char *const argv[] = {name, flag, NULL};
    struct haproxy_version v;
    struct str answer;
    int status;

    if (!spawn_capture(path, argv, envp, ANSWER_TIMEOUT_MS, storage, sizeof(storage), &answer, &status, e))
        return false;
    if (!haproxy_version_parse(answer, &v))
        return err_set(e, ERR_SETTING, "/EDGE_HAPROXY",
                       "EDGE_HAPROXY: %s does not say which HAProxy it is (`%s -v`: \"%.*s\"); name the binary of HAProxy %d.%d or newer", path, path,
                       STR_ARG(str_cut_utf8(answer, 100)), HAPROXY_MAJOR_MIN, HAPROXY_MINOR_MIN);
    if (v.major < HAPROXY_MAJOR_MIN || (v.major == HAPROXY_MAJOR_MIN && v.minor < HAPROXY_MINOR_MIN))
        return err_set(e, ERR_SETTING, "/EDGE_HAPROXY",
                       "EDGE_HAPROXY: %s is HAProxy %u.%u, which is too old: %d.%d or newer is needed", path, v.major,
                       v.minor, HAPROXY_MAJOR_MIN, HAPROXY_MINOR_MIN);
    return true;
}
