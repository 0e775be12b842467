/* From bytes or a file to a document: everything that bounds jansson is checked before it sees the text. */
#include "common/base/jx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bounds jansson's memory for texts like "[[],[],...": a value costs it up to about 300 bytes, its text only three. */
enum { N_VALUES_MAX = 1000000 };

/* line and column of byte `at`, both from 1. */
static void set_position(struct err *e, struct str text, size_t at)
{
    size_t line_start = 0;

    e->line = 1;
    for (size_t i = 0; i < at && i < text.len; i++)
        if (text.p[i] == '\n') {
            e->line++;
            line_start = i + 1;
        }
    e->column = (unsigned)(at - line_start + 1);
}

/* Nesting and number of values, counted outside strings. Brackets that do not pair are left for the parser. */
static bool check_shape(struct str text, struct err *e)
{
    size_t depth = 0, n_values = 1, at;
    bool in_string = false;

    for (at = 0; at < text.len && depth <= JX_DEPTH_MAX && n_values <= N_VALUES_MAX; at++) {
        char c = text.p[at];

        if (in_string) {
            if (c == '\\')
                at++;
            else if (c == '"')
                in_string = false;
            continue;
        }
        if (c == '"')
            in_string = true;
        else if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && depth > 0)
            depth--;
        /* Each value but the first of its container stands behind a comma. */
        n_values += c == '[' || c == '{' || c == ',';
    }
    if (depth > JX_DEPTH_MAX)
        err_set(e, ERR_TOO_LARGE, "", "nested deeper than %d levels", JX_DEPTH_MAX);
    else if (n_values > N_VALUES_MAX)
        err_set(e, ERR_TOO_LARGE, "", "more than %d values", N_VALUES_MAX);
    else
        return true;
    set_position(e, text, at - 1);
    return false;
}

static bool check_utf8(struct str text, struct err *e)
{
    size_t at = 0;

    while (at < text.len) {
        size_t n = str_utf8_len(str_sub(text, at, text.len));

        if (n == 0) {
            err_set(e, ERR_SYNTAX, "", "not UTF-8: byte %zu is 0x%02x", at + 1, (unsigned char)text.p[at]);
            set_position(e, text, at);
            return false;
        }
        at += n;
    }
    return true;
}

/* The first line that is neither blank nor a # comment, trimmed. */
static struct str first_content(struct str text)
{
    while (text.len > 0) {
        size_t end = str_find_byte(text, '\n');
        struct str line = str_trim(str_sub(text, 0, end));

        if (line.len > 0 && line.p[0] != '#')
            return line;
        text = end == SIZE_MAX ? STR_NONE : str_sub(text, end + 1, text.len);
    }
    return STR_NONE;
}

static bool looks_like_yaml(struct str text)
{
    struct str line = first_content(text);
    size_t n = 0;

    if (str_starts(line, STR("---")))
        return true;
    while (n < line.len &&
           (ascii_is_alpha(line.p[n]) || ascii_is_digit(line.p[n]) || line.p[n] == '_' || line.p[n] == '-'))
        n++;
    return n > 0 && n < line.len && line.p[n] == ':' && (n + 1 == line.len || line.p[n + 1] == ' ');
}

/* jansson's own words, where they do not already say what to do. */
static bool set_parse_error(struct err *e, struct str text, const json_error_t *cause)
{
    enum err_code code = ERR_SYNTAX;
    const char *hint = "";
    size_t at = cause->position > 0 ? (size_t)cause->position : 0;

    switch (json_error_code(cause)) {
    case json_error_duplicate_key:
        code = ERR_DUPLICATE;
        break;
    case json_error_numeric_overflow:
        code = ERR_BAD_VALUE;
        hint = " (numbers are 64-bit)";
        break;
    case json_error_out_of_memory:
        code = ERR_NO_MEMORY;
        break;
    case json_error_null_character:
    case json_error_null_byte_in_key:
        hint = " (NUL characters are refused)";
        break;
    case json_error_end_of_input_expected:
        hint = " (one document only)";
        break;
    case json_error_premature_end_of_input:
        hint = " (the document ends too early)";
        break;
    case json_error_unknown:
    case json_error_stack_overflow:
    case json_error_cannot_open_file:
    case json_error_invalid_argument:
    case json_error_invalid_syntax:
    case json_error_invalid_utf8:
    case json_error_invalid_format:
    case json_error_wrong_type:
    case json_error_null_value:
    case json_error_item_not_found:
    case json_error_index_out_of_range:
        break;
    }
    if (code == ERR_SYNTAX && looks_like_yaml(text))
        hint = " (this looks like YAML; write JSON)";
    err_set(e, code, "", "not a JSON document: %s%s", cause->text, hint);
    if (code != ERR_NO_MEMORY)
        set_position(e, text, at > 0 ? at - 1 : 0);
    return false;
}

