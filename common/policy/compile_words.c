/* Header names and the words that stand for values of a request, as documents write them. */
#include "common/policy/compile_words_priv.h"

enum { WORD_NAME_MAX = 256, SHOWN_MAX = 64 };

#define SHOWN(s) STR_ARG(str_cut_utf8((s), SHOWN_MAX))

static bool is_unreadable(const struct expr_deployment *d, struct str name)
{
    for (size_t i = 0; i < d->n_unreadable; i++)
        if (header_names_alike(d->unreadable[i], name))
            return true;
    return false;
}

bool compile_header_name(struct compile *c, const struct jx *j, struct str name, enum name_use use, struct str *out)
{
    const char *verb = use == NAME_READ ? "reads" : "writes";

    if (!compile_read_header_name(c, j, &name))
        return false;
    if (header_name_reserved(name))
        jx_fault(j, ERR_RESERVED, "\"%.*s\" belongs to the edge or to the connection: no rule %s it", SHOWN(name), verb);
    else if (is_unreadable(c->options->deployment, name))
        jx_fault(j, ERR_RESERVED, "\"%.*s\" is what this deployment's sources speak through: no rule %s it", SHOWN(name), verb);
    else {
        *out = name;
        return true;
    }
    return false;
}

static bool take_name(struct compile *c, const struct jx *j, struct str kind, struct str name, struct str *out)
{
    if (str_eq(kind, STR("header")))
        return compile_header_name(c, j, name, NAME_READ, out);
    if (name.len > WORD_NAME_MAX)
        jx_fault(j, ERR_LIMIT_EXCEEDED, "a name of %zu bytes; at most %d are allowed", name.len, WORD_NAME_MAX);
    else if (str_eq(kind, STR("cookie")) && !str_is_token(name))
        jx_fault(j, ERR_BAD_VALUE, "\"%.*s\" is no cookie name: use letters, digits and !#$%%&'*+-.^_`|~", SHOWN(name));
    else if (arena_copy_str(&c->policy->arena, name, out))
        return true;
    else
        compile_no_memory(j);
    return false;
}

static bool find_row(const struct words *words, struct str kind, size_t *row)
{
    for (size_t i = 0; words->names[i]; i++) {
        if (!str_eq(kind, str_of(words->names[i])))
            continue;
        *row = i;
        return true;
    }
    return false;
}

static void fault_unknown(const struct jx *j, struct str text, struct str kind, const struct words *words)
{
    const char *near = str_nearest(kind, words->names);
    char list[ERR_TEXT_MAX];
    struct buf b;

    if (near) {
        jx_fault(j, ERR_BAD_VALUE, "%s%.*s%s is no %s; did you mean \"%s\"?", words->open, SHOWN(text), words->close, words->what, near);
        return;
    }
    buf_init(&b, list, sizeof list - 1);
    for (size_t i = 0; words->names[i]; i++) {
        buf_put_cstr(&b, i == 0 ? "" : ", ");
        buf_put_cstr(&b, words->names[i]);
        buf_put_cstr(&b, words->rows[i].named ? ":<name>" : "");
    }
    list[b.len] = '\0';
    jx_fault(j, ERR_BAD_VALUE, "%s%.*s%s is no %s: use one of %s", words->open, SHOWN(text), words->close, words->what, list);
}

bool compile_word(struct compile *c, const struct jx *j, struct str text, const struct words *words, size_t *row, struct str *name)
{
    size_t colon = str_find_byte(text, ':'), at = 0;
    struct str kind = str_sub(text, 0, colon), key = colon == SIZE_MAX ? STR_NONE : str_sub(text, colon + 1, text.len);

    if (!find_row(words, kind, &at)) {
        fault_unknown(j, text, kind, words);
        return false;
    }
    const struct word_row *found = &words->rows[at];
    if (found->named && key.len == 0) {
        jx_fault(j, ERR_BAD_VALUE, "%s%s%s needs a name: write %s%s:<name>%s", words->open, found->name, words->close, words->open, found->name, words->close);
        return false;
    }
    if (!found->named && colon != SIZE_MAX) {
        jx_fault(j, ERR_BAD_VALUE, "%s%.*s%s takes no name: write %s%s%s", words->open, SHOWN(text), words->close, words->open, found->name, words->close);
        return false;
    }
    if (expr_source_is_viewer(found->source) && (c->options->deployment->sources & 1u << found->source) == 0) {
        jx_fault(j, ERR_EXPR_FIELD_UNAVAILABLE, "%s%s%s has no source in this deployment: name one for %s in VIEWER_HEADERS", words->open, found->name,
                 words->close, expr_source_name(found->source));
        return false;
    }
    struct str taken = STR_NONE;
    if (found->named && !take_name(c, j, kind, key, &taken))
        return false;
    *row = at;
    *name = taken;
    return true;
}
