/* The shared corpus of policy documents: what the JSON Schemas of schemas/ are held to is what the compiler says. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/cases.h"
#include "tests/unit/policy_cases.h"

enum { FAULTS_MAX = 300 };
static struct errlist errors, warnings;

static int set_up(void)
{
    return errlist_init(&errors, FAULTS_MAX) && errlist_init(&warnings, FAULTS_MAX) ? 0 : 1;
}

static int tear_down(void)
{
    errlist_release(&errors);
    errlist_release(&warnings);
    return 0;
}

static bool was_found(const json_t *fault)
{
    for (size_t i = 0; i < errors.n; i++)
        if (str_eq(case_str(fault, "code"), str_of(err_code_name(errors.items[i].code))) && str_eq(case_str(fault, "path"), str_of(errors.items[i].path)))
            return true;
    return false;
}

/* The errors are exactly the row's faults, in any order. */
static void check_faults(const json_t *row)
{
    const json_t *wanted = json_object_get(row, "faults"), *fault;
    bool ok = json_array_size(wanted) == errors.n && errors.n_dropped == 0;
    size_t i;

    json_array_foreach(wanted, i, fault) ok = ok && was_found(fault);
    if (CASE_CHECK(row, ok))
        return;
    fputs("\n    found:", stderr);
    for (i = 0; i < errors.n; i++)
        fprintf(stderr, "\n      %s at \"%s\": %s", err_code_name(errors.items[i].code), errors.items[i].path, errors.items[i].text);
    fputc('\n', stderr);
}

static void compile(const json_t *row, const json_t *document)
{
    struct policy *p = NULL;
    bool compiled = policy_compile(document, &policy_options_any, &p, &errors, &warnings);

    CASE_CHECK(row, compiled == (errors.n == 0) && (p != NULL) == compiled);
    policy_free(&p);
}

static void check_rows(const char *file)
{
    json_t *rows = cases_load(file), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        json_t *document = policy_case_document(row);
        errors.n = errors.n_dropped = warnings.n = warnings.n_dropped = 0;
        compile(row, document);
        check_faults(row);
        json_decref(document);
    }
    json_decref(rows);
}

static void valid_rows(void)
{
    check_rows("tests/cases/policy/documents/valid.json");
}

static void invalid_rows(void)
{
    check_rows("tests/cases/policy/documents/invalid.json");
}

static void text_rows(void)
{
    static char bytes[1 << 18];
    json_t *rows = cases_load("tests/cases/policy/documents/texts.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        struct str text = json_object_get(row, "hex") ? case_bytes(row, "hex", bytes, sizeof bytes) : case_str(row, "text");
        json_t *document = NULL;
        struct err e = {0};

        errors.n = errors.n_dropped = warnings.n = warnings.n_dropped = 0;
        if (jx_parse(text, JX_DOCUMENT_MAX_BYTES, &document, &e))
            compile(row, document);
        else
            errlist_add_err(&errors, &e);
        check_faults(row);
        json_decref(document);
    }
    json_decref(rows);
}

void test_policy_documents_register(void);
void test_policy_documents_register(void)
{
    CU_pSuite s = CU_add_suite("policy_documents", set_up, tear_down);

    CU_add_test(s, "every document of the corpus that is a policy compiles", valid_rows);
    CU_add_test(s, "every other document has exactly the faults that the corpus lists, each at its place", invalid_rows);
    CU_add_test(s, "texts that are no JSON, or none that can be a policy, are refused with the reason", text_rows);
}
