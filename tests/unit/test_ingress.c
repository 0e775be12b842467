/* How requests reach a deployment: rows of settings with what they mean or what is wrong, and rows of requests with who sent them. */
#include <CUnit/CUnit.h>
#include <stdio.h>

#include "common/policy/identify.h"
#include "tests/unit/cases.h"
#include "tests/unit/refuse_memory.h"

enum { HEADERS_OF_ROW = 16 };

static struct arena arena;
static struct errlist errors, warnings;

static int set_up(void)
{
    arena_init(&arena, 4096, 0);
    return errlist_init(&errors, 0) && errlist_init(&warnings, 0) ? 0 : 1;
}

static int tear_down(void)
{
    arena_release(&arena);
    errlist_release(&errors);
    errlist_release(&warnings);
    return 0;
}

static void start_over(void)
{
    arena_reset(&arena);
    errors.n = errors.n_dropped = warnings.n = warnings.n_dropped = 0;
}

/* ---- settings ---- */

static const char *text_of(const json_t *text, const char *name)
{
    return json_string_value(json_object_get(text, name));
}

/* The members are the settings' names, or those of ingress_text where there is none. */
static struct ingress_text ingress_text_of(const json_t *row)
{
    const json_t *text = json_object_get(row, "settings");

    return (struct ingress_text){
        .client_ip_source = text_of(text, "CLIENT_IP_SOURCE"),
        .trusted_proxies = text_of(text, "TRUSTED_PROXIES"),
        .viewer_headers = text_of(text, "VIEWER_HEADERS"),
        .secret_header = text_of(text, "INGRESS_SECRET_HEADER"),
        .secrets = text_of(text, "INGRESS_SECRET"),
        .trust_any_peer = json_is_true(json_object_get(text, "EDGE_TRUST_ANY_PEER")),
        .allow_regex = json_is_true(json_object_get(text, "ALLOW_REGEX")),
        .tls_here = json_is_true(json_object_get(text, "tls_here")),
        .ja3 = json_is_true(json_object_get(text, "ja3")),
        .ja4 = json_is_true(json_object_get(text, "ja4")),
        .client_certs = json_is_true(json_object_get(text, "client_certs")),
        .look_only = json_is_true(json_object_get(text, "look_only")),
    };
}

/* Each text is there, names its setting, and none is there beside them. hides: what no text shows. */
static void check_texts(const json_t *row, const char *member, const struct errlist *list)
{
    const json_t *wants = json_object_get(row, member);
    const struct str secret = case_str(row, "hides");
    size_t n = 0, i, k;
    const char *setting;
    json_t *texts, *want;

    json_object_foreach((json_t *) (uintptr_t) wants, setting, texts) json_array_foreach(texts, k, want)
    {
        bool found = false;

        n++;
        for (i = 0; i < list->n; i++)
            found = found || (list->items[i].code == ERR_SETTING && list->items[i].path[0] == '/' && strcmp(list->items[i].path + 1, setting) == 0 &&
                              str_starts(str_of(list->items[i].text), str_of(setting)) && strstr(list->items[i].text, json_string_value(want)) != NULL);
        CASE_CHECK_GOT(row, found, list->n > 0 ? str_of(list->items[0].text) : STR("nothing"));
    }
    CASE_CHECK_GOT(row, list->n + list->n_dropped == n, list->n > 0 ? str_of(list->items[list->n - 1].text) : STR("nothing"));
    for (i = 0; i < list->n && secret.len > 0; i++)
        CASE_CHECK_GOT(row, str_find(str_of(list->items[i].text), secret) == SIZE_MAX, str_of(list->items[i].text));
}

static json_t *string_of(struct str s)
{
    return s.len == 0 ? json_string("") : json_stringn(s.p, s.len);
}

/* What a reading says, as rows write it. */
static json_t *ingress_json(const struct ingress *in)
{
    static const char *const sources[] = {"peer", "header", "forwarded_for"}, *const forms[] = {"address", "address_port"};
    json_t *own = json_array(), *viewer = json_object(), *fields = json_array();

    for (size_t i = 0; i < in->n_own_headers; i++)
        json_array_append_new(own, string_of(in->own_headers[i]));
    for (enum expr_source s = 0; s < EXPR_N_SOURCES; s++) {
        if (in->viewer[s].len > 0)
            json_object_set_new(viewer, expr_source_name(s), string_of(in->viewer[s]));
        if ((in->deployment.sources >> s & 1) != 0)
            json_array_append_new(fields, json_string(expr_source_name(s)));
    }
    return json_pack("{s:s, s:s, s:o, s:b, s:b, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "source", sources[in->source], "form", forms[in->form], "header",
                     string_of(in->client_ip_header), "reads_headers", in->reads_headers, "handshake", in->handshake, "trusted",
                     (int) in->trusted.n, "secrets", (int) in->n_secrets, "regex", (int) in->deployment.allow_regex, "secret_header",
                     string_of(in->secret_header), "own", own, "viewer", viewer, "fields", fields);
}

