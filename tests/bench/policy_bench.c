/* What the largest policies that may be written cost: one line of JSON for each kind of them. Each is measured in a process of its own, so
 * that the peak of memory is its own too. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/policy/policy.h"

enum { TEMPLATE_BYTES = 32 * 1024, RULES = POLICY_RULES_MAX };

/* --- Parts of documents. An expression is written up to EXPR_TEXT_MAX bytes; n makes each its own. --- */

static void put_paths(struct buf *b, size_t n)
{
    for (size_t i = 0; i < EXPR_CONDITIONS_MAX; i++) {
        buf_printf(b, "%shttp.request.uri.path wildcard \\\"/%zu/%zu/", i == 0 ? "" : " or ", n, i);
        for (size_t k = 0; k < 8; k++)
            buf_put_cstr(b, "a*bcdef/");
        buf_put_cstr(b, "\\\"");
    }
}

/* The shortest words there are, so that they are many. */
static void put_set(struct buf *b, size_t n)
{
    size_t begin = b->len;

    buf_printf(b, "http.request.uri.args[\\\"q%zu\\\"] in {", n);
    for (size_t i = 0; !b->full && b->len - begin < EXPR_TEXT_MAX; i++)
        buf_printf(b, "%s\\\"%zx\\\"", i == 0 ? "" : " ", i); /* a backslash is a byte of the document, not of the text */
    buf_put_cstr(b, "}");
}

static void put_addresses(struct buf *b, size_t n)
{
    size_t begin = b->len;

    buf_put_cstr(b, "ip.src in {");
    for (size_t i = 0; !b->full && b->len - begin < EXPR_TEXT_MAX - 16; i++)
        buf_printf(b, "%s%zu.%zu.%zu.%zu", i == 0 ? "" : " ", 1 + n % 200, i % 256, i / 256, (i * 2) % 256);
    buf_put_cstr(b, "}");
}

static void put_true(struct buf *b, size_t n)
{
    (void) n;
    buf_put_cstr(b, "http.host eq \\\"a\\\"");
}

struct kind_of_document {
    const char *name;
    void (*expression)(struct buf *b, size_t n);
    size_t n_rules; /* of each phase */
    const char *placeholder; /* what templates are full of; NULL: the few that must be */
    size_t n_templates;
    size_t n_cors;
    size_t note_bytes; /* in the values of header rules that are switched off */
};

static const struct kind_of_document documents[] = {
    {.name = "600 rules of 32 wildcards", .expression = put_paths, .n_rules = RULES},
    {.name = "600 rules of a set of short words", .expression = put_set, .n_rules = RULES},
    {.name = "600 rules of a set of addresses", .expression = put_addresses, .n_rules = RULES},
    {.name = "200 templates of text", .expression = put_true, .placeholder = "word ", .n_templates = POLICY_TEMPLATES_MAX},
    {.name = "200 templates of placeholders", .expression = put_true, .placeholder = "{{status}}", .n_templates = POLICY_TEMPLATES_MAX},
    {.name = "100 CORS policies of 300 long entries", .expression = put_true, .n_cors = 100},
    {.name = "header rules of 8 KiB values", .expression = put_true, .n_rules = RULES, .note_bytes = 8000},
    {.name = "600 rules of sets and 150 templates of placeholders", .expression = put_set, .n_rules = RULES, .placeholder = "{{status}}", .n_templates = 150},
};

static void put_rules(struct buf *b, const struct kind_of_document *d, const char *list, const char *rest)
{
    buf_printf(b, ",\"%s\":[", list);
    for (size_t i = 0; i < d->n_rules; i++) {
        buf_printf(b, "%s{\"id\":\"%c%zu\",\"expression\":\"", i == 0 ? "" : ",", list[2], i);
        d->expression(b, i);
        buf_printf(b, "\",%s}", rest);
    }
    buf_put_cstr(b, "]");
}

/* Header rules that are switched off may be larger than what one request takes. */
static void put_header_rules(struct buf *b, const struct kind_of_document *d)
{
    static char value[8193];

    memset(value, 'v', d->note_bytes);
    buf_put_cstr(b, ",\"request_header_rules\":[");
    for (size_t i = 0; i < d->n_rules; i++) {
        buf_printf(b, "%s{\"id\":\"h%zu\",\"enabled\":%s,\"expression\":\"", i == 0 ? "" : ",", i, d->note_bytes > 0 ? "false" : "true");
        d->expression(b, i);
        buf_put_cstr(b, "\",\"ops\":[");
        for (size_t k = 0; k < (d->note_bytes > 0 ? 4 : 1); k++)
            buf_printf(b, "%s{\"op\":\"set\",\"name\":\"x-a\",\"value\":\"%.*s\"}", k == 0 ? "" : ",", (int) d->note_bytes, value);
        buf_put_cstr(b, "]}");
    }
    buf_put_cstr(b, "]");
}

static void put_template(struct buf *b, const struct kind_of_document *d, const char *name, int status)
{
    buf_printf(b, "\"%s\":{\"status\":%d,\"content_type\":\"text/plain\",\"body\":\"x", name, status);
    size_t begin = b->len;
    while (d->placeholder && !b->full && b->len - begin + strlen(d->placeholder) < TEMPLATE_BYTES)
        buf_put_cstr(b, d->placeholder);
    buf_put_cstr(b, "\"}");
}

