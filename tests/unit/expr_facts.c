/* Facts from rows of data. */
#include "tests/unit/expr_facts.h"

#include <CUnit/CUnit.h>

#include "tests/unit/cases.h"

static struct str text_of(const json_t *value)
{
    CU_ASSERT_FATAL(json_is_string(value));
    return (struct str){json_string_value(value), json_string_length(value)};
}

static const struct headers *headers_of(const json_t *rows, struct arena *a)
{
    struct headers *out = ARENA_NEW(a, struct headers);
    const json_t *row;
    size_t i;

    CU_ASSERT_FATAL(out != NULL);
    out->items = ARENA_NEW_N(a, json_array_size(rows), struct header);
    CU_ASSERT_FATAL(out->items != NULL);
    json_array_foreach(rows, i, row) out->items[out->n++] =
        (struct header){text_of(json_array_get(row, 0)), text_of(json_array_get(row, 1))};
    return out;
}

static struct str *texts_of(const json_t *rows, struct arena *a)
{
    struct str *out = ARENA_NEW_N(a, json_array_size(rows), struct str);
    const json_t *row;
    size_t i;

    CU_ASSERT_FATAL(out != NULL);
    json_array_foreach(rows, i, row) out[i] = text_of(row);
    return out;
}

static const struct expr_claims *claims_of(json_t *rows, struct arena *a)
{
    struct expr_claims *out = ARENA_NEW(a, struct expr_claims);
    struct expr_claim *items = ARENA_NEW_N(a, json_object_size(rows), struct expr_claim);
    const char *name;
    json_t *values;

    CU_ASSERT_FATAL(out != NULL && items != NULL);
    json_object_foreach(rows, name, values) items[out->n++] =
        (struct expr_claim){str_of(name), texts_of(values, a), json_array_size(values)};
    out->items = items;
    return out;
}

static const struct expr_deployment *deployment_of(const json_t *unreadable, struct arena *a)
{
    struct expr_deployment *out = ARENA_NEW(a, struct expr_deployment);

    CU_ASSERT_FATAL(out != NULL);
    *out = expr_deployment_any;
    out->unreadable = texts_of(unreadable, a);
    out->n_unreadable = json_array_size(unreadable);
    return out;
}

static void read_cert(const json_t *cert, struct expr_viewer *out)
{
    out->cert.present = json_is_true(json_object_get(cert, "present"));
    out->cert.verified = json_is_true(json_object_get(cert, "verified"));
    out->cert.subject = case_str(cert, "subject");
    out->cert.issuer = case_str(cert, "issuer");
    out->cert.serial = case_str(cert, "serial");
    out->cert.sha256 = case_str(cert, "sha256");
}

static bool read_object(const char *name, json_t *value, struct arena *a, struct expr_facts *out)
{
    if (strcmp(name, "headers") == 0)
        out->headers = headers_of(value, a);
    else if (strcmp(name, "claims") == 0)
        out->claims = claims_of(value, a);
    else if (strcmp(name, "unreadable") == 0)
        out->deployment = deployment_of(value, a);
    else if (strcmp(name, "cert") == 0)
        read_cert(value, &out->viewer);
    else
        return false;
    return true;
}

static bool read_scalar(const char *name, const json_t *value, struct expr_facts *out)
{
    if (strcmp(name, "verified_bot") == 0) {
        out->verified_bot = json_is_true(value);
    } else if (strcmp(name, "ssl") == 0) {
        out->viewer.ssl = json_is_true(value);
    } else if (strcmp(name, "asnum") == 0) {
        out->viewer.asnum = json_integer_value(value);
        out->viewer.has_asnum = true;
    } else if (strcmp(name, "ip") == 0) {
        out->has_ip = addr_parse(text_of(value), &out->ip);
        CU_ASSERT_FATAL(out->has_ip);
    } else {
        return false;
    }
    return true;
}

static struct str given_locale(void *ctx, struct str accept_language)
{
    (void)accept_language;
    return *(const struct str *)ctx;
}

void expr_facts_give_locale(struct expr_facts *f, struct str tag, struct arena *a)
{
    struct str *kept = ARENA_NEW(a, struct str);

    CU_ASSERT_FATAL(kept != NULL);
    *kept = tag;
    f->locale = given_locale;
    f->locale_ctx = kept;
}

void expr_row_facts(const json_t *facts, struct arena *a, struct expr_facts *out)
{
    struct str locale = STR_NONE;
    const struct {
        const char *name;
        struct str *text;
    } texts[] = {
        {"host", &out->host},
        {"method", &out->method},
        {"path", &out->path},
        {"uri", &out->uri},
        {"query", &out->query},
        {"locale", &locale},
        {"http_version", &out->viewer.http_version},
        {"country", &out->viewer.country},
        {"continent", &out->viewer.continent},
        {"ja3", &out->viewer.ja3},
        {"ja4", &out->viewer.ja4},
    };
    json_t *copy = json_copy((json_t *)(uintptr_t)facts), *value;
    const char *name;

    CU_ASSERT_FATAL(expr_facts_begin(out, a));
    json_object_foreach(copy, name, value)
    {
        bool known = read_object(name, value, a, out) || read_scalar(name, value, out);

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
            if (strcmp(name, texts[i].name) == 0) {
                *texts[i].text = text_of(value);
                known = true;
            }
        CU_ASSERT_FATAL(known);
    }
    json_decref(copy);
    expr_facts_give_locale(out, locale, a);
}
