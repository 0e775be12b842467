/* How requests reach a deployment: the first five lines are its settings, the sixth the peer, the rest headers ("name: value"). Bits of the first byte
 * switch what is no text. */
#include "common/policy/ingress.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

enum { N_TEXTS = 5, TEXT_MAX = 2048, ITEMS_MAX = 64 };
enum { TRUST_ANY = 1, TLS_HERE = 2, FINGERPRINTS = 4, CLIENT_CERTS = 8, LOOK_ONLY = 16, OVER_TLS = 32 };

static struct str take_line(struct str *left)
{
    const size_t end = str_find_byte(*left, '\n');
    const struct str line = str_sub(*left, 0, end);

    *left = end == SIZE_MAX ? STR_NONE : str_sub(*left, end + 1, left->len);
    return line;
}

static void check_texts(const struct errlist *list)
{
    for (size_t i = 0; i < list->n; i++)
        GUARANTEE(list->items[i].code == ERR_SETTING && list->items[i].path[0] == '/' &&
                  str_starts(str_of(list->items[i].text), str_of(list->items[i].path + 1)));
}

static void check_reading(const struct ingress *in, const struct ingress_text *text)
{
    uint32_t mapped = 0;

    GUARANTEE(in->n_own_headers <= INGRESS_OWN_MAX && in->n_secrets <= INGRESS_SECRETS_MAX);
    GUARANTEE((in->source == CLIENT_IP_PEER) == (in->client_ip_header.len == 0));
    for (enum expr_source s = 0; s < EXPR_N_SOURCES; s++)
        if (in->viewer[s].len > 0) {
            GUARANTEE(expr_source_is_viewer(s));
            mapped |= UINT32_C(1) << s;
        }
    GUARANTEE(in->reads_headers == (in->source != CLIENT_IP_PEER || mapped != 0));
    GUARANTEE(in->handshake == (text->tls_here && !in->reads_headers) && (in->handshake || in->deployment.sources == mapped));
    GUARANTEE((in->secret_header.len > 0) == (text->secret_header[0] != '\0'));
    GUARANTEE(text->look_only ? in->n_secrets == 0 : (in->n_secrets > 0) == (in->secret_header.len > 0));
    for (size_t i = 0; i < in->n_own_headers; i++)
        for (size_t k = 0; k < i; k++)
            GUARANTEE(!header_names_alike(in->own_headers[i], in->own_headers[k]));
    for (size_t i = 0; i < in->n_own_headers; i++)
        GUARANTEE(header_name_ok(in->own_headers[i]) && !str_eq(in->own_headers[i], STR("host")) && !str_eq(in->own_headers[i], STR("cookie")));
}

static bool knows_secret(const struct ingress *in, const struct headers *headers)
{
    struct str sent;
    bool known = false;

    if (headers_count(headers, in->secret_header) != 1 || !headers_get(headers, in->secret_header, &sent))
        return false;
    for (size_t i = 0; i < in->n_secrets; i++)
        known = known || str_eq(in->secrets[i], str_trim(sent));
    return known;
}

static bool is_upper_pair(struct str s)
{
    return s.len == 2 && s.p[0] >= 'A' && s.p[0] <= 'Z' && s.p[1] >= 'A' && s.p[1] <= 'Z';
}

/* Values in normal form, and none without a source. */
static void check_viewer(const struct ingress *in, const struct expr_viewer *v)
{
    const uint32_t has = in->deployment.sources;
    const bool ssl_known = (has >> EXPR_SOURCE_SSL & 1) != 0;

    GUARANTEE(!v->ssl || ssl_known);
    GUARANTEE(v->http_version.len == 0 || ((has >> EXPR_SOURCE_HTTP_VERSION & 1) != 0 && v->http_version.len == 3));
    GUARANTEE(v->country.len == 0 || ((has >> EXPR_SOURCE_COUNTRY & 1) != 0 && is_upper_pair(v->country)));
    GUARANTEE(v->continent.len == 0 || ((has >> EXPR_SOURCE_CONTINENT & 1) != 0 && is_upper_pair(v->continent)));
    GUARANTEE(!v->has_asnum || ((has >> EXPR_SOURCE_ASNUM & 1) != 0 && v->asnum >= 1 && v->asnum <= UINT32_MAX));
    GUARANTEE(v->ja3.len == 0 || ((has >> EXPR_SOURCE_JA3 & 1) != 0 && expr_ja3_ok(v->ja3) && (v->ssl || !ssl_known)));
    GUARANTEE(v->ja4.len == 0 || ((has >> EXPR_SOURCE_JA4 & 1) != 0 && expr_ja4_ok(v->ja4) && (v->ssl || !ssl_known)));
    GUARANTEE(v->cert.subject.len == 0 || ((has >> EXPR_SOURCE_CERT_SUBJECT & 1) != 0 && str_is_utf8(v->cert.subject)));
}

