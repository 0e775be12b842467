/* Header values as documents write them: text cut at its placeholders. */
#include "common/policy/compile_words_priv.h"

enum { PLACEHOLDERS_MAX = 32 };

static const struct word_row rows[] = {
#define PLACEHOLDER_ROW(id, name, named, source, meaning) {(name), (named), EXPR_SOURCE_##source},
#include "schemas/placeholders.def"
#undef PLACEHOLDER_ROW
};

static const char *const names[] = {
#define PLACEHOLDER_ROW(id, name, named, source, meaning) name,
#include "schemas/placeholders.def"
#undef PLACEHOLDER_ROW
    NULL};

/* rest begins behind the "{{"; on success it is moved behind the "}}". */
static bool take_placeholder(struct compile *c, const struct jx *j, struct str *rest, struct value_part *out)
{
    static const struct words words = {.rows = rows, .names = names, .open = "{{", .close = "}}", .what = "placeholder"};
    size_t end = str_find(*rest, STR("}}")), row;
    struct str text = str_sub(*rest, 0, end), name;

    if (end == SIZE_MAX) {
        jx_fault(j, ERR_BAD_VALUE, "a \"{{\" without its \"}}\": it begins a placeholder such as {{client_ip}}");
        return false;
    }
    if (!compile_word(c, j, text, &words, &row, &name))
        return false;
    str_skip(rest, end + 2);
    *out = (struct value_part){.kind = (enum value_part_kind) (VALUE_LITERAL + 1 + row), .text = name};
    if (out->kind == VALUE_CLAIM)
        compile_unsupported(c, j, "the placeholder {{jwt_claim:...}}");
    return true;
}

static size_t count_placeholders(struct str text)
{
    size_t n = 0, at;

    for (; (at = str_find(text, STR("{{"))) != SIZE_MAX; n++)
        str_skip(&text, at + 2);
    return n;
}

void compile_value(struct compile *c, const struct jx *j, const struct value_part **out_parts, size_t *n_parts)
{
    struct str text;
    size_t n = 0;

    *out_parts = NULL;
    if (!jx_need_str(j, &text))
        return;
    if (!header_value_ok(text)) {
        jx_fault(j, ERR_BAD_VALUE, "no header value: at most 8 KiB, without control characters and without blanks at its ends");
        return;
    }
    size_t n_placeholders = count_placeholders(text);
    if (n_placeholders > PLACEHOLDERS_MAX) {
        jx_fault(j, ERR_LIMIT_EXCEEDED, "%zu placeholders; at most %d are allowed in a value", n_placeholders, PLACEHOLDERS_MAX);
        return;
    }
    struct value_part *parts = ARENA_NEW_N(&c->policy->arena, 2 * n_placeholders + 1, struct value_part);
    if (!parts) {
        compile_no_memory(j);
        return;
    }
    for (;;) {
        struct str literal = str_sub(text, 0, str_find(text, STR("{{")));
        if (literal.len > 0 || (text.len == 0 && n == 0))
            parts[n++] = (struct value_part){.kind = VALUE_LITERAL, .text = literal};
        str_skip(&text, literal.len);
        if (text.len == 0)
            break;
        str_skip(&text, 2);
        if (!take_placeholder(c, j, &text, &parts[n++]))
            return;
    }
    *out_parts = parts;
    *n_parts = n;
}
