/* A scanner that goes from a document's text to the place of one value, past all others. */
#include "common/base/json_place.h"

/* One character of a JSON string: where it begins and ends in the text, and the bytes that it stands for. */
struct unit {
    size_t next;
    char bytes[4];
    size_t n;
};

static size_t skip_blanks(struct str text, size_t at)
{
    while (at < text.len && memchr(" \t\r\n", text.p[at], 4) != NULL)
        at++;
    return at;
}

static int hex_value(char c)
{
    if (ascii_is_digit(c))
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four hex digits behind "\u" at `at`. */
static bool read_escape(struct str text, size_t at, uint32_t *out)
{
    uint32_t code = 0;

    if (at + 6 > text.len || text.p[at] != '\\' || text.p[at + 1] != 'u')
        return false;
    for (size_t i = at + 2; i < at + 6; i++) {
        const int digit = hex_value(text.p[i]);

        if (digit < 0)
            return false;
        code = code << 4 | (uint32_t)digit;
    }
    *out = code;
    return true;
}

static void put_utf8(struct unit *u, uint32_t code)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    u->n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = u->n - 1; i > 0; i--, code >>= 6)
        u->bytes[i] = (char)(0x80 | (code & 0x3f));
    u->bytes[0] = (char)(u->n == 1 ? code : lead[u->n] | code);
}

static bool read_unicode(struct str text, size_t at, struct unit *u)
{
    uint32_t code, low;

    if (!read_escape(text, at, &code))
        return false;
    u->next = at + 6;
    if (code >= 0xd800 && code < 0xdc00 && read_escape(text, at + 6, &low) && low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        u->next = at + 12;
    }
    put_utf8(u, code);
    return true;
}

/* The unit at `at`, inside a string and not its closing quote. */
static bool read_unit(struct str text, size_t at, struct unit *u)
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *which;

    if (at >= text.len)
        return false;
    *u = (struct unit){.next = at + 1, .bytes = {text.p[at]}, .n = 1};
    if (text.p[at] != '\\')
        return true;
    if (at + 1 >= text.len)
        return false;
    if (text.p[at + 1] == 'u')
        return read_unicode(text, at, u);
    which = memchr(escapes, text.p[at + 1], sizeof(escapes) - 1);
    if (which == NULL)
        return false;
    u->bytes[0] = meant[which - escapes];
    u->next = at + 2;
    return true;
}

static size_t string_end(struct str text, size_t at)
{
    for (at++; at < text.len; at++) {
        if (text.p[at] == '"')
            return at + 1;
        at += text.p[at] == '\\';
    }
    return SIZE_MAX;
}

size_t json_place_end(struct str text, size_t at)
{
    size_t depth = 0, first = at;

    while (at < text.len) {
        const char c = text.p[at];

        if (c == '"') {
            at = string_end(text, at);
            if (at == SIZE_MAX)
                return SIZE_MAX;
        } else if (c == '[' || c == '{') {
            depth++;
            at++;
        } else if (c == ']' || c == '}') {
            if (depth == 0)
                return at > first ? at : SIZE_MAX;
            depth--;
            at++;
        } else if (depth == 0 && memchr(", \t\r\n:", c, 6) != NULL) {
            return at > first ? at : SIZE_MAX;
        } else {
            at++;
            continue; /* within a number or a word, which ends before one of the above */
        }
        if (depth == 0)
            return at;
    }
    return depth == 0 && at > first ? at : SIZE_MAX;
}

/* The next byte that a pointer's token stands for; false at its end. */
static bool next_of_token(struct str *token, char *out)
{
    if (token->len == 0)
        return false;
    *out = token->p[0];
    str_skip(token, 1);
    if (*out == '~' && token->len > 0) {
        *out = token->p[0] == '1' ? '/' : '~';
        str_skip(token, 1);
    }
    return true;
}

/* Whether the string at `at` is the token. */
static bool is_name(struct str text, size_t at, struct str token)
{
    struct unit u;
    char wanted;

    for (at++; at < text.len && text.p[at] != '"'; at = u.next) {
        if (!read_unit(text, at, &u))
            return false;
        for (size_t i = 0; i < u.n; i++)
            if (!next_of_token(&token, &wanted) || wanted != u.bytes[i])
                return false;
    }
    return token.len == 0;
}

enum step { STEP_FOUND, STEP_ABSENT, STEP_BROKEN };

