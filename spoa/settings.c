/* Settings of an edge: one pass over the environment for names, one over the table for values, then what belongs together. */
#include "spoa/settings.h"

#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/parse.h"

enum setting_type {
    TYPE_STR,
    TYPE_LIST,
    TYPE_SECRET,
    TYPE_DURATION,
    TYPE_SIZE,
    TYPE_COUNT,
    TYPE_RATE,
#define SETTING_ENUM(set, words) TYPE_ENUM_##set,
#include "schemas/settings.def"
};

struct row {
    const char *name, *dflt;
    enum setting_type type;
    uint64_t min, max;
    unsigned readers;
    size_t offset; /* of the member */
};

static const struct row rows[] = {
#define SETTING_ROW(member, name, type, dflt, min, max, readers, meaning)                                              \
    {name, dflt, TYPE_##type, min, max, readers, offsetof(struct settings_edge, member)},
#include "schemas/settings.def"
};

static const char *const names[] = {
#define SETTING_ROW(member, name, type, dflt, min, max, readers, meaning) name,
#include "schemas/settings.def"
    NULL};

static const struct {
    const char *name;
    unsigned readers;
    const char *reason;
} refused[] = {
#define SETTING_REFUSED(name, readers, reason) {name, readers, reason},
#include "schemas/settings.def"
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]), N_REFUSED = sizeof(refused) / sizeof(refused[0]) };

/* What a load works on. */
struct load {
    enum settings_use use;
    char *const *envp;
    struct errlist *errors;
    struct settings_edge s;
};

static void fault(struct load *l, const char *name, const char *text)
{
    char path[ERR_PATH_MAX];

    snprintf(path, sizeof(path), "/%s", name);
    errlist_add(l->errors, ERR_SETTING, path, "%s: %s", name, text);
}

const char *settings_env(char *const envp[], const char *name)
{
    const size_t len = strlen(name);

    for (; *envp != NULL; envp++)
        if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=')
            return *envp + len + 1;
    return NULL;
}

/* The words of each ENUM's set. */
static const char *const type_words[] = {
#define SETTING_ENUM(set, words) [TYPE_ENUM_##set] = words,
#include "schemas/settings.def"
};

/* Index of text in "a|b|c", -1 when it is not one of them. */
static int word_index(struct str words, struct str text)
{
    for (int i = 0; words.len > 0; i++) {
        const struct str word = str_sub(words, 0, str_find_byte(words, '|'));

        if (str_eq(word, text))
            return i;
        words = str_sub(words, word.len + 1, words.len);
    }
    return -1;
}

/* Values end up in configurations and log lines. */
static bool read_str(const char *text, const char **out, struct err *e)
{
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return err_set(e, ERR_SETTING, "", "the value contains a control character; write plain text");
    *out = text;
    return true;
}

static bool read_duration(const struct row *r, struct str text, uint64_t *out, struct err *e)
{
    char min[32], max[32];
    uint64_t ms;

    if (!parse_duration_ms(text, &ms, "", e))
        return false;
    if (ms < r->min || ms > r->max) {
        const size_t min_len = parse_render_duration(r->min, min, sizeof(min)),
                     max_len = parse_render_duration(r->max, max, sizeof(max));

        return err_set(e, ERR_SETTING, "", "%.*s is out of range: must be between %.*s and %.*s", STR_ARG(text),
                       (int)min_len, min, (int)max_len, max);
    }
    *out = ms;
    return true;
}

static bool read_size(const struct row *r, struct str text, uint64_t *out, struct err *e)
{
    uint64_t bytes;

    if (!parse_size_bytes(text, &bytes, "", e))
        return false;
    if (bytes < r->min || bytes > r->max)
        return err_set(e, ERR_SETTING, "", "%.*s is out of range: must be between %ju and %ju bytes", STR_ARG(text),
                       (uintmax_t)r->min, (uintmax_t)r->max);
    *out = bytes;
    return true;
}

static bool read_word(const struct row *r, struct str text, int *out, struct err *e)
{
    const char *words = type_words[r->type];
    const int i = word_index(str_of(words), text);

    if (i < 0)
        return err_set(e, ERR_SETTING, "", "\"%.*s\" is not a value of it: must be %s", STR_ARG(str_cut_utf8(text, 64)),
                       words);
    *out = i;
    return true;
}

/* Writes the member of r; text is NULL when it is neither set nor has a default, which only texts may lack. */
static bool read_value(const struct row *r, const char *text, struct settings_edge *out, struct err *e)
{
    void *member = (char *)out + r->offset;

    switch (r->type) {
    case TYPE_STR:
    case TYPE_LIST:
    case TYPE_SECRET:
        return read_str(text == NULL ? "" : text, member, e);
    case TYPE_DURATION:
        return read_duration(r, str_of(text), member, e);
    case TYPE_SIZE:
        return read_size(r, str_of(text), member, e);
    case TYPE_COUNT:
        return parse_u64(str_of(text), r->min, r->max, member, "", e);
    case TYPE_RATE:
        return parse_rate(str_of(text), member, "", e);
#define SETTING_ENUM(set, words) case TYPE_ENUM_##set:
#include "schemas/settings.def"
        break;
    }
    return read_word(r, str_of(text), member, e);
}

