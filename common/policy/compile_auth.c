/* Issuers of tokens, and the auth settings of rules. */
#include "common/policy/compile_priv.h"
#include "common/policy/shapes_priv.h"

enum { AUDIENCES_MAX = 20, TEXT_MAX = 1024, FILE_NAME_MAX = 4096 };

static const char *const algorithm_names[] = {
#define ALGORITHM_ROW(id, name) name,
#include "schemas/jws_algorithms.def"
#undef ALGORITHM_ROW
    NULL};

/* What a claim is compared with. */
static bool check_text(const struct jx *j, struct str text)
{
    bool ok = text.len >= 1 && text.len <= TEXT_MAX;

    if (!ok)
        jx_fault(j, ERR_BAD_VALUE, "must have 1 to %d bytes, exactly as tokens have it", TEXT_MAX);
    return ok;
}

static bool read_audience(struct compile *c, const struct jx *j, struct str *text)
{
    (void) c;
    return check_text(j, *text);
}

bool compile_https_url(const struct jx *j, struct str *out)
{
    const char *fault;

    if (!jx_str(j, out))
        return false;
    fault = shape_https_fault(*out);
    if (fault)
        jx_fault(j, ERR_BAD_VALUE, "no usable https URL: %s", fault);
    return !fault;
}

/* Exactly one of URL and file. */
static void compile_key_source(struct compile *c, const struct jx *issuer, struct issuer *out)
{
    struct jx url = jx_member(issuer, "jwks_url"), file = jx_member(issuer, "jwks_file");

    if (!url.value && !file.value)
        jx_fault(&url, ERR_MISSING, "is required, or jwks_file: where the issuer's keys are");
    if (url.value && file.value)
        jx_fault(&file, ERR_CONFLICT, "an issuer has a jwks_url or a jwks_file, not both");
    compile_https_url(&url, &out->jwks_url);
    if (!jx_str(&file, &out->jwks_file))
        return;
    if (out->jwks_file.len > FILE_NAME_MAX || !str_starts(out->jwks_file, STR("/")))
        jx_fault(&file, ERR_BAD_VALUE, "must be an absolute path of at most %d bytes, such as \"/etc/edge/keys.json\"", FILE_NAME_MAX);
    else
        compile_unsupported(c, &file, "key files");
}

static void check_unique(const struct jx *j, struct str text, const struct issuer *issuers, size_t n, bool by_id)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(by_id ? issuers[i].id : issuers[i].issuer, text)) {
            jx_fault(j, ERR_DUPLICATE, "issuer %zu of this list has the same: tokens must lead to one issuer", i);
            return;
        }
}

/* issuers: with n before this one. */
static void compile_issuer(struct compile *c, const struct jx *j, struct issuer *issuers, size_t n)
{
    static const struct list_rules audience_rules = {.min = 1, .max = AUDIENCES_MAX, .what = "audience", .read = read_audience};
    struct issuer *out = &issuers[n];
    int i;

    if (!jx_is_object(j))
        return;
    compile_members(c, j, OBJECT_ISSUER);
    struct jx id = jx_member(j, "id"), issuer = jx_member(j, "issuer"), audiences = jx_member(j, "audiences"), algorithm = jx_member(j, "algorithm");
    struct str name, text;
    if (jx_need_str(&id, &name) && compile_check_name(&id, name)) {
        check_unique(&id, name, issuers, n, true);
        out->id = name;
    }
    if (jx_need_str(&issuer, &text) && check_text(&issuer, text)) {
        check_unique(&issuer, text, issuers, n, false);
        out->issuer = text;
    }
    compile_need_list(c, &audiences, &audience_rules, &out->audiences);
    compile_key_source(c, j, out);
    if (!algorithm.value)
        jx_fault(&algorithm, ERR_MISSING, "is required: the one algorithm of the issuer's tokens, such as \"RS256\"");
    else if (jx_enum(&algorithm, algorithm_names, &i))
        out->algorithm = (enum jws_algorithm) i;
}

