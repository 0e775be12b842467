/* Errors: one fixed-size value for the first fault, and a bounded list for validators that report all faults at once. */
#ifndef COMMON_BASE_ERR_H
#define COMMON_BASE_ERR_H

#include "common/base/str.h"

/* Rows of schemas/errors.def. */
enum err_code {
    ERR_NONE = 0,
#define ERROR_ROW(id, name, http_status, meaning, remedy) ERR_##id,
#include "schemas/errors.def"
#undef ERROR_ROW
    ERR_N_CODES
};

enum { ERR_PATH_MAX = 512, ERR_TEXT_MAX = 512 };

/* line and column count from 1 and are 0 where they make no sense; a column counts bytes. */
struct err {
    enum err_code code;
    unsigned line, column;
    char path[ERR_PATH_MAX]; /* RFC 6901 JSON pointer; "" = the whole document */
    char text[ERR_TEXT_MAX]; /* what is wrong and what would be right, one line */
};

/* Stable lower-case name ("unknown_member") and the HTTP status an API answers with. ERR_NONE: "none", 200. */
const char *err_code_name(enum err_code code);
int err_code_http_status(enum err_code code);

void err_clear(struct err *e);
/* First error wins: a second set is ignored. Over-long texts and paths are cut between characters, control
 * characters become '?'. Always returns false: `return err_set(...)`. */
bool err_set(struct err *e, enum err_code code, const char *path, const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Faults in the order found. Beyond max the rest is only counted. Warnings use a list of their own. */
struct errlist {
    struct err *items;
    size_t n, max;
    size_t n_dropped;
};

/* max 0 = 100. False when memory is refused. */
MUSTUSE bool errlist_init(struct errlist *l, size_t max);
void errlist_release(struct errlist *l);
void errlist_add(struct errlist *l, enum err_code code, const char *path, const char *fmt, ...) PRINTF_LIKE(4, 5);
void errlist_add_err(struct errlist *l, const struct err *e);

#endif