/* Only what the row lists is compared. */
static void check_meaning(const json_t *row, const struct ingress *in)
{
    json_t *got = ingress_json(in), *want;
    const char *name;

    CU_ASSERT_PTR_NOT_NULL_FATAL(got);
    json_object_foreach(json_object_get(row, "means"), name, want)
    {
        char *text = json_dumps(json_object_get(got, name), JSON_ENCODE_ANY | JSON_COMPACT);

        CASE_CHECK_GOT(row, json_equal(json_object_get(got, name), want), str_of(text == NULL ? name : text));
        free(text);
    }
    CASE_CHECK(row, in->deployment.unreadable == in->own_headers && in->deployment.n_unreadable == in->n_own_headers);
    json_decref(got);
}

static void settings(void)
{
    json_t *rows = cases_load("tests/cases/policy/ingress_settings.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const struct ingress_text text = ingress_text_of(row);
        struct ingress in = {.n_secrets = 77};
        const bool ok = ingress_read(&text, &arena, &in, &errors, &warnings);

        check_texts(row, "faults", &errors);
        CASE_CHECK(row, ok == (json_object_get(row, "faults") == NULL) && ok == (in.n_secrets != 77));
        if (ok) {
            check_texts(row, "warnings", &warnings);
            check_meaning(row, &in);
            CASE_CHECK(row, ingress_read(&text, &arena, &in, &errors, NULL));
        }
        start_over();
    }
    json_decref(rows);
}

/* Whoever gave the settings may take them back: what was read stands in the arena. */
static void copied(void)
{
    char source[] = "header:X-A", proxies[] = "10.0.0.0/8", viewer[] = "country=X-B", header[] = "X-C", secret[] = "0123456789abcdef";
    const struct ingress_text text = {
        .client_ip_source = source, .trusted_proxies = proxies, .viewer_headers = viewer, .secret_header = header, .secrets = secret};
    struct ingress in;

    CU_ASSERT_FATAL(ingress_read(&text, &arena, &in, &errors, &warnings));
    memset(source, '?', sizeof source);
    memset(viewer, '?', sizeof viewer);
    memset(header, '?', sizeof header);
    memset(secret, '?', sizeof secret);
    CU_ASSERT(str_eq(in.client_ip_header, STR("x-a")) && str_eq(in.viewer[EXPR_SOURCE_COUNTRY], STR("x-b")));
    CU_ASSERT(str_eq(in.secret_header, STR("x-c")) && str_eq(in.secrets[0], STR("0123456789abcdef")));
    start_over();
}

/* ---- requests ---- */

static void headers_of(const json_t *row, struct headers *out)
{
    const json_t *list = json_object_get(row, "headers");

    CU_ASSERT_FATAL(json_array_size(list) <= HEADERS_OF_ROW);
    for (out->n = 0; out->n < json_array_size(list); out->n++) {
        const json_t *pair = json_array_get(list, out->n);
        const json_t *value = json_array_get(pair, 1);

        out->items[out->n].name = str_of(json_string_value(json_array_get(pair, 0)));
        out->items[out->n].value = (struct str){json_string_value(value), json_string_length(value)};
    }
}

static void connection_of(const json_t *row, struct ingress_connection *c)
{
    const json_t *h = json_object_get(row, "handshake");

    *c = (struct ingress_connection){.tls = json_is_true(json_object_get(row, "tls")), .http_version = case_str(row, "version")};
    c->has_src = json_is_string(json_object_get(row, "src"));
    CU_ASSERT_FATAL(!c->has_src || addr_parse(case_str(row, "src"), &c->src));
    c->handshake.ja3 = case_str(h, "ja3");
    c->handshake.ja4 = case_str(h, "ja4");
    c->handshake.cert.present = json_is_true(json_object_get(h, "cert_present"));
    c->handshake.cert.verified = json_is_true(json_object_get(h, "cert_verified"));
    c->handshake.cert.subject = case_str(h, "cert_subject");
    c->handshake.cert.issuer = case_str(h, "cert_issuer");
    c->handshake.cert.serial = case_str(h, "cert_serial");
    c->handshake.cert.sha256 = case_str(h, "cert_sha256");
}

