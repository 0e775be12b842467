/* What a deployment writes: environments (an entry a line; the first byte chooses the use), UPSTREAM_URL, and what a HAProxy
 * says of itself; and the lines that children write. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "spoa/launcher/haproxy_version.h"
#include "spoa/launcher/lines.h"
#include "spoa/settings.h"
#include "tests/fuzz/guarantee.h"

enum { ENTRIES_MAX = 64 };

static void check_texts(const struct errlist *errors)
{
    for (size_t i = 0; i < errors->n; i++) {
        const struct err *e = &errors->items[i];

        GUARANTEE(e->code == ERR_SETTING && e->path[0] == '/' && e->text[0] != '\0');
    }
}

static void check_load(const char *whole, enum settings_use use)
{
    char *copy = strdup(whole), *text = copy;
    char *envp[ENTRIES_MAX + 1];
    struct settings_edge s = {.agents = 77};
    struct errlist errors;
    size_t n = 0;
    bool ok;

    while (text != NULL && n < ENTRIES_MAX)
        envp[n++] = strsep(&text, "\n");
    envp[n] = NULL;
    GUARANTEE(copy != NULL && errlist_init(&errors, 0));
    ok = settings_load(&s, use, envp, &errors);
    GUARANTEE(ok == (errors.n == 0) && (ok || s.agents == 77));
    check_texts(&errors);
    if (ok) {
        GUARANTEE(s.agents_active >= 1 && s.listen != NULL);
        /* The doctor looks at no socket, and commands offline at no such setting. */
        GUARANTEE(use == SETTINGS_DOCTOR || strlen(s.run_dir) <= SETTING_RUN_DIR_MAX);
        GUARANTEE(use == SETTINGS_OFFLINE || use == SETTINGS_DOCTOR || s.client_ip_source[0] != '\0');
    }
    errlist_release(&errors);
    free(copy);
}

static void check_url(const char *text)
{
    struct upstream_addr at = {.port = 0};
    struct err e;

    err_clear(&e);
    if (settings_split_upstream(text, &at, &e))
        GUARANTEE(at.port > 0 && at.host[0] != '\0' && e.code == ERR_NONE);
    else
        GUARANTEE(at.port == 0 && e.text[0] != '\0');
}

static void count_line(void *ctx, struct str line)
{
    size_t *n_lines = ctx;

    GUARANTEE(line.len <= LINES_MAX_BYTES && str_find_byte(line, '\n') == SIZE_MAX);
    (*n_lines)++;
}

static void check_lines(struct str bytes, size_t step)
{
    size_t n_lines = 0, want = 0;
    struct lines l;

    for (size_t i = 0; i < bytes.len; i++)
        want += bytes.p[i] == '\n' || i + 1 == bytes.len;
    GUARANTEE(lines_init(&l, count_line, &n_lines));
    for (size_t at = 0; at < bytes.len; at += step)
        lines_feed(&l, str_sub(bytes, at, at + step));
    lines_end(&l);
    GUARANTEE(n_lines == want);
    lines_release(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct haproxy_version version = {77, 77};
    char *text;

    if (size == 0)
        return 0;
    text = malloc(size);
    GUARANTEE(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 6) {
    case 0:
        check_load(text, SETTINGS_RUN);
        check_load(text, SETTINGS_DOCTOR);
        break;
    case 1:
        check_load(text, SETTINGS_SERVE);
        break;
    case 2:
        check_load(text, SETTINGS_OFFLINE);
        break;
    case 3:
        check_url(text);
        break;
    case 4:
        GUARANTEE(haproxy_version_parse((struct str){text, size - 1}, &version) || version.major == 77);
        break;
    default:
        check_lines((struct str){text, size - 1}, 1 + data[0] / 6);
    }
    free(text);
    return 0;
}
