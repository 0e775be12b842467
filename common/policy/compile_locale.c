/* Locale settings of a document. */
#include "common/http/language_tag.h"
#include "common/http/locale.h"
#include "common/policy/compile_priv.h"

enum { TAGS_MAX = 100 };

/* Old programs write "_" for "-"; a policy shall not. */
static bool check_tag(const struct jx *j, struct str tag)
{
    struct language_tag read;
    bool ok = str_find_byte(tag, '_') == SIZE_MAX && language_tag_read(tag, &read);

    if (!ok)
        jx_fault(j, ERR_BAD_VALUE, "\"%.*s\" is no language tag: write one such as \"en\" or \"zh-Hant-TW\" (BCP 47), at most %d bytes",
                 STR_ARG(str_cut_utf8(tag, 64)), LANGUAGE_RANGE_MAX);
    return ok;
}

static bool read_tag(struct compile *c, const struct jx *j, struct str *text)
{
    (void) c;
    return check_tag(j, *text);
}

/* Among the first n. Language tags are the same in any case. SIZE_MAX: it is none of them. */
static size_t find_tag(const struct str_list *tags, struct str tag, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_nocase(tags->items[i], tag))
            return i;
    return SIZE_MAX;
}

/* False: faulty, and noted. */
static bool compile_supported(struct compile *c, const struct jx *j, struct str_list *out)
{
    static const struct list_rules rules = {.min = 1, .max = TAGS_MAX, .what = "language tag", .read = read_tag};
    bool ok = compile_need_list(c, j, &rules, out);

    for (size_t i = 0; ok && i < out->n; i++) {
        size_t other = find_tag(out, out->items[i], i);
        if (other == SIZE_MAX)
            continue;
        struct jx item = jx_item(j, i);
        jx_fault(&item, ERR_DUPLICATE, "\"%.*s\" is in this list already, as \"%.*s\"", STR_ARG(out->items[i]), STR_ARG(out->items[other]));
        ok = false;
    }
    return ok;
}

/* SIZE_MAX: faulty, and noted where the list is there to be held against. */
static size_t compile_fallback(const struct jx *j, const struct str_list *supported)
{
    struct str tag;

    if (!jx_need_str(j, &tag) || !check_tag(j, tag) || supported->n == 0)
        return SIZE_MAX;
    size_t at = find_tag(supported, tag, supported->n);
    if (at == SIZE_MAX)
        jx_fault(j, ERR_UNKNOWN_REFERENCE, "\"%.*s\" is none of the supported tags", STR_ARG(tag));
    return at;
}

void compile_locale(struct compile *c, const struct jx *locale)
{
    struct locale_settings *out = &c->policy->locale;

    c->has_locale = locale->value != NULL;
    if (!jx_is_object(locale))
        return;
    compile_members(c, locale, OBJECT_LOCALE);
    struct jx enabled = jx_member(locale, "enabled"), supported = jx_member(locale, "supported"), fallback = jx_member(locale, "default");
    (void) jx_bool(&enabled, &out->enabled);
    bool ok = compile_supported(c, &supported, &out->supported);
    size_t at = compile_fallback(&fallback, &out->supported);
    if (at == SIZE_MAX)
        return;
    out->fallback = out->supported.items[at];
    if (ok && !locale_matcher_make(&out->supported, at, &c->policy->arena, &out->matcher))
        compile_no_memory(locale);
}

void compile_locale_choice(struct compile *c, const struct jx *j, struct config_rule *out)
{
    bool on;

    if (!jx_bool(j, &on))
        return;
    out->locale = on ? TOGGLE_ON : TOGGLE_OFF;
    if (on && !c->has_locale)
        jx_fault(j, ERR_CONFLICT, "needs global.locale, which says what is chosen among");
}
