/* Settings of ingress as one: where the client's address comes from, who is trusted, and what that means to expressions. */
#include "common/policy/ingress_priv.h"

#include <stdarg.h>
#include <stdio.h>

static const char source_setting[] = "CLIENT_IP_SOURCE";

static void PRINTF_LIKE(3, 0) add(struct errlist *to, const char *setting, const char *fmt, va_list args)
{
    char path[ERR_PATH_MAX], text[ERR_TEXT_MAX];

    vsnprintf(text, sizeof text, fmt, args);
    snprintf(path, sizeof path, "/%s", setting);
    errlist_add(to, ERR_SETTING, path, "%s: %s", setting, text);
}

void ingress_fault(struct ingress_reading *r, const char *setting, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add(r->errors, setting, fmt, args);
    va_end(args);
}

void ingress_warn(struct ingress_reading *r, const char *setting, const char *fmt, ...)
{
    va_list args;

    if (r->warnings == NULL)
        return;
    va_start(args, fmt);
    add(r->warnings, setting, fmt, args);
    va_end(args);
}

/* ---- CLIENT_IP_SOURCE ---- */

static const struct {
    const char *name;
    struct str header;
    enum client_ip_form form;
} presets[] = {
#define PRESET_ROW(id, name, header, form, meaning) {name, {(header), sizeof(header) - 1}, CLIENT_IP_##form},
#include "schemas/client_ip_presets.def"
};

#define PRESET_ROW(id, name, header, form, meaning) name,
static const char *const words[] = {"remote_addr", "xff",
#include "schemas/client_ip_presets.def"
                                    NULL};

#define PRESET_ROW(id, name, header, form, meaning) name ", "
static const char word_list[] = "remote_addr, xff, "
#include "schemas/client_ip_presets.def"
                                "header:<name> or header_ip_port:<name>";

/* The source is one header. preset: of a preset, whose header needs no check. */
static void take_header(struct ingress_reading *r, struct str name, enum client_ip_form form)
{
    const char *reason = ingress_header_refused(name);

    if (reason != NULL) {
        ingress_fault(r, source_setting, "the header \"%.*s\" %s", STR_ARG(str_cut_utf8(name, INGRESS_SHOWN_MAX)), reason);
        return;
    }
    r->in.source = CLIENT_IP_HEADER;
    r->in.form = form;
    (void) ingress_own_header(r, name, &r->in.client_ip_header);
}

static void refuse_source(struct ingress_reading *r, struct str word)
{
    const struct str shown = str_cut_utf8(word, INGRESS_SHOWN_MAX);
    const char *nearest = str_nearest(word, words);

    if (nearest != NULL)
        ingress_fault(r, source_setting, "\"%.*s\" is no source of addresses: did you mean %s?", STR_ARG(shown), nearest);
    else if (word.len == 0)
        ingress_fault(r, source_setting, "is required: where the client's address comes from; write %s", word_list);
    else
        ingress_fault(r, source_setting, "\"%.*s\" is no source of addresses: write %s", STR_ARG(shown), word_list);
}

/* The preset that is named, SIZE_MAX for none. */
static size_t read_source(struct ingress_reading *r)
{
    static const struct {
        struct str prefix;
        enum client_ip_form form;
    } named[] = {{STR("header:"), CLIENT_IP_ADDRESS}, {STR("header_ip_port:"), CLIENT_IP_ADDRESS_PORT}};
    const struct str word = str_of(r->text->client_ip_source == NULL ? "" : r->text->client_ip_source);

    r->in.source = CLIENT_IP_PEER;
    if (str_eq(word, STR("remote_addr")) || (word.len == 0 && r->text->look_only))
        return SIZE_MAX;
    if (str_eq(word, STR("xff"))) {
        take_header(r, STR("x-forwarded-for"), CLIENT_IP_ADDRESS);
        r->in.source = CLIENT_IP_FORWARDED_FOR;
        return SIZE_MAX;
    }
    for (size_t i = 0; i < INGRESS_N_PRESETS; i++)
        if (str_eq(word, str_of(presets[i].name))) {
            take_header(r, presets[i].header, presets[i].form);
            return i;
        }
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (str_starts(word, named[i].prefix)) {
            take_header(r, str_sub(word, named[i].prefix.len, word.len), named[i].form);
            return SIZE_MAX;
        }
    refuse_source(r, word);
    return SIZE_MAX;
}

/* ---- what it means ---- */

#define BIT(source) (UINT32_C(1) << EXPR_SOURCE_##source)

static uint32_t sources_of_handshake(const struct ingress_text *text)
{
    uint32_t sources = BIT(SSL) | BIT(HTTP_VERSION);

    if (text->ja3)
        sources |= BIT(JA3);
    if (text->ja4)
        sources |= BIT(JA4);
    if (text->client_certs)
        sources |= BIT(CERT_PRESENT) | BIT(CERT_VERIFIED) | BIT(CERT_SUBJECT) | BIT(CERT_ISSUER) | BIT(CERT_SERIAL) | BIT(CERT_SHA256);
    return sources;
}

static void conclude(struct ingress_reading *r)
{
    struct ingress *in = &r->in;
    uint32_t mapped = 0;

    for (size_t s = 0; s < EXPR_N_SOURCES; s++)
        if (in->viewer[s].len > 0)
            mapped |= UINT32_C(1) << s;
    in->reads_headers = in->source != CLIENT_IP_PEER || mapped != 0;
    in->handshake = r->text->tls_here && !in->reads_headers;
    in->deployment = (struct expr_deployment){.sources = in->handshake ? sources_of_handshake(r->text) : mapped,
                                              .allow_regex = r->text->allow_regex,
                                              .unreadable = in->own_headers,
                                              .n_unreadable = in->n_own_headers};
    if (in->reads_headers && in->trusted.n == 0)
        ingress_warn(r, "TRUSTED_PROXIES", "is empty, so that nobody's headers are believed and every request is refused: name the proxies in front");
}

bool ingress_read(const struct ingress_text *text, struct arena *a, struct ingress *out, struct errlist *errors, struct errlist *warnings)
{
    struct ingress_reading r = {.text = text, .a = a, .errors = errors, .warnings = warnings};
    const size_t n_before = errors->n + errors->n_dropped;

    r.in.own_headers = ARENA_NEW_N(a, INGRESS_OWN_MAX, struct str);
    r.no_memory = r.in.own_headers == NULL;
    if (!r.no_memory) {
        const size_t preset = read_source(&r);

        ingress_read_viewer(&r, preset);
        ingress_read_proxies(&r);
        ingress_read_secret(&r);
    }
    if (r.no_memory)
        errlist_add(errors, ERR_NO_MEMORY, "", "no memory to read how requests reach this deployment");
    if (errors->n + errors->n_dropped > n_before)
        return false;
    conclude(&r);
    *out = r.in;
    return true;
}
