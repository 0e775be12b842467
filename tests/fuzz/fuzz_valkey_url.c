/* VALKEY_URL from any bytes: what is read is within its bounds and stays the same when it is written again; what is refused writes nothing and
 * repeats no secret. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "spoa/store/target.h"
#include "tests/fuzz/guarantee.h"

static void put_escaped(struct buf *b, const char *s)
{
    static const char digits[] = "0123456789abcdef";

    for (; *s != '\0'; s++) {
        buf_put_byte(b, '%');
        buf_put_byte(b, digits[(unsigned char)*s >> 4]);
        buf_put_byte(b, digits[(unsigned char)*s & 15]);
    }
}

static void put_url(struct buf *b, const struct valkey_target *t)
{
    buf_put_cstr(b, t->is_unix ? "unix://" : "redis://");
    put_escaped(b, t->user);
    buf_put_byte(b, ':');
    put_escaped(b, t->password);
    buf_put_byte(b, '@');
    if (t->is_unix) {
        buf_put_byte(b, '/');
        put_escaped(b, t->host + 1);
        buf_printf(b, "?db=%u&", t->db);
    } else {
        buf_printf(b, strchr(t->host, ':') == NULL ? "%s:%u/%u?" : "[%s]:%u/%u?", t->host, (unsigned)t->port, t->db);
    }
    buf_printf(b, "dial_timeout=%llums", (unsigned long long)t->dial_timeout_ms);
}

static void check_accepted(const struct valkey_target *t)
{
    char url[4096], name[300];
    struct buf b;
    struct valkey_target again;
    struct err e = {0};

    GUARANTEE(t->host[0] != '\0' && strlen(t->host) < (t->is_unix ? 108 : 254));
    GUARANTEE(strlen(t->user) < sizeof(t->user) && strlen(t->password) < sizeof(t->password));
    GUARANTEE(t->db <= 65535 && t->dial_timeout_ms >= 1 && t->dial_timeout_ms <= 60000);
    GUARANTEE(t->is_unix ? t->port == 0 && t->host[0] == '/' : t->port != 0);
    GUARANTEE(valkey_target_name(t, name, sizeof(name)) == name && strlen(name) < sizeof(name));
    buf_init(&b, url, sizeof(url) - 1);
    put_url(&b, t);
    url[b.len] = '\0';
    if (b.full || b.len > 2048)
        return;
    GUARANTEE(valkey_target_parse(url, &again, &e));
    GUARANTEE(strcmp(again.host, t->host) == 0 && again.port == t->port && again.db == t->db);
    GUARANTEE(strcmp(again.user, t->user) == 0 && strcmp(again.password, t->password) == 0);
    GUARANTEE(again.is_unix == t->is_unix && again.dial_timeout_ms == t->dial_timeout_ms);
}

/* The seeds' secret is one word that no sentence of ours has. */
static void check_refused(const char *url, const struct err *e)
{
    const struct str text = str_of(e->text), input = str_of(url), marker = STR("hunter2");

    GUARANTEE(e->code == ERR_BAD_VALUE && text.len > 0);
    GUARANTEE(str_find(input, marker) == SIZE_MAX || str_find(text, marker) == SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct valkey_target t, before;
    struct err e = {0};
    char *url = malloc(size + 1);

    GUARANTEE(url != NULL);
    memcpy(url, data, size);
    url[size] = '\0';
    memset(&t, 0x5a, sizeof(t));
    before = t;
    if (valkey_target_parse(url, &t, &e)) {
        GUARANTEE(e.code == ERR_NONE);
        check_accepted(&t);
        valkey_target_release(&t);
    } else {
        check_refused(url, &e);
        GUARANTEE(memcmp(&t, &before, sizeof(t)) == 0);
    }
    free(url);
    return 0;
}