static void load_row(struct load *l, const struct row *r)
{
    const char *dflt = r->dflt[0] == '\0' ? NULL : r->dflt, *text = settings_env(l->envp, r->name);
    struct err e;

    if (l->use == SETTINGS_OFFLINE && (r->readers & BY_OFFLINE) == 0)
        text = NULL;
    if (text != NULL && text[0] == '\0' && r->type != TYPE_LIST) {
        fault(l, r->name, "is set but empty; give it a value or unset it");
        text = NULL;
    }
    if (l->use == SETTINGS_RUN && text != NULL && (r->readers & FROM_LAUNCHER) != 0)
        fault(l, r->name, "is for `serve`; `run` gives each agent its own: unset it");
    err_clear(&e);
    /* The default first: what is checked later sees a value even when the text does not parse. */
    if (!read_value(r, dflt, &l->s, &e) || (text != NULL && !read_value(r, text, &l->s, &e)))
        fault(l, r->name, e.text);
}

static void refuse_names(struct load *l)
{
    for (size_t i = 0; i < N_REFUSED; i++)
        if (settings_env(l->envp, refused[i].name) != NULL &&
            (l->use != SETTINGS_OFFLINE || (refused[i].readers & BY_OFFLINE) != 0))
            fault(l, refused[i].name, refused[i].reason);
}

static bool is_known(struct str name)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (str_eq(str_of(rows[i].name), name))
            return true;
    return false;
}

static void refuse_unknown(struct load *l)
{
    char name[128], text[192];

    for (char *const *entry = l->envp; *entry != NULL; entry++) {
        const struct str whole = str_sub(str_of(*entry), 0, str_find_byte(str_of(*entry), '='));
        const char *suggestion;

        if (!str_starts(whole, STR("EDGE_")) || is_known(whole))
            continue;
        suggestion = str_nearest(whole, names);
        if (suggestion != NULL)
            snprintf(text, sizeof(text), "is not a setting; did you mean %s?", suggestion);
        else
            snprintf(text, sizeof(text), "is not a setting; names that begin with EDGE_ are reserved: unset it (`edge-spoa --help` lists all)");
        snprintf(name, sizeof(name), "%.*s", STR_ARG(str_cut_utf8(whole, sizeof(name) - 1)));
        fault(l, name, text);
    }
}

/* Each part of a comma list must be an address with a port. */
static void check_listens(struct load *l, const char *name, const char *list)
{
    const struct str whole = str_of(list);
    struct str part;

    for (size_t at = 0; at <= whole.len; at += part.len + 1) {
        const struct str tail = str_sub(whole, at, whole.len);
        struct listen_addr address;
        struct err e;

        part = str_sub(tail, 0, str_find_byte(tail, ','));
        err_clear(&e);
        if (!parse_listen(str_trim(part), &address, "", &e))
            fault(l, name, e.text);
        else if (address.port == 0)
            fault(l, name, "the port must be a number from 1 to 65535");
    }
}

static void check_internal_listen(struct load *l)
{
    struct listen_addr at;
    struct err e;

    err_clear(&e);
    if (!parse_listen(str_of(l->s.internal_listen), &at, "", &e))
        fault(l, "EDGE_INTERNAL_LISTEN", e.text);
    else if (l->use == SETTINGS_DOCTOR && at.port == 0)
        fault(l, "EDGE_INTERNAL_LISTEN", "has port 0, which lets each agent choose: the doctor can't know where; name a port");
    else if (l->use != SETTINGS_SERVE && at.port != 0 && at.port + l->s.agents - 1 > UINT16_MAX)
        fault(l, "EDGE_INTERNAL_LISTEN", "agent n listens on port + n, which goes beyond 65535; choose a lower port");
}

/* HAProxy and OpenSSL say less about it. */
static void check_pem(struct load *l, const char *name, const char *path, const char *meaning)
{
    struct stat st;

    if (path[0] != '\0' && (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || access(path, R_OK) != 0))
        fault(l, name, meaning);
}

