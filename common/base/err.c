/* Errors and bounded lists of them; names and HTTP statuses from schemas/errors.def. */
#include "common/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *err_code_name(enum err_code code)
{
    switch (code) {
#define ERROR_ROW(id, name, http_status, meaning, remedy) \
    case ERR_##id:                                                                                                     \
        return name;
#include "schemas/errors.def"
#undef ERROR_ROW
    case ERR_NONE:
    case ERR_N_CODES:
        break;
    }
    return "none";
}

int err_code_http_status(enum err_code code)
{
    switch (code) {
#define ERROR_ROW(id, name, http_status, meaning, remedy) \
    case ERR_##id:                                                                                                     \
        return http_status;
#include "schemas/errors.def"
#undef ERROR_ROW
    case ERR_NONE:
    case ERR_N_CODES:
        break;
    }
    return 200;
}

void err_clear(struct err *e)
{
    e->code = ERR_NONE;
    e->line = e->column = 0;
    e->path[0] = e->text[0] = '\0';
}

/* Texts quote hostile input and end on terminals: one line, no escape sequences. */
static void hide_controls(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

PRINTF_LIKE(4, 0) static void set(struct err *e, enum err_code code, const char *path, const char *fmt, va_list args)
{
    struct str where = str_cut_utf8(str_of(path), ERR_PATH_MAX - 1);
    /* One byte more than is kept shows whether the cut at the end splits a character. */
    char text[ERR_TEXT_MAX + 1] = "";
    struct str kept;

    vsnprintf(text, sizeof(text), fmt, args);
    kept = str_cut_utf8(str_of(text), ERR_TEXT_MAX - 1);
    err_clear(e);
    e->code = code;
    memcpy(e->text, kept.p, kept.len);
    e->text[kept.len] = '\0';
    memcpy(e->path, where.p, where.len);
    e->path[where.len] = '\0';
    hide_controls(e->text);
    hide_controls(e->path);
}

bool err_set(struct err *e, enum err_code code, const char *path, const char *fmt, ...)
{
    va_list args;

    if (e->code != ERR_NONE)
        return false;
    va_start(args, fmt);
    set(e, code, path, fmt, args);
    va_end(args);
    return false;
}

bool errlist_init(struct errlist *l, size_t max)
{
    if (max == 0)
        max = 100;
    *l = (struct errlist){.items = calloc(max, sizeof(struct err)), .max = max};
    return l->items != NULL;
}

void errlist_release(struct errlist *l)
{
    free(l->items);
    *l = (struct errlist){0};
}

void errlist_add(struct errlist *l, enum err_code code, const char *path, const char *fmt, ...)
{
    va_list args;

    if (l->n == l->max) {
        l->n_dropped++;
        return;
    }
    va_start(args, fmt);
    set(&l->items[l->n++], code, path, fmt, args);
    va_end(args);
}

void errlist_add_err(struct errlist *l, const struct err *e)
{
    if (l->n == l->max)
        l->n_dropped++;
    else
        l->items[l->n++] = *e;
}