static void check_request(const struct ingress *in, const struct ingress_connection *c, const struct headers *headers, struct arena *a)
{
    static const struct expr_viewer nothing;
    struct ingress_client client;

    GUARANTEE(ingress_identify(in, c, headers, a, &client));
    GUARANTEE((client.refusal == IDENTITY_SECRET) == (in->secret_header.len > 0 && !knows_secret(in, headers)));
    GUARANTEE(client.peer_trusted == (c->has_src && addr_set_has(&in->trusted, &c->src)));
    if (client.refusal != IDENTITY_OK) {
        GUARANTEE(memcmp(&client.viewer, &nothing, sizeof nothing) == 0);
        return;
    }
    GUARANTEE(!in->reads_headers || client.peer_trusted);
    GUARANTEE(in->source != CLIENT_IP_PEER || (c->has_src && addr_cmp(&client.ip, &c->src) == 0));
    check_viewer(in, &client.viewer);
}

static void read_headers(struct str left, struct headers *out, char *names)
{
    while (left.len > 0 && out->n < ITEMS_MAX) {
        const struct str line = take_line(&left);
        const size_t colon = str_find_byte(line, ':');
        const struct str name = str_sub(line, 0, colon);

        for (size_t i = 0; i < name.len; i++)
            names[i] = ascii_lower(name.p[i]);
        if (name.len > 0)
            out->items[out->n++] =
                (struct header){{names, name.len}, colon == SIZE_MAX ? STR_NONE : str_sub(line, colon + 1, line.len)};
        names += name.len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char texts[N_TEXTS][TEXT_MAX];
    struct header items[ITEMS_MAX];
    struct headers headers = {.items = items};
    struct errlist errors, warnings;
    struct ingress_connection c = {.http_version = STR("2.0")};
    struct ingress in = {.n_secrets = 77};
    struct arena a;

    if (size == 0)
        return 0;
    struct str left = {(const char *) data + 1, size - 1};
    char *names = malloc(size);

    for (size_t i = 0; i < N_TEXTS; i++) {
        const struct str line = take_line(&left);

        snprintf(texts[i], TEXT_MAX, "%.*s", STR_ARG(line));
    }
    const struct ingress_text text = {texts[0], texts[1], texts[2], texts[3], texts[4], (data[0] & TRUST_ANY) != 0, false, (data[0] & TLS_HERE) != 0,
                                      (data[0] & FINGERPRINTS) != 0, (data[0] & FINGERPRINTS) != 0, (data[0] & CLIENT_CERTS) != 0, (data[0] & LOOK_ONLY) != 0};

    GUARANTEE(names != NULL && errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    arena_init(&a, 4096, 0);
    c.has_src = addr_parse(take_line(&left), &c.src);
    c.tls = (data[0] & OVER_TLS) != 0;
    read_headers(left, &headers, names);
    const bool ok = ingress_read(&text, &a, &in, &errors, &warnings);

    GUARANTEE(ok == (errors.n == 0) && (ok || in.n_secrets == 77));
    check_texts(&errors);
    check_texts(&warnings);
    if (ok) {
        check_reading(&in, &text);
        if (!text.look_only)
            check_request(&in, &c, &headers, &a);
    }
    arena_release(&a);
    errlist_release(&errors);
    errlist_release(&warnings);
    free(names);
    return 0;
}
