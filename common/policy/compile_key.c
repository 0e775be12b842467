/* What a limit counts by, as documents write it: rows of key_parts.def. */
#include "common/policy/compile_words_priv.h"

static const struct word_row rows[] = {
#define KEY_PART_ROW(id, name, named, source, client, distinct, meaning) {(name), (named), EXPR_SOURCE_##source},
#include "schemas/key_parts.def"
#undef KEY_PART_ROW
};

static const char *const names[] = {
#define KEY_PART_ROW(id, name, named, source, client, distinct, meaning) name,
#include "schemas/key_parts.def"
#undef KEY_PART_ROW
    NULL};

static const struct {
    bool is_clients, distinct;
} traits[] = {
#define KEY_PART_ROW(id, name, named, source, client, distinct, meaning) {(client), (distinct)},
#include "schemas/key_parts.def"
#undef KEY_PART_ROW
};

bool compile_key_part(struct compile *c, const struct jx *j, bool wants_distinct, struct key_part *out)
{
    static const struct words words = {.rows = rows, .names = names, .open = "\"", .close = "\"", .what = "part of a key"};
    struct key_part part = {0};
    struct str text;
    size_t row;

    if (!jx_str(j, &text) || !compile_word(c, j, text, &words, &row, &part.name))
        return false;
    if (wants_distinct ? !traits[row].distinct : row == KEY_PART_PATH) {
        jx_fault(j, ERR_BAD_VALUE, wants_distinct ? "different values of \"%s\" are not counted: use path, query:<name>, ip, asnum or ja4"
                                                  : "\"%s\" is for distinct_of only: a key of paths would give each path a limit of its own",
                 names[row]);
        return false;
    }
    part.kind = (enum key_part_kind) row;
    *out = part;
    return true;
}

bool key_part_eq(const struct key_part *a, const struct key_part *b)
{
    return a->kind == b->kind && str_eq(a->name, b->name);
}

bool key_part_is_clients(const struct key_part *part)
{
    return traits[part->kind].is_clients;
}