static void put_text(json_t *to, enum expr_source source, struct str value)
{
    if (value.len > 0)
        json_object_set_new(to, expr_source_name(source), string_of(value));
}

static void put_true(json_t *to, enum expr_source source, bool value)
{
    if (value)
        json_object_set_new(to, expr_source_name(source), json_true());
}

/* By the names of sources; what is absent or false is left out. */
static json_t *viewer_json(const struct expr_viewer *v)
{
    json_t *out = json_object();

    put_true(out, EXPR_SOURCE_SSL, v->ssl);
    put_text(out, EXPR_SOURCE_HTTP_VERSION, v->http_version);
    put_text(out, EXPR_SOURCE_COUNTRY, v->country);
    put_text(out, EXPR_SOURCE_CONTINENT, v->continent);
    if (v->has_asnum)
        json_object_set_new(out, expr_source_name(EXPR_SOURCE_ASNUM), json_integer(v->asnum));
    put_text(out, EXPR_SOURCE_JA3, v->ja3);
    put_text(out, EXPR_SOURCE_JA4, v->ja4);
    put_true(out, EXPR_SOURCE_CERT_PRESENT, v->cert.present);
    put_true(out, EXPR_SOURCE_CERT_VERIFIED, v->cert.verified);
    put_text(out, EXPR_SOURCE_CERT_SUBJECT, v->cert.subject);
    put_text(out, EXPR_SOURCE_CERT_ISSUER, v->cert.issuer);
    put_text(out, EXPR_SOURCE_CERT_SERIAL, v->cert.serial);
    put_text(out, EXPR_SOURCE_CERT_SHA256, v->cert.sha256);
    return out;
}

static void check_client(const json_t *row, const struct ingress_client *client)
{
    const struct str ip = case_str(row, "ip"), refusal = case_str(row, "refusal");
    char text[ADDR_TEXT_MAX];
    const struct str got = {text, addr_render(&client->ip, text)};
    json_t *viewer = viewer_json(&client->viewer), *none = json_object(), *want = json_object_get(row, "viewer");
    char *shown = json_dumps(viewer, JSON_COMPACT);

    CASE_CHECK_GOT(row, str_eq(str_of(identity_refusal_name(client->refusal)), refusal), str_of(identity_refusal_name(client->refusal)));
    CASE_CHECK_GOT(row, (client->refusal == IDENTITY_OK) == (ip.p != NULL) && (ip.p == NULL || str_eq(got, ip)), got);
    CASE_CHECK_GOT(row, json_equal(viewer, want == NULL ? none : want), str_of(shown == NULL ? "" : shown));
    CASE_CHECK(row, json_object_get(row, "peer_trusted") == NULL || json_is_true(json_object_get(row, "peer_trusted")) == client->peer_trusted);
    free(shown);
    json_decref(viewer);
    json_decref(none);
}

/* The same as identification says it. */
static void check_identity(const json_t *row, const struct ingress_client *client, const struct headers *headers)
{
    const struct identify_input input = {.method = STR("GET"), .url = STR("/"), .headers = headers, .client = client};
    struct identity id;

    identify(&input, &arena, &id);
    CASE_CHECK(row, (id.refused == DECISION_IDENTITY) == (client->refusal != IDENTITY_OK) && id.identity_refusal == client->refusal);
    CASE_CHECK(row, id.facts.has_ip == (client->refusal == IDENTITY_OK) && addr_cmp(&id.facts.ip, &client->ip) == 0);
    CASE_CHECK(row, id.facts.viewer.ssl == client->viewer.ssl && str_eq(id.facts.viewer.country, client->viewer.country));
}

static void requests(void)
{
    json_t *rows = cases_load("tests/cases/policy/ingress.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct header items[HEADERS_OF_ROW];
        struct headers headers = {.items = items};
        const struct ingress_text text = ingress_text_of(row);
        struct ingress_connection c;
        struct ingress_client client;
        struct ingress in;

        connection_of(row, &c);
        headers_of(row, &headers);
        if (CASE_CHECK_GOT(row, ingress_read(&text, &arena, &in, &errors, &warnings), errors.n > 0 ? str_of(errors.items[0].text) : STR_NONE)) {
            CU_ASSERT_FATAL(ingress_identify(&in, &c, &headers, &arena, &client));
            check_client(row, &client);
            check_identity(row, &client, &headers);
        }
        start_over();
    }
    json_decref(rows);
}

