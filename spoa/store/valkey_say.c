/* What the Valkey client tells people: the trouble it is in, and log lines about changes. No secret, and nothing that a server could use to upset a
 * terminal or fill a disk. */
#include <stdio.h>

#include "common/base/counter.h"
#include "common/base/log.h"
#include "spoa/store/valkey_priv.h"

enum { NAME_MAX_BYTES = 300, MINUTE_US = 60000000, PASSWORD_SEEN_BYTES = 12 /* of its beginning: enough to know it by where a text is cut */ };

static const char *name_of(const struct valkey *v, char buffer[static NAME_MAX_BYTES])
{
    return valkey_target_name(&v->node->target, buffer, NAME_MAX_BYTES);
}

void valkey_say_printable(const struct valkey *v, struct str text, char out[static VALKEY_TEXT_MAX + 1])
{
    /* Servers repeat the words of a command that they do not know, cut and with other bytes for some, behind this. */
    const struct str told = str_sub(text, 0, str_find(text, STR(", with args beginning with")));
    const struct str password = str_sub(str_of(v->node->target.password), 0, PASSWORD_SEEN_BYTES);
    struct str s = str_sub(told, 0, VALKEY_TEXT_MAX);

    if (password.len > 0 && str_find(told, password) != SIZE_MAX)
        s = STR("(a text that holds the password)");
    for (size_t i = 0; i < s.len; i++)
        out[i] = s.p[i] >= ' ' && s.p[i] <= '~' ? s.p[i] : '?';
    out[s.len] = '\0';
}

static void set_trouble(struct valkey *v, const char *text)
{
    pthread_mutex_lock(&v->lock);
    (void)snprintf(v->trouble, sizeof(v->trouble), "%s", text);
    pthread_mutex_unlock(&v->lock);
}

void valkey_trouble(struct valkey *v, char *out, size_t size)
{
    pthread_mutex_lock(&v->lock);
    (void)snprintf(out, size, "%s", v->trouble);
    pthread_mutex_unlock(&v->lock);
}

void valkey_say_nothing_yet(struct valkey *v)
{
    set_trouble(v, "not connected yet");
}

/* Each kind is told once from one usable connection to the next, and a connection that comes and goes fills no log: what is left out here is
 * told by a later attempt, if it is still so. */
static bool is_worth_a_line(struct valkey *v, enum valkey_down kind)
{
    const uint64_t now_us = clock_mono_us(v->clock);

    if ((v->logged & kind) != 0)
        return false;
    if (now_us - v->lines_since_us >= MINUTE_US) {
        v->lines_since_us = now_us;
        v->n_lines = 0;
    }
    return v->n_lines < VALKEY_LINES_MAX;
}

void valkey_say_down(struct valkey *v, enum valkey_down kind, const char *why)
{
    static const struct {
        enum valkey_down kind;
        const char *event, *what;
    } kinds[] = {
        {VALKEY_DOWN_LOST, "valkey_lost", "lost the connection to"},
        {VALKEY_DOWN_UNREACHABLE, "valkey_unreachable", "cannot connect to"},
        {VALKEY_DOWN_REFUSED, "valkey_refused", "cannot use"},
    };
    char name[NAME_MAX_BYTES], text[VALKEY_TROUBLE_MAX];
    size_t i = 0;

    while (kinds[i].kind != kind)
        i++;
    (void)snprintf(text, sizeof(text), "%s %s: %s", kinds[i].what, name_of(v, name), why);
    set_trouble(v, text);
    if (!is_worth_a_line(v, kind))
        return;
    v->logged |= kind;
    v->n_lines++;
    log_event(LOG_LEVEL_WARN, kinds[i].event, "%s", text);
}

void valkey_say_up(struct valkey *v)
{
    char name[NAME_MAX_BYTES];

    set_trouble(v, "");
    if (v->logged != 0 || counter_get(&v->counters->n_connects) == 0)
        log_event(LOG_LEVEL_INFO, "valkey_connected", "connected to %s", name_of(v, name));
    v->logged = 0;
}

void valkey_say_error(struct valkey *v, struct str answer)
{
    const uint64_t now_us = clock_mono_us(v->clock);
    char text[VALKEY_TEXT_MAX + 1], name[NAME_MAX_BYTES];

    if (v->error_logged_us != 0 && now_us - v->error_logged_us < MINUTE_US)
        return;
    v->error_logged_us = now_us;
    valkey_say_printable(v, answer, text);
    log_event(LOG_LEVEL_WARN, "valkey_error", "%s answers with an error: %s", name_of(v, name), text);
}
