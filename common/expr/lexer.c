/* Cuts an expression's text into tokens and knows their lines and columns. */
#include "common/expr/lexer_priv.h"

#include <stdarg.h>
#include <stdio.h>

bool place(struct err *e, struct pos pos)
{
    if (e->line == 0) {
        e->line = pos.line;
        e->column = pos.column;
    }
    return false;
}

bool fail_at(struct err *e, struct pos pos, enum err_code code, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX] = "";
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    err_set(e, code, "", "%s", text);
    return place(e, pos);
}

static struct pos here(const struct lexer *lx)
{
    return (struct pos){.line = lx->line, .column = (unsigned)(lx->at - lx->line_start + 1)};
}

/* Moves over n bytes, which may hold line ends. */
static void skip(struct lexer *lx, size_t n)
{
    for (size_t end = lx->at + n; lx->at < end; lx->at++) {
        if (lx->text.p[lx->at] == '\n') {
            lx->line++;
            lx->line_start = lx->at + 1;
        }
    }
}

bool lexer_init(struct lexer *lx, struct str text, struct arena *a, struct err *e)
{
    *lx = (struct lexer){.text = text, .arena = a, .line = 1};
    if (text.len > EXPR_TEXT_MAX)
        return err_set(e, ERR_LIMIT_EXCEEDED, "", "the expression has %zu bytes: at most %d are allowed", text.len,
                       EXPR_TEXT_MAX);
    while (lx->at < text.len) {
        size_t len = str_utf8_len(str_sub(text, lx->at, text.len));

        if (len == 0)
            return fail_at(e, here(lx), ERR_EXPR_SYNTAX, "this byte is not UTF-8: save the text as UTF-8");
        if (text.p[lx->at] == '\0')
            return fail_at(e, here(lx), ERR_EXPR_SYNTAX, "a NUL byte has no place in an expression");
        skip(lx, len);
    }
    *lx = (struct lexer){.text = text, .arena = a, .line = 1};
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool ends_word(char c)
{
    return is_blank(c) || c == '(' || c == ')' || c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == '"';
}

/* raw: between the quotes, every escape known to be right. */
static bool unescape(struct lexer *lx, struct str raw, struct str *out)
{
    char *p;
    size_t len = 0;

    if (str_find_byte(raw, '\\') == SIZE_MAX) {
        *out = raw;
        return true;
    }
    p = arena_take_bytes(lx->arena, raw.len);
    if (p == NULL)
        return false;
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.p[i] == '\\')
            i++;
        p[len++] = raw.p[i];
    }
    *out = (struct str){p, len};
    return true;
}

/* The lexer stands on the opening quote. */
static bool lex_string(struct lexer *lx, struct token *out, struct err *e)
{
    size_t start = lx->at;

    out->kind = TOKEN_STRING;
    skip(lx, 1);
    while (lx->at < lx->text.len && lx->text.p[lx->at] != '"') {
        size_t len = 1;

        if (lx->text.p[lx->at] == '\\' && lx->at + 1 < lx->text.len) {
            char escaped = lx->text.p[lx->at + 1];

            if (escaped != '"' && escaped != '\\')
                return fail_at(e, here(lx), ERR_EXPR_SYNTAX, "unknown escape: a string knows \\\" and \\\\ only");
            len = 2;
        }
        skip(lx, len);
    }
    if (lx->at == lx->text.len)
        return fail_at(e, out->pos, ERR_EXPR_SYNTAX, "this string has no closing quote");
    if (!unescape(lx, str_sub(lx->text, start + 1, lx->at), &out->value))
        return fail_at(e, out->pos, ERR_NO_MEMORY, "no memory for this string");
    skip(lx, 1);
    out->text = str_sub(lx->text, start, lx->at);
    if (lx->at < lx->text.len && (!ends_word(lx->text.p[lx->at]) || lx->text.p[lx->at] == '"'))
        return fail_at(e, here(lx), ERR_EXPR_SYNTAX,
                       "a blank is missing behind the string (inside of one, a quote is written \\\")");
    return true;
}

enum { QUOTED_SHOWN = 64 };

/* Quotes of other languages and of word processors around a text, where it stands in rest. */
static bool other_quotes(struct str rest, struct str *inside)
{
    static const struct {
        const char *open, *close;
    } quotes[] = {{"'", "'"}, {"`", "`"}, {"\xe2\x80\x9c", "\xe2\x80\x9d"}, {"\xe2\x80\x98", "\xe2\x80\x99"}};

    for (size_t i = 0; i < sizeof(quotes) / sizeof(quotes[0]); i++) {
        struct str open = str_of(quotes[i].open);

        if (!str_starts(rest, open))
            continue;
        *inside = str_sub(rest, open.len, rest.len);
        *inside = str_cut_utf8(str_sub(*inside, 0, str_find(*inside, str_of(quotes[i].close))), QUOTED_SHOWN);
        return true;
    }
    return false;
}

static bool lex_word(struct lexer *lx, struct token *out, struct err *e)
{
    size_t start = lx->at;
    struct str inside;

    out->kind = TOKEN_WORD;
    if (other_quotes(str_sub(lx->text, start, lx->text.len), &inside))
        return fail_at(e, out->pos, ERR_EXPR_SYNTAX, "strings stand in double quotes: write \"%.*s\"", STR_ARG(inside));
    while (lx->at < lx->text.len && !ends_word(lx->text.p[lx->at]))
        skip(lx, 1);
    out->text = str_sub(lx->text, start, lx->at);
    return true;
}

static void lex_mark(struct lexer *lx, struct token *out, enum token_kind kind)
{
    out->kind = kind;
    out->text = str_sub(lx->text, lx->at, lx->at + 1);
    skip(lx, 1);
}

bool lexer_next(struct lexer *lx, struct token *out, struct err *e)
{
    while (lx->at < lx->text.len && is_blank(lx->text.p[lx->at]))
        skip(lx, 1);
    *out = (struct token){.kind = TOKEN_END, .pos = here(lx)};
    if (lx->at == lx->text.len)
        return true;
    switch (lx->text.p[lx->at]) {
    case '(':
        lex_mark(lx, out, TOKEN_OPEN);
        break;
    case ')':
        lex_mark(lx, out, TOKEN_CLOSE);
        break;
    case '{':
        lex_mark(lx, out, TOKEN_SET_OPEN);
        break;
    case '}':
        lex_mark(lx, out, TOKEN_SET_CLOSE);
        break;
    case '[':
        lex_mark(lx, out, TOKEN_KEY_OPEN);
        break;
    case ']':
        lex_mark(lx, out, TOKEN_KEY_CLOSE);
        break;
    case ',':
        lex_mark(lx, out, TOKEN_COMMA);
        break;
    case '"':
        return lex_string(lx, out, e);
    default:
        return lex_word(lx, out, e);
    }
    return true;
}