/* Behind a value: *at goes to what follows the comma, or the container ends. */
static enum step next_part(struct str text, size_t *at, char end)
{
    *at = skip_blanks(text, *at);
    if (*at >= text.len || (text.p[*at] != ',' && text.p[*at] != end))
        return STEP_BROKEN;
    if (text.p[*at] == end)
        return STEP_ABSENT;
    *at = skip_blanks(text, *at + 1);
    return STEP_FOUND;
}

static enum step find_member(struct str text, size_t at, struct str token, struct json_place *out)
{
    at = skip_blanks(text, at + 1);
    if (at < text.len && text.p[at] == '}')
        return STEP_ABSENT;
    for (;;) {
        const size_t name = at;
        enum step next;

        if (at >= text.len || text.p[at] != '"')
            return STEP_BROKEN;
        at = string_end(text, at);
        at = at == SIZE_MAX ? text.len : skip_blanks(text, at);
        if (at >= text.len || text.p[at] != ':')
            return STEP_BROKEN;
        at = skip_blanks(text, at + 1);
        if (at < text.len && is_name(text, name, token)) {
            *out = (struct json_place){.name = name, .value = at};
            return STEP_FOUND;
        }
        at = json_place_end(text, at);
        if (at == SIZE_MAX || (next = next_part(text, &at, '}')) == STEP_BROKEN)
            return STEP_BROKEN;
        if (next == STEP_ABSENT)
            return STEP_ABSENT;
    }
}

/* An index in its one form, without leading zeros; SIZE_MAX for any other token, which no array has. */
static size_t index_of(struct str token)
{
    size_t n = 0;

    if (token.len == 0 || token.len > 9 || (token.p[0] == '0' && token.len > 1))
        return SIZE_MAX;
    for (size_t i = 0; i < token.len; i++) {
        if (!ascii_is_digit(token.p[i]))
            return SIZE_MAX;
        n = 10 * n + (size_t)(token.p[i] - '0');
    }
    return n;
}

static enum step find_item(struct str text, size_t at, struct str token, struct json_place *out)
{
    const size_t index = index_of(token);

    at = skip_blanks(text, at + 1);
    if (index == SIZE_MAX || (at < text.len && text.p[at] == ']'))
        return STEP_ABSENT;
    for (size_t i = 0;; i++) {
        enum step next;

        if (at >= text.len)
            return STEP_BROKEN;
        if (i == index) {
            *out = (struct json_place){.name = at, .value = at};
            return STEP_FOUND;
        }
        at = json_place_end(text, at);
        if (at == SIZE_MAX || (next = next_part(text, &at, ']')) == STEP_BROKEN)
            return STEP_BROKEN;
        if (next == STEP_ABSENT)
            return STEP_ABSENT;
    }
}

bool json_place_find(struct str text, struct str pointer, struct json_place *out)
{
    const size_t first = skip_blanks(text, 0);
    struct json_place at = {.name = first, .value = first};

    if (first == text.len)
        return false;
    while (pointer.len > 0 && !at.is_nearest) {
        const struct str rest = str_sub(pointer, 1, pointer.len), token = str_sub(rest, 0, str_find_byte(rest, '/'));
        enum step step = STEP_ABSENT;

        if (text.p[at.value] == '{')
            step = find_member(text, at.value, token, &at);
        else if (text.p[at.value] == '[')
            step = find_item(text, at.value, token, &at);
        if (step == STEP_BROKEN)
            return false;
        at.is_nearest = step == STEP_ABSENT;
        pointer = str_sub(rest, token.len, rest.len);
    }
    *out = at;
    return true;
}

size_t json_place_in_string(struct str text, size_t at, unsigned line, unsigned column)
{
    unsigned at_line = 1, at_column = 1;
    struct unit u;

    if (at >= text.len || text.p[at] != '"')
        return SIZE_MAX;
    for (at++; at < text.len; at = u.next) {
        if (at_line == line && at_column == column)
            return at;
        if (text.p[at] == '"' || !read_unit(text, at, &u))
            return SIZE_MAX;
        for (size_t i = 0; i < u.n; i++) {
            if (at_line == line && at_column == column)
                return at; /* inside of one character */
            at_column++;
            if (u.bytes[i] == '\n') {
                at_line++;
                at_column = 1;
            }
        }
    }
    return SIZE_MAX;
}

void json_place_position(struct str text, size_t offset, unsigned *line, unsigned *column)
{
    size_t line_start = 0;

    *line = 1;
    for (size_t i = 0; i < offset && i < text.len; i++)
        if (text.p[i] == '\n') {
            ++*line;
            line_start = i + 1;
        }
    *column = (unsigned)(offset - line_start + 1);
}