static bool read_issuer_id(struct compile *c, const struct jx *j, struct str *text)
{
    for (size_t i = 0; i < c->policy->n_issuers; i++)
        if (str_eq(c->policy->issuers[i].id, *text))
            return true;
    jx_fault(j, ERR_UNKNOWN_REFERENCE, "auth.issuers has no issuer with the id \"%.*s\"", STR_ARG(str_cut_utf8(*text, 64)));
    return false;
}

/* A list of issuers' ids as bits. */
static uint32_t compile_accepted(struct compile *c, const struct jx *j, size_t min)
{
    const struct list_rules rules = {.min = min, .max = POLICY_ISSUERS_MAX, .what = "issuer's id", .read = read_issuer_id};
    struct str_list ids = {0};
    uint32_t bits = 0;

    compile_list(c, j, &rules, &ids);
    for (size_t i = 0; i < c->policy->n_issuers; i++)
        for (size_t k = 0; k < ids.n; k++)
            if (str_eq(c->policy->issuers[i].id, ids.items[k]))
                bits |= (uint32_t) 1 << i;
    return bits;
}

void compile_auth(struct compile *c, const struct jx *auth)
{
    if (!jx_is_object(auth))
        return;
    compile_members(c, auth, OBJECT_AUTH);
    struct jx list = jx_member(auth, "issuers"), default_accepted = jx_member(auth, "default_accepted");
    size_t n = jx_array_len(&list);
    if (n > POLICY_ISSUERS_MAX) {
        jx_fault(&list, ERR_LIMIT_EXCEEDED, "%zu issuers; at most %d are allowed", n, POLICY_ISSUERS_MAX);
        n = POLICY_ISSUERS_MAX;
    }
    struct issuer *issuers = ARENA_NEW_N(&c->policy->arena, n, struct issuer);
    if (!issuers) {
        compile_no_memory(&list);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct jx item = jx_item(&list, i);
        compile_issuer(c, &item, issuers, i);
    }
    c->policy->issuers = issuers;
    c->policy->n_issuers = n;
    c->policy->default_accepted = compile_accepted(c, &default_accepted, 0);
}

void compile_auth_setting(struct compile *c, const struct jx *auth, struct config_rule *out)
{
    static const char *const names[] = {"none", "optional", "required", NULL};
    static const enum auth_mode modes[] = {AUTH_NONE, AUTH_OPTIONAL, AUTH_REQUIRED};
    int i;

    if (!jx_is_object(auth))
        return;
    compile_members(c, auth, OBJECT_AUTH_SETTING);
    struct jx mode = jx_member(auth, "mode"), accepted = jx_member(auth, "accepted");
    if (!mode.value)
        jx_fault(&mode, ERR_MISSING, "is required: \"none\", \"optional\" or \"required\"");
    else if (jx_enum(&mode, names, &i))
        out->auth = modes[i];
    out->has_accepted = accepted.value != NULL;
    out->accepted = compile_accepted(c, &accepted, 1);
    if (out->auth == AUTH_NONE && accepted.value)
        jx_fault(&accepted, ERR_CONFLICT, "no token is looked at with mode \"none\": remove accepted, or use \"optional\" or \"required\"");
    if (out->auth != AUTH_OPTIONAL && out->auth != AUTH_REQUIRED)
        return;
    compile_unsupported(c, auth, "tokens of issuers");
    c->needs_default_accepted = c->needs_default_accepted || !accepted.value;
}

void compile_check_default_accepted(struct compile *c, const struct jx *auth)
{
    struct jx default_accepted = jx_member(auth, "default_accepted");

    if (c->needs_default_accepted && (!default_accepted.value || (json_is_array(default_accepted.value) && json_array_size(default_accepted.value) == 0)))
        jx_fault(&default_accepted, ERR_MISSING, "is required, since a rule asks for a token and names no accepted issuers: name them here or there");
}
