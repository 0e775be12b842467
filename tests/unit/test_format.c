/* The canonical form of policies, and what differs between two. */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "common/policy/diff.h"
#include "common/policy/format.h"
#include "common/policy/policy.h"
#include "tests/unit/cases.h"

/* The canonical text; the caller frees it. */
static char *format(const json_t *document)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    json_t *canonical = policy_canonical(document, FORMAT_AS_WRITTEN);

    CU_ASSERT_FATAL(f != NULL && canonical != NULL);
    CU_ASSERT(policy_format(canonical, f));
    fclose(f);
    json_decref(canonical);
    return text;
}

static void check_text(const json_t *row, const char *text)
{
    struct str rest = str_of(text);
    json_t *line;
    size_t i;

    json_array_foreach(json_object_get(row, "text"), i, line)
    {
        const size_t end = str_find_byte(rest, '\n');

        CASE_CHECK_GOT(row, end != SIZE_MAX && str_eq(str_sub(rest, 0, end), str_of(json_string_value(line))), rest);
        rest = str_sub(rest, end + 1, rest.len);
    }
    CASE_CHECK_GOT(row, rest.len == 0, rest);
}

static void formats(void)
{
    json_t *rows = cases_load("tests/cases/policy/formats.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        char *text = format(json_object_get(row, "document")), *again;
        json_t *back = NULL;
        struct err e;

        check_text(row, text);
        err_clear(&e);
        CU_ASSERT_FATAL(jx_parse(str_of(text), JX_DOCUMENT_MAX_BYTES, &back, &e));
        again = format(back);
        CASE_CHECK_GOT(row, strcmp(text, again) == 0, str_of(again));
        json_decref(back);
        free(again);
        free(text);
    }
    json_decref(rows);
}

static void diffs(void)
{
    json_t *rows = cases_load("tests/cases/policy/diffs.json"), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        json_t *changes = policy_diff(json_object_get(row, "old"), json_object_get(row, "new")), *wanted = json_object_get(row, "changes");
        char *got = json_dumps(changes, JSON_COMPACT);

        if (wanted != NULL)
            CASE_CHECK_GOT(row, json_equal(changes, wanted), str_of(got));
        else
            CASE_CHECK_GOT(row, json_array_size(changes) == (size_t) json_integer_value(json_object_get(row, "n_moved")), str_of(got));
        free(got);
        json_decref(changes);
    }
    json_decref(rows);
}

/* Takes the list's moved rules out of both orders and expects the rest to be in the same order. */
static void check_moves(const json_t *old, const json_t *new, const json_t *changes)
{
    json_t *change, *item;
    json_t *moved = json_object();
    size_t i, k = 0;

    json_array_foreach(changes, i, change) json_object_set(moved, json_string_value(json_object_get(change, "id")), change);
    json_array_foreach(json_object_get(new, "config_rules"), i, item)
    {
        const char *id = json_string_value(json_object_get(item, "id"));
        const json_t *other = NULL;

        if (json_object_get(moved, id) != NULL)
            continue;
        for (; k < json_array_size(json_object_get(old, "config_rules")); k++) {
            other = json_object_get(json_array_get(json_object_get(old, "config_rules"), k), "id");
            if (json_object_get(moved, json_string_value(other)) == NULL)
                break;
        }
        CU_ASSERT(other != NULL && strcmp(json_string_value(other), id) == 0);
        k++;
    }
    json_decref(moved);
}

static void moves(void)
{
    unsigned state = 7;

    for (int round = 0; round < 50; round++) {
        json_t *old = json_pack("{s:[]}", "config_rules"), *new = json_pack("{s:[]}", "config_rules"), *changes;
        json_t *rules = json_object_get(old, "config_rules"), *shuffled = json_object_get(new, "config_rules");

        for (int n = 0; n < POLICY_RULES_MAX; n++) {
            char id[16];

            snprintf(id, sizeof id, "r%d", n);
            json_array_append_new(rules, json_pack("{s:s}", "id", id));
            state = state * 1103515245u + 12345u;
            json_array_insert(shuffled, round < 25 && n > 5 ? (size_t) n : (state >> 16) % (unsigned) (n + 1), json_array_get(rules, (size_t) n));
        }
        changes = policy_diff(old, new);
        check_moves(old, new, changes);
        CU_ASSERT(round >= 25 || json_array_size(changes) < 6);
        json_decref(changes);
        json_decref(new);
        json_decref(old);
    }
}

static void same_policy(void)
{
    struct errlist errors, warnings;
    struct policy *a = NULL, *b = NULL;
    json_t *document = NULL, *back = NULL, *changes;
    struct err e;
    char *text;

    err_clear(&e);
    CU_ASSERT_FATAL(errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    CU_ASSERT_FATAL(jx_load("tests/cases/policy/full.json", JX_DOCUMENT_MAX_BYTES, &document, &e));
    text = format(document);
    CU_ASSERT_FATAL(jx_parse(str_of(text), JX_DOCUMENT_MAX_BYTES, &back, &e));
    CU_ASSERT(policy_compile(document, &policy_options_any, &a, &errors, &warnings) && policy_compile(back, &policy_options_any, &b, &errors, &warnings));
    changes = policy_diff(document, back);
    CU_ASSERT(json_array_size(changes) == 0);
    json_decref(changes);
    policy_free(&a);
    policy_free(&b);
    json_decref(back);
    json_decref(document);
    free(text);
    errlist_release(&errors);
    errlist_release(&warnings);
}

void test_format_register(void)
{
    CU_pSuite s = CU_add_suite("format", NULL, NULL);

    CU_add_test(s, "a document has one canonical text, and that text is its own canonical text", formats);
    CU_add_test(s, "a policy and its canonical text compile to the same, without a difference", same_policy);
    CU_add_test(s, "differences are told by id, name and member, expressions by their canonical text", diffs);
    CU_add_test(s, "what is not told as moved stands in the same order as before", moves);
}