bool jx_parse(struct str text, size_t max_bytes, json_t **out, struct err *e)
{
    json_error_t cause;
    json_t *document;

    if (text.len > max_bytes)
        return err_set(e, ERR_TOO_LARGE, "", "larger than %zu bytes", max_bytes);
    if (str_trim(text).len == 0)
        return err_set(e, ERR_SYNTAX, "", "empty: a JSON document is wanted");
    if (str_starts(text, STR("\xef\xbb\xbf")))
        return err_set(e, ERR_SYNTAX, "", "begins with a byte order mark: save it as UTF-8 without one");
    if (!check_utf8(text, e) || !check_shape(text, e))
        return false;
    document = json_loadb(text.p, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &cause);
    if (document == NULL)
        return set_parse_error(e, text, &cause);
    *out = document;
    return true;
}

static bool unreadable(const char *file, int why, struct err *e)
{
    if (why == ENOENT || why == ENOTDIR)
        return err_set(e, ERR_UNREADABLE, "", "%s: there is no such file", file);
    if (why == EACCES || why == EPERM)
        return err_set(e, ERR_UNREADABLE, "", "%s: no permission to read it", file);
    if (why == ENXIO)
        return err_set(e, ERR_UNREADABLE, "", "%s: not a regular file", file);
    return err_set(e, ERR_UNREADABLE, "", "%s: cannot be read: %s", file, strerror(why));
}

static bool check_kind(const char *file, const struct stat *st, size_t max_bytes, struct err *e)
{
    if (S_ISDIR(st->st_mode))
        return err_set(e, ERR_UNREADABLE, "", "%s: is a directory, not a file", file);
    if (!S_ISREG(st->st_mode))
        return err_set(e, ERR_UNREADABLE, "", "%s: not a regular file", file);
    if ((uint64_t)st->st_size > max_bytes)
        return err_set(e, ERR_TOO_LARGE, "", "%s: larger than %zu bytes", file, max_bytes);
    return true;
}

/* Reads at most cap bytes, fewer only at the end of the file. */
static bool read_all(int fd, char *text, size_t cap, size_t *len)
{
    *len = 0;
    while (*len < cap) {
        ssize_t n = read(fd, text + *len, cap - *len);

        if (n == 0)
            break;
        if (n > 0)
            *len += (size_t)n;
        else if (errno != EINTR)
            return false;
    }
    return true;
}

bool jx_read(const char *file, size_t max_bytes, char **out, size_t *out_len, struct err *e)
{
    /* O_NONBLOCK: a FIFO without a writer must not hold us up before it is refused. */
    int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    struct stat st = {0};
    char *text = NULL;
    size_t len, cap;
    bool ok = false;

    if (fd < 0)
        return unreadable(file, errno, e);
    /* Should this fail, st stays of no kind, and that is refused. */
    fstat(fd, &st);
    if (!check_kind(file, &st, max_bytes, e))
        goto out;
    cap = (size_t)st.st_size + 1;
    text = malloc(cap);
    if (text == NULL)
        err_set(e, ERR_NO_MEMORY, "", "%s: no memory for %zu bytes", file, cap);
    else if (!read_all(fd, text, cap, &len))
        unreadable(file, errno, e);
    else if (len == cap)
        err_set(e, ERR_UNREADABLE, "", "%s: grew while it was read; write it aside and rename it", file);
    else if (len == 0)
        err_set(e, ERR_UNREADABLE, "", "%s: is empty", file);
    else
        ok = true;
    if (ok) {
        *out = text;
        *out_len = len;
        text = NULL;
    }
out:
    free(text);
    close(fd);
    return ok;
}

bool jx_load(const char *file, size_t max_bytes, json_t **out, struct err *e)
{
    char *text;
    size_t len;

    if (!jx_read(file, max_bytes, &text, &len, e))
        return false;
    const bool ok = jx_parse((struct str){text, len}, max_bytes, out, e);
    free(text);
    return ok;
}
