/* Wildcards: compiled to the literal pieces between their stars, matched from left to right without a step back. */
#include "common/expr/expr_priv.h"

/* Moves *rest behind its first byte, unescaped into *byte; *is_star tells a star that stands for any bytes. */
static bool next_byte(struct str *rest, char *byte, bool *is_star, struct err *e)
{
    *byte = rest->p[0];
    *is_star = *byte == '*';
    if (*byte == '\\') {
        if (rest->len < 2 || (rest->p[1] != '*' && rest->p[1] != '\\'))
            return err_set(e, ERR_BAD_VALUE, "",
                           "a backslash of a wildcard stands before * or \\ only: write \\\\ for one that means itself "
                           "(inside quotes every backslash is doubled once more)");
        *byte = rest->p[1];
        str_skip(rest, 1);
    }
    str_skip(rest, 1);
    if (*is_star && rest->len > 0 && rest->p[0] == '*')
        return err_set(e, ERR_BAD_VALUE, "", "** in a wildcard: one star is enough, it stands for any bytes, / too");
    return true;
}

static size_t count_bytes(struct str text, char byte)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.p[i] == byte;
    return n;
}

bool wildcard_compile(struct str text, bool strict, struct arena *a, struct wildcard *out, struct err *e)
{
    struct wildcard w = {.strict = strict, .n_pieces = 0};
    size_t len = 0, piece_start = 0;
    char *bytes;

    bytes = arena_take_bytes(a, text.len);
    w.pieces = ARENA_NEW_N(a, count_bytes(text, '*') + 1, struct str);
    if (bytes == NULL || w.pieces == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for this wildcard");
    while (text.len > 0) {
        bool is_star;
        char byte;

        if (!next_byte(&text, &byte, &is_star, e))
            return false;
        if (is_star) {
            w.pieces[w.n_pieces++] = (struct str){bytes + piece_start, len - piece_start};
            piece_start = len;
        } else {
            bytes[len++] = strict ? byte : ascii_lower(byte);
        }
    }
    w.pieces[w.n_pieces++] = (struct str){bytes + piece_start, len - piece_start};
    *out = w;
    return true;
}

/* piece is lower case where case does not count. */
static bool stands_at(const char *p, struct str piece, bool strict)
{
    if (strict)
        return piece.len == 0 || memcmp(p, piece.p, piece.len) == 0;
    for (size_t i = 0; i < piece.len; i++)
        if (ascii_lower(p[i]) != piece.p[i])
            return false;
    return true;
}

/* Where piece, which has no upper case, first stands in text, whatever the case there; SIZE_MAX: nowhere. It is searched
 * in lower-case copies of parts of the text, each of which begins where the last place of the one before it was. */
static size_t find_folded(struct str text, struct str piece)
{
    char lower[2 * EXPR_TEXT_MAX];

    for (size_t from = 0; from + piece.len <= text.len; from += sizeof(lower) - piece.len + 1) {
        struct str part = str_sub(text, from, from + sizeof(lower));
        size_t at;

        for (size_t i = 0; i < part.len; i++)
            lower[i] = ascii_lower(part.p[i]);
        at = str_find((struct str){lower, part.len}, piece);
        if (at != SIZE_MAX)
            return from + at;
    }
    return SIZE_MAX;
}

bool wildcard_matches(const struct wildcard *w, struct str text)
{
    struct str first = w->pieces[0], last = w->pieces[w->n_pieces - 1];

    if (w->n_pieces == 1)
        return text.len == first.len && stands_at(text.p, first, w->strict);
    if (text.len < first.len + last.len || !stands_at(text.p, first, w->strict) ||
        !stands_at(str_sub(text, text.len - last.len, text.len).p, last, w->strict))
        return false;
    text = str_sub(text, first.len, text.len - last.len);
    /* The leftmost place of each piece leaves most room to the ones behind it. */
    for (size_t i = 1; i + 1 < w->n_pieces; i++) {
        size_t at = w->strict ? str_find(text, w->pieces[i]) : find_folded(text, w->pieces[i]);

        if (at == SIZE_MAX)
            return false;
        text = str_sub(text, at + w->pieces[i].len, text.len);
    }
    return true;
}
