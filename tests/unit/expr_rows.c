/* What the tests of expressions share. */
#include "tests/unit/expr_rows.h"

#include <CUnit/CUnit.h>

#include "tests/unit/cases.h"

struct arena expr_arena;
struct errlist expr_errors, expr_warnings;

int expr_set_up(void)
{
    arena_init(&expr_arena, 4096, 0);
    return errlist_init(&expr_errors, 0) && errlist_init(&expr_warnings, 0) ? 0 : 1;
}

int expr_tear_down(void)
{
    errlist_release(&expr_errors);
    errlist_release(&expr_warnings);
    arena_release(&expr_arena);
    return 0;
}

void expr_forget(void)
{
    expr_errors.n = expr_errors.n_dropped = 0;
    expr_warnings.n = expr_warnings.n_dropped = 0;
    arena_reset(&expr_arena);
}

void expr_each_row(const char *file, void (*check)(const json_t *row))
{
    json_t *rows = cases_load(file), *row;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        check(row);
        expr_forget();
    }
    json_decref(rows);
}

const struct expr *expr_row_decode(const json_t *value)
{
    struct jx_doc doc = {.arena = &expr_arena, .errors = &expr_errors};
    struct jx root = jx_root(value, &doc);

    return expr_decode(&root, &expr_arena);
}

unsigned expr_row_number(const json_t *row, const char *name)
{
    return (unsigned)json_integer_value(json_object_get(row, name));
}

bool expr_row_says(const struct err *e, const json_t *wanted)
{
    const char *text = json_string_value(wanted);

    return text != NULL && strstr(e->text, text) != NULL;
}

void expr_row_check_list(const json_t *row, const char *member, const struct errlist *list, bool with_position)
{
    const json_t *wanted = json_object_get(row, member), *one;
    size_t i;

    CASE_CHECK_GOT(row, list->n == json_array_size(wanted), list->n > 0 ? str_of(list->items[0].text) : STR_NONE);
    json_array_foreach(wanted, i, one)
    {
        const struct err *e = &list->items[i];

        if (i >= list->n)
            break;
        CASE_CHECK_GOT(row, str_eq(case_str(one, "code"), str_of(err_code_name(e->code))), str_of(e->text));
        CASE_CHECK_GOT(row, str_eq(case_str(one, "path"), str_of(e->path)), str_of(e->path));
        CASE_CHECK_GOT(row, expr_row_says(e, json_object_get(one, "says")), str_of(e->text));
        if (with_position)
            CASE_CHECK_GOT(row, e->line == expr_row_number(one, "line") && e->column == expr_row_number(one, "column"),
                           str_of(e->text));
    }
}

void expr_row_check_errors(const json_t *row, bool with_position)
{
    expr_row_check_list(row, "errors", &expr_errors, with_position);
}

static uint32_t source_named(const char *name)
{
    for (int s = 0; s < EXPR_N_SOURCES; s++)
        if (strcmp(name, expr_source_name((enum expr_source)s)) == 0)
            return UINT32_C(1) << s;
    CU_FAIL_FATAL("a row names a source that is none");
    return 0;
}

struct expr_deployment expr_row_deployment(const json_t *row)
{
    const json_t *given = json_object_get(row, "deployment"), *item, *unreadable = json_object_get(given, "unreadable");
    struct expr_deployment d = expr_deployment_any;
    struct str *names;
    size_t i;

    if (given == NULL)
        return d;
    d = (struct expr_deployment){.allow_regex = json_is_true(json_object_get(given, "allow_regex"))};
    json_array_foreach(json_object_get(given, "sources"), i, item) d.sources |= source_named(json_string_value(item));
    names = ARENA_NEW_N(&expr_arena, json_array_size(unreadable), struct str);
    CU_ASSERT_FATAL(names != NULL);
    json_array_foreach(unreadable, i, item) names[i] = str_of(json_string_value(item));
    d.unreadable = names;
    d.n_unreadable = json_array_size(unreadable);
    return d;
}