static void every_refusal_has_rows(void)
{
    json_t *rows = cases_load("tests/cases/policy/ingress.json"), *row;
    size_t i;

    for (enum identity_refusal r = IDENTITY_OK + 1; r < IDENTITY_REFUSAL_N; r++) {
        bool found = false;

        json_array_foreach(rows, i, row) found = found || str_eq(case_str(row, "refusal"), str_of(identity_refusal_name(r)));
        CU_ASSERT(found);
    }
    json_decref(rows);
}

/* ---- memory ---- */

static const struct ingress_text full_text = {.client_ip_source = "cloudfront",
                                              .trusted_proxies = "10.0.0.0/8,::1",
                                              .viewer_headers = "continent=X-Continent",
                                              .secret_header = "X-Secret",
                                              .secrets = "0123456789abcdef"};

static struct header full_request[] = {
    {STR("host"), STR("a.example")},
    {STR("cloudfront-viewer-address"), STR("192.0.2.1:4711")},
    {STR("cloudfront-viewer-country"), STR("DE")},
    {STR("cloudfront-viewer-asn"), STR("AS3320")},
    {STR("cloudfront-forwarded-proto"), STR("https")},
    {STR("x-continent"), STR("eu")},
    {STR("x-secret"), STR("0123456789abcdef")},
};

static bool identify_full(const struct ingress *in, struct arena *a, struct ingress_client *out)
{
    const struct headers headers = {.items = full_request, .n = sizeof full_request / sizeof full_request[0]};
    struct ingress_connection c = {.has_src = true};

    CU_ASSERT_FATAL(addr_parse(STR("10.1.2.3"), &c.src));
    return ingress_identify(in, &c, &headers, a, out);
}

static void takes_no_memory(void)
{
    struct ingress_client client;
    struct arena none;
    struct ingress in;

    CU_ASSERT_FATAL(ingress_read(&full_text, &arena, &in, &errors, &warnings));
    arena_init(&none, 4096, 1);
    CU_ASSERT(identify_full(&in, &none, &client) && client.refusal == IDENTITY_OK && client.viewer.ssl);
    full_request[2].value = STR("de");
    CU_ASSERT(!identify_full(&in, &none, &client));
    CU_ASSERT(identify_full(&in, &arena, &client) && str_eq(client.viewer.country, STR("DE")));
    full_request[2].value = STR("DE");
    arena_release(&none);
    start_over();
}

static void too_many_headers(void)
{
    static struct header items[HEADERS_MAX + 1];
    struct headers headers = {.items = items, .n = HEADERS_MAX + 1};
    const struct ingress_connection c = {.has_src = true};
    struct ingress_client client = {.refusal = IDENTITY_SECRET};
    struct ingress in;

    CU_ASSERT_FATAL(ingress_read(&full_text, &arena, &in, &errors, &warnings));
    CU_ASSERT(!ingress_identify(&in, &c, &headers, &arena, &client) && client.refusal == IDENTITY_SECRET);
    headers.n = HEADERS_MAX;
    CU_ASSERT(ingress_identify(&in, &c, &headers, &arena, &client));
    start_over();
}

static bool read_refused(void *arg, size_t n)
{
    struct ingress in = {.n_secrets = 77};

    (void) arg;
    refuse_memory(n);
    const bool ok = ingress_read(&full_text, &arena, &in, &errors, &warnings), refused = refuse_memory_end();
    CU_ASSERT(ok == !refused && (ok || (in.n_secrets == 77 && errors.n == 1 && errors.items[0].code == ERR_NO_MEMORY)));
    arena_release(&arena);
    start_over();
    return refused;
}

static void refused_anywhere(void)
{
    CU_ASSERT(refuse_memory_everywhere(read_refused, NULL) > 5);
}

void test_ingress_register(void)
{
    CU_pSuite s = CU_add_suite("ingress", set_up, tear_down);
    CU_add_test(s, "settings of ingress mean what they say, or each fault names its setting and shows no secret", settings);
    CU_add_test(s, "what was read does not depend on the texts any more", copied);
    CU_add_test(s, "a client is who trusted proxies say it is, and nobody where they do not say it well", requests);
    CU_add_test(s, "every refusal has rows", every_refusal_has_rows);
    CU_add_test(s, "a request in normal form takes no memory, and one that finds none is not let through", takes_no_memory);
    CU_add_test(s, "a request with more headers than there may be is nobody's", too_many_headers);
    CU_add_test(s, "settings are read whole or not at all wherever memory is refused", refused_anywhere);
}
