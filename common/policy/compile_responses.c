/* Response templates, and which of them answers for each kind. */
#include "common/policy/compile_priv.h"
#include "common/policy/wire_max_priv.h"

enum { BODY_MAX = 32 * 1024, STATUS_MIN = 400, STATUS_MAX = 599, SCHEMA_OF_FORBIDDEN = 4 };

/* A page that HAProxy fills the request id into is no longer than the rendering, so these two bound all of them. */
_Static_assert((int) TEMPLATE_RENDERED_MAX <= (int) WIRE_VAR_BODY_MAX, "an answer's body fits its variable");
_Static_assert((int) TEMPLATE_RENDERED_MAX <= (int) WIRE_VAR_PAGE_BAD_GATEWAY_MAX, "a page fits its variable");

static const char *const kind_names[] = {
#define KIND_ROW(id, name, status, meaning) name,
#include "schemas/kinds.def"
#undef KIND_ROW
    NULL};

/* False when there was a fault. */
static bool compile_template(struct compile *c, const struct jx *j, struct template *out)
{
    struct jx status = jx_member(j, "status"), content_type = jx_member(j, "content_type"), body = jx_member(j, "body");
    struct str type_text = STR_NONE, body_text = STR_NONE;
    int64_t number = 0;

    if (!jx_is_object(j))
        return false;
    compile_members(c, j, OBJECT_RESPONSE);
    bool ok = compile_check_name(j, out->name);
    ok = jx_need_int(&status, STATUS_MIN, STATUS_MAX, &number) && ok;
    bool type_ok = jx_need_str(&content_type, &type_text);
    if (type_ok && !template_content_type_ok(type_text)) {
        jx_fault(&content_type, ERR_BAD_VALUE,
                 "must be application/json, application/problem+json, text/html or text/plain, each with or without \"; charset=utf-8\"");
        type_ok = false;
    }
    bool body_ok = jx_need_str(&body, &body_text);
    if (body_ok && body_text.len > BODY_MAX) {
        jx_fault(&body, ERR_LIMIT_EXCEEDED, "the body has %zu bytes; at most %d are allowed", body_text.len, BODY_MAX);
        return false;
    }
    if (!ok || !type_ok || !body_ok)
        return false;

    char path[ERR_PATH_MAX];
    struct err e;
    err_clear(&e);
    jx_path(&body, path);
    if (template_compile(body_text, (int) number, type_text, &c->policy->arena, out, path, &e))
        return true;
    errlist_add_err(c->errors, &e);
    return false;
}

void compile_templates(struct compile *c, const struct jx *responses)
{
    void *iter = NULL, *existing;
    struct jx member;

    if (!responses->value || !jx_is_object(responses))
        return;
    if (json_object_size(responses->value) > POLICY_TEMPLATES_MAX) {
        jx_fault(responses, ERR_LIMIT_EXCEEDED, "%zu templates; at most %d are allowed", json_object_size(responses->value), POLICY_TEMPLATES_MAX);
        return;
    }
    while (compile_next_member(responses, &iter, &member)) {
        struct template *t = ARENA_NEW(&c->policy->arena, struct template);
        if (!t || !arena_copy_str(&c->policy->arena, member.key, &t->name)) {
            compile_no_memory(&member);
            return;
        }
        if (!compile_template(c, &member, t))
            t->status = 0;
        if (!map_add(&c->templates, t->name, t, &existing)) {
            compile_no_memory(&member);
            return;
        }
    }
}

/* NULL: absent or a fault. */
static const struct template *chosen(struct compile *c, const struct jx *j, enum kind kind)
{
    struct str name;

    if (!jx_str(j, &name))
        return NULL;
    const struct template *t = map_get(&c->templates, name);
    if (!t) {
        jx_fault(j, ERR_UNKNOWN_REFERENCE, "global.responses has no template \"%.*s\"", STR_ARG(str_cut_utf8(name, 64)));
        return NULL;
    }
    if (t->status != 0 && t->status != kind_status(kind)) {
        jx_fault(j, ERR_BAD_VALUE, "template \"%.*s\" has status %d, but %s is answered with %d", STR_ARG(t->name), t->status, kind_name(kind),
                 kind_status(kind));
        return NULL;
    }
    return t;
}

void compile_template_choice(struct compile *c, const struct jx *responses, const struct template *out[KIND_N])
{
    if (!responses->value || !jx_is_object(responses))
        return;
    /* Schema 1 had a kind that nothing answers with any more: what it chooses is dropped, whatever it is. */
    compile_only_in_schema_1(c, responses, kind_names, "misdirected");
    if (json_object_get(responses->value, kind_name(KIND_FORBIDDEN)))
        compile_needs(c, SCHEMA_OF_FORBIDDEN);
    for (int k = 0; k < KIND_N; k++) {
        struct jx member = jx_member(responses, kind_names[k]);
        const struct template *t = chosen(c, &member, (enum kind) k);
        if (t)
            out[k] = t;
    }
}

/* Its name is none that a document can give. */
static const struct template *built_in_forbidden(struct compile *c, const struct jx *responses)
{
    struct template *t = ARENA_NEW(&c->policy->arena, struct template);
    struct err e;

    err_clear(&e);
    if (!t || !template_compile(STR("{\"error\":\"forbidden\",\"request_id\":\"{{request_id}}\"}"), kind_status(KIND_FORBIDDEN), STR("application/json"),
                                &c->policy->arena, t, "", &e)) {
        compile_no_memory(responses);
        return NULL;
    }
    t->name = STR("(built-in)");
    return t;
}

void compile_fill_defaults(struct compile *c, const struct jx *responses, const struct template *choice[KIND_N])
{
    for (int k = 0; k < KIND_N; k++) {
        struct jx member = jx_member(responses, kind_names[k]);
        if (member.value)
            continue;
        if (k == KIND_FORBIDDEN && !c->uses_schema_4)
            choice[k] = built_in_forbidden(c, responses);
        else if (k == KIND_FORBIDDEN)
            jx_fault(&member, ERR_MISSING, "is required, since this policy blocks: name a template with status %d", kind_status(KIND_FORBIDDEN));
        else
            jx_fault(&member, ERR_MISSING, "is required: name a template with status %d", kind_status((enum kind) k));
    }
}