static void put_templates(struct buf *b, const struct kind_of_document *d)
{
    size_t n_spare = d->placeholder ? d->n_templates - KIND_N : 0;
    char name[32];

    buf_put_cstr(b, "\"responses\":{");
    for (int k = 0; k < KIND_N; k++) {
        put_template(b, d, kind_name((enum kind) k), kind_status((enum kind) k));
        buf_put_cstr(b, k + 1 < KIND_N ? "," : "");
    }
    for (size_t i = 0; i < n_spare; i++) {
        buf_put_cstr(b, ",");
        snprintf(name, sizeof name, "t%zu", i);
        put_template(b, d, name, 403);
    }
    buf_put_cstr(b, "},\"defaults\":{\"responses\":{");
    for (int k = 0; k < KIND_N; k++)
        buf_printf(b, "%s\"%s\":\"%s\"", k == 0 ? "" : ",", kind_name((enum kind) k), kind_name((enum kind) k));
    buf_put_cstr(b, "}}");
}

static void put_entries(struct buf *b, const char *list, const char *begin, size_t n_labels)
{
    static const char label[] = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn.";

    buf_printf(b, "\"%s\":[", list);
    for (size_t i = 0; i < 100; i++) {
        buf_printf(b, "%s\"%s", i == 0 ? "" : ",", begin);
        for (size_t k = 0; k < n_labels; k++)
            buf_put_cstr(b, label);
        buf_printf(b, "%zu\"", i);
    }
    buf_put_cstr(b, "]");
}

static void put_cors(struct buf *b, const struct kind_of_document *d)
{
    if (d->n_cors == 0)
        return;
    buf_put_cstr(b, ",\"cors_policies\":{");
    for (size_t i = 0; i < d->n_cors; i++) {
        buf_printf(b, "%s\"c%zu\":{", i == 0 ? "" : ",", i);
        put_entries(b, "origins", "https://", 4);
        buf_put_cstr(b, ",");
        put_entries(b, "request_headers", "x", 4);
        buf_put_cstr(b, ",");
        put_entries(b, "exposed_headers", "x", 4);
        buf_put_cstr(b, "}");
    }
    buf_put_cstr(b, "}");
}

static void put_document(struct buf *b, const struct kind_of_document *d)
{
    buf_put_cstr(b, "{\"schema\":6,\"version\":1,\"global\":{");
    put_templates(b, d);
    put_cors(b, d);
    buf_put_cstr(b, "}");
    put_rules(b, d, "config_rules", "\"settings\":{\"block\":\"log\"}");
    put_rules(b, d, "rate_limit_rules", "\"algorithm\":\"token_bucket\",\"limit\":1,\"period\":\"1s\",\"key\":[\"ip\"]");
    put_header_rules(b, d);
    buf_put_cstr(b, "}");
}

/* --- Measuring --- */

static int told(const struct kind_of_document *d, const struct errlist *errors)
{
    fprintf(stderr, "%s: no legal document: %s at \"%s\": %s\n", d->name, err_code_name(errors->items[0].code), errors->items[0].path,
            errors->items[0].text);
    return 1;
}

static double cpu_ms(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 + (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static int measure(const struct kind_of_document *d)
{
    static char storage[JX_DOCUMENT_MAX_BYTES];
    struct errlist errors, warnings;
    struct policy *p = NULL;
    json_t *document = NULL;
    struct rusage usage;
    struct buf b;
    struct err e;

    buf_init(&b, storage, sizeof storage);
    put_document(&b, d);
    err_clear(&e);
    if (b.full || !errlist_init(&errors, 0) || !errlist_init(&warnings, 0)) {
        fprintf(stderr, "%s: it is larger than a document may be, or there is no memory\n", d->name);
        return 1;
    }
    double begin_cpu_ms = cpu_ms();
    uint64_t begin_us = clock_mono_us(&clock_system);
    if (!jx_parse(buf_str(&b), JX_DOCUMENT_MAX_BYTES, &document, &e))
        errlist_add_err(&errors, &e);
    if (!document || !policy_compile(document, &policy_options_any, &p, &errors, &warnings))
        return told(d, &errors);
    uint64_t end_us = clock_mono_us(&clock_system);
    double end_cpu_ms = cpu_ms();
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"document\":\"%s\",\"document_bytes\":%zu,\"ms\":%.0f,\"cpu_ms\":%.0f,\"compiled_bytes\":%zu,\"peak_rss_bytes\":%ld}\n", d->name, b.len,
           (double) (end_us - begin_us) / 1000, end_cpu_ms - begin_cpu_ms, p->arena.used_bytes, usage.ru_maxrss * 1024);
    policy_free(&p);
    json_decref(document);
    errlist_release(&errors);
    errlist_release(&warnings);
    return 0;
}

int main(void)
{
    bool failed = false;

    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        int status = 1;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            return measure(&documents[i]);
        failed = child < 0 || waitpid(child, &status, 0) != child || status != 0 || failed;
    }
    return failed ? 1 : 0;
}
