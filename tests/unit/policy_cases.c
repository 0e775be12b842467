/* Rows about policies. */
#include "tests/unit/policy_cases.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/cases.h"

enum { KEY_MAX = 256, TEXT_MAX = 1 << 20 };

/* Cuts the last segment off pointer into key and returns the place before it. */
static json_t *parent_of(json_t *document, const char *pointer, char key[KEY_MAX])
{
    json_t *at = document;

    for (;;) {
        size_t len = strcspn(pointer + 1, "/");
        CU_ASSERT_FATAL(pointer[0] == '/' && len < KEY_MAX);
        memcpy(key, pointer + 1, len);
        key[len] = '\0';
        pointer += 1 + len;
        if (*pointer == '\0')
            return at;
        at = json_is_array(at) ? json_array_get(at, strtoul(key, NULL, 10)) : json_object_get(at, key);
        CU_ASSERT_FATAL(at != NULL);
    }
}

/* Takes value over. */
static void put(json_t *document, const char *pointer, json_t *value)
{
    char key[KEY_MAX];
    json_t *parent = parent_of(document, pointer, key);

    CU_ASSERT_FATAL((json_is_array(parent) ? json_array_set_new(parent, strtoul(key, NULL, 10), value) : json_object_set_new(parent, key, value)) == 0);
}

static void take_away(json_t *document, const char *pointer)
{
    char key[KEY_MAX];
    json_t *parent = parent_of(document, pointer, key);

    CU_ASSERT_FATAL((json_is_array(parent) ? json_array_remove(parent, strtoul(key, NULL, 10)) : json_object_del(parent, key)) == 0);
}

static json_t *repeated(const json_t *how)
{
    const char *part = json_string_value(json_array_get(how, 0));
    size_t n = (size_t) json_integer_value(json_array_get(how, 1)), len = strlen(part);
    char *text = malloc(n * len + 1);

    CU_ASSERT_FATAL(text != NULL && n * len < TEXT_MAX);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * len, part, len);
    json_t *value = json_stringn(text, n * len);
    free(text);
    return value;
}

/* template with every '#' replaced by number; free by the caller. */
static char *numbered(const char *template, size_t number)
{
    char *text = malloc(TEXT_MAX);
    struct buf b;

    CU_ASSERT_FATAL(text != NULL);
    buf_init(&b, text, TEXT_MAX - 1);
    for (; *template; template++) {
        if (*template == '#')
            buf_put_u64(&b, number);
        else
            buf_put_byte(&b, *template);
    }
    CU_ASSERT_FATAL(!b.full);
    text[b.len] = '\0';
    return text;
}

static json_t *filled(const json_t *how)
{
    json_t *list = json_array();
    char *template = json_dumps(json_array_get(how, 1), JSON_COMPACT | JSON_ENCODE_ANY);

    for (size_t i = 0; i < (size_t) json_integer_value(json_array_get(how, 0)); i++) {
        char *text = numbered(template, i);
        json_array_append_new(list, json_loads(text, JSON_DECODE_ANY, NULL));
        free(text);
    }
    free(template);
    return list;
}

static void add_members(json_t *document, const char *pointer, const json_t *how)
{
    char key[KEY_MAX];
    json_t *object = json_object_get(parent_of(document, pointer, key), key);

    CU_ASSERT_FATAL(json_is_object(object));
    for (size_t i = 0; i < (size_t) json_integer_value(json_array_get(how, 1)); i++) {
        char *name = numbered(json_string_value(json_array_get(how, 0)), i);
        json_object_set(object, name, json_array_get(how, 2));
        free(name);
    }
}

json_t *policy_case_document(const json_t *row)
{
    json_t *whole = json_object_get(row, "document"), *value;
    const char *base = json_string_value(json_object_get(row, "base")), *pointer;
    char file[128];
    size_t i;

    if (whole)
        return json_deep_copy(whole);
    snprintf(file, sizeof file, "tests/cases/policy/%s.json", base ? base : "full");
    json_t *document = json_load_file(file, JSON_REJECT_DUPLICATES, NULL);
    CU_ASSERT_FATAL(document != NULL);
    json_object_foreach(json_object_get(row, "set"), pointer, value) put(document, pointer, json_deep_copy(value));
    json_array_foreach(json_object_get(row, "remove"), i, value) take_away(document, json_string_value(value));
    json_object_foreach(json_object_get(row, "repeat"), pointer, value) put(document, pointer, repeated(value));
    json_object_foreach(json_object_get(row, "fill"), pointer, value) put(document, pointer, filled(value));
    json_object_foreach(json_object_get(row, "members"), pointer, value) add_members(document, pointer, value);
    return document;
}

static bool is_fault(const json_t *wanted, const struct err *got)
{
    struct str says = case_str(wanted, "says");
    const json_t *line = json_object_get(wanted, "line"), *column = json_object_get(wanted, "column");

    return str_eq(case_str(wanted, "code"), str_of(err_code_name(got->code))) && str_eq(case_str(wanted, "path"), str_of(got->path)) &&
           str_find(str_of(got->text), says) != SIZE_MAX && (!line || got->line == (unsigned) json_integer_value(line)) &&
           (!column || got->column == (unsigned) json_integer_value(column)) && got->text[0] != '\0';
}

void policy_case_check_faults(const json_t *row, const char *what, const json_t *wanted, const struct errlist *got)
{
    bool ok = json_array_size(wanted) == got->n && got->n_dropped == 0;

    for (size_t i = 0; ok && i < got->n; i++)
        ok = is_fault(json_array_get(wanted, i), &got->items[i]);
    if (CASE_CHECK(row, ok))
        return;
    fprintf(stderr, "\n    %s found:", what);
    for (size_t i = 0; i < got->n; i++)
        fprintf(stderr, "\n      %s at \"%s\" (%u:%u): %s", err_code_name(got->items[i].code), got->items[i].path, got->items[i].line, got->items[i].column,
                got->items[i].text);
    fputc('\n', stderr);
}

struct policy *policy_case_compile(const json_t *row)
{
    struct errlist errors, warnings;
    struct policy *p = NULL;

    CU_ASSERT_FATAL(errlist_init(&errors, 0) && errlist_init(&warnings, 0));
    json_t *document = policy_case_document(row);
    bool ok = policy_compile(document, &policy_options_any, &p, &errors, &warnings);
    if (!ok)
        policy_case_check_faults(row, "faults", NULL, &errors);
    CU_ASSERT_FATAL(ok);
    json_decref(document);
    errlist_release(&errors);
    errlist_release(&warnings);
    return p;
}
