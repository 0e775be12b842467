/* Locale settings of a document. */
#include "common/policy/compile_priv.h"
#include "common/policy/shapes_priv.h"

enum { TAGS_MAX = 100 };

static bool check_tag(const struct jx *j, struct str tag)
{
    bool ok = shape_is_language(tag);

    if (!ok)
        jx_fault(j, ERR_BAD_VALUE, "\"%.*s\" is no language tag: write one such as \"en\" or \"zh-Hant-TW\" (BCP 47), at most %d bytes",
                 STR_ARG(str_cut_utf8(tag, 64)), SHAPE_LANGUAGE_MAX);
    return ok;
}

static bool read_tag(struct compile *c, const struct jx *j, struct str *text)
{
    (void) c;
    return check_tag(j, *text);
}

/* Language tags are the same in any case; *out is the one as the list has it. */
static bool find_tag(const struct str_list *tags, struct str tag, size_t before, struct str *out)
{
    for (size_t i = 0; i < tags->n && i < before; i++)
        if (str_eq_nocase(tags->items[i], tag)) {
            *out = tags->items[i];
            return true;
        }
    return false;
}

static void compile_supported(struct compile *c, const struct jx *j, struct str_list *out)
{
    static const struct list_rules rules = {.min = 1, .max = TAGS_MAX, .what = "language tag", .read = read_tag};
    struct str other;

    if (!compile_need_list(c, j, &rules, out))
        return;
    for (size_t i = 0; i < out->n; i++)
        if (find_tag(out, out->items[i], i, &other)) {
            struct jx item = jx_item(j, i);
            jx_fault(&item, ERR_DUPLICATE, "\"%.*s\" is in this list already, as \"%.*s\"", STR_ARG(out->items[i]), STR_ARG(other));
        }
}

void compile_locale(struct compile *c, const struct jx *locale)
{
    struct locale_settings *out = &c->policy->locale;

    c->has_locale = locale->value != NULL;
    if (!jx_is_object(locale))
        return;
    compile_members(c, locale, OBJECT_LOCALE);
    struct jx enabled = jx_member(locale, "enabled"), supported = jx_member(locale, "supported"), fallback = jx_member(locale, "default");
    struct str tag;
    if (jx_bool(&enabled, &out->enabled) && out->enabled)
        compile_unsupported(c, &enabled, "locales");
    compile_supported(c, &supported, &out->supported);
    if (jx_need_str(&fallback, &tag) && check_tag(&fallback, tag) && out->supported.n > 0 &&
        !find_tag(&out->supported, tag, SIZE_MAX, &out->fallback))
        jx_fault(&fallback, ERR_UNKNOWN_REFERENCE, "\"%.*s\" is none of the supported tags", STR_ARG(tag));
}

void compile_locale_choice(struct compile *c, const struct jx *j, struct config_rule *out)
{
    bool on;

    if (!jx_bool(j, &on))
        return;
    out->locale = on ? TOGGLE_ON : TOGGLE_OFF;
    if (!on)
        return;
    if (!c->has_locale)
        jx_fault(j, ERR_CONFLICT, "needs global.locale, which says what is chosen among");
    else
        compile_unsupported(c, j, "locales");
}