static void check_tls(struct load *l)
{
    const bool has_cert = l->s.tls_cert[0] != '\0', has_ca = l->s.tls_client_ca[0] != '\0';

    if (l->s.tls_listen[0] != '\0' && !has_cert)
        fault(l, "EDGE_TLS_CERT", "is required with EDGE_TLS_LISTEN: a PEM file with certificate chain and key");
    if (l->s.tls_listen[0] == '\0' && (has_cert || has_ca))
        fault(l, "EDGE_TLS_LISTEN", has_cert ? "is required with EDGE_TLS_CERT, as in \":8443\"" : "is required with EDGE_TLS_CLIENT_CA, as in \":8443\"");
    if (l->s.tls_client_auth == SETTING_CLIENT_AUTH_REQUIRED && !has_ca)
        fault(l, "EDGE_TLS_CLIENT_CA", "is required with EDGE_TLS_CLIENT_AUTH=required: a PEM file of the authorities whose certificates are verified");
    check_pem(l, "EDGE_TLS_CERT", l->s.tls_cert, "is not a readable file; name a PEM file with certificate chain and key");
    check_pem(l, "EDGE_TLS_CLIENT_CA", l->s.tls_client_ca, "is not a readable file; name a PEM file of authorities' certificates");
}

/* HAProxy's -S takes a comma list, and socket addresses are short. */
static void check_run_dir(struct load *l)
{
    const struct str dir = str_of(l->s.run_dir);

    if (dir.len == 0)
        return;
    if (dir.p[0] != '/' || dir.len > SETTING_RUN_DIR_MAX) {
        fault(l, "EDGE_RUN_DIR", "must be an absolute path of at most 80 bytes: socket addresses are short");
        return;
    }
    for (size_t i = 0; i < dir.len; i++)
        if (!ascii_is_alpha(dir.p[i]) && !ascii_is_digit(dir.p[i]) && memchr("/._-", dir.p[i], 4) == NULL) {
            fault(l, "EDGE_RUN_DIR", "may only contain letters, digits and / . _ -");
            return;
        }
}

static void check_upstream(struct load *l)
{
    const char *authorities = settings_env(l->envp, "SSL_CERT_FILE");
    struct upstream_addr upstream = {0};
    struct err e;

    err_clear(&e);
    if (l->s.upstream_url[0] != '\0' && !settings_split_upstream(l->s.upstream_url, &upstream, &e))
        fault(l, "UPSTREAM_URL", e.text);
    if (upstream.tls && authorities != NULL)
        check_pem(l, "SSL_CERT_FILE", authorities, "is not a readable file; name a PEM file of the authorities that an https upstream is verified with");
}

static void check_spop_listen(struct load *l)
{
    const struct str at = str_of(l->s.spop_listen);

    if (at.len > 0 && !str_starts(at, STR("unix@/")) && !str_starts(at, STR("tcp@")))
        fault(l, "EDGE_SPOP_LISTEN", "must be \"unix@/path\" or \"tcp@address:port\"");
}

static void require(struct load *l, const char *name, const char *text)
{
    if (settings_env(l->envp, name) == NULL)
        fault(l, name, text);
}

static void check_run(struct load *l)
{
    require(l, "UPSTREAM_URL", "is required: where every request goes, as in \"http://127.0.0.1:8000\"");
    check_upstream(l);
    check_listens(l, "EDGE_LISTEN", l->s.listen);
    if (l->s.tls_listen[0] != '\0')
        check_listens(l, "EDGE_TLS_LISTEN", l->s.tls_listen);
    check_listens(l, "EDGE_HEALTH_LISTEN", l->s.health_listen);
    settings_check_clashes(&l->s, l->errors);
    check_tls(l);
    if (l->s.agents_active > l->s.agents)
        fault(l, "EDGE_AGENTS_ACTIVE", "is more than EDGE_AGENTS; give it at most that number");
}

/* What holds between settings, and what the use needs. */
static void check_use(struct load *l)
{
    if (l->use != SETTINGS_DOCTOR)
        settings_check_ingress(&l->s, l->use, l->errors);
    if (l->use == SETTINGS_OFFLINE)
        return;
    if (l->use == SETTINGS_DOCTOR) {
        check_listens(l, "EDGE_LISTEN", l->s.listen);
        check_listens(l, "EDGE_HEALTH_LISTEN", l->s.health_listen);
        check_internal_listen(l);
        return;
    }
    require(l, "POLICY_FILE", "is required: the policy file (JSON)");
    check_run_dir(l);
    check_internal_listen(l);
    settings_check_store(&l->s, l->errors);
    if (l->use == SETTINGS_RUN) {
        check_run(l);
        return;
    }
    require(l, "EDGE_RUN_DIR", "is required for `serve`: the folder of its sockets");
    check_spop_listen(l);
}

bool settings_load(struct settings_edge *out, enum settings_use use, char *const envp[], struct errlist *errors)
{
    const size_t n_before = errors->n + errors->n_dropped;
    struct load l = {.use = use, .envp = envp, .errors = errors};

    if (use != SETTINGS_OFFLINE)
        refuse_unknown(&l);
    refuse_names(&l);
    for (size_t i = 0; i < N_ROWS; i++)
        load_row(&l, &rows[i]);
    check_use(&l);
    if (errors->n + errors->n_dropped > n_before)
        return false;
    *out = l.s;
    return true;
}
