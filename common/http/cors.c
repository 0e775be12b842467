/* Decides CORS: what a response, and an answer to a preflight, says about who may read it. */
#include "common/http/cors.h"

static const struct str any = {"*", 1};

/* The entry; NULL: there is none. */
static const struct str *find(const struct str_list *list, struct str item)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->items[i], item))
            return &list->items[i];
    return NULL;
}

/* A list of lower case has it, in whatever case it is. As many names may be asked for as are listed, so each pair costs little: most names differ in
 * their length or at their end. */
static bool has_nocase(const struct str_list *list, struct str name)
{
    char last = ascii_lower(name.p[name.len - 1]);

    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].len == name.len && list->items[i].p[name.len - 1] == last && str_eq_nocase(list->items[i], name))
            return true;
    return false;
}

bool cors_is_preflight(struct str method, const struct headers *h)
{
    struct str value;

    return str_eq(method, STR("OPTIONS")) && headers_get(h, STR("origin"), &value) && headers_get(h, STR("access-control-request-method"), &value);
}

/* --- What a preflight asks for --- */

/* Fetch, "CORS-safelisted method": a browser sends these without the server's leave. */
static bool is_safelisted(struct str method)
{
    return str_eq(method, STR("GET")) || str_eq(method, STR("HEAD")) || str_eq(method, STR("POST"));
}

static bool allows_method(const struct cors_policy *p, const struct headers *h)
{
    struct str method;

    return headers_get_single(h, STR("access-control-request-method"), &method) && (is_safelisted(method) || find(&p->methods, method) != NULL || find(&p->methods, any) != NULL);
}

/* name is not empty. Fetch, "CORS non-wildcard request-header name": authorization has to be named. */
static bool allows_name(const struct cors_policy *p, bool all, struct str name)
{
    return (all && !str_eq_nocase(name, STR("authorization"))) || has_nocase(&p->request_headers, name);
}

/* One line of names. *n_left: how many more there may be. */
static bool allows_names(const struct cors_policy *p, bool all, struct str line, size_t *n_left)
{
    while (line.len > 0) {
        size_t comma = str_find_byte(line, ',');
        struct str name = str_trim(str_sub(line, 0, comma));

        if ((*n_left)-- == 0 || (name.len > 0 && !allows_name(p, all, name)))
            return false;
        str_skip(&line, comma < line.len ? comma + 1 : line.len);
    }
    return true;
}

static bool allows_headers(const struct cors_policy *p, const struct headers *h)
{
    const bool all = find(&p->request_headers, any) != NULL;
    size_t n_left = CORS_NAMES_MAX;

    for (size_t i = 0; i < h->n; i++)
        if (str_eq_nocase(h->items[i].name, STR("access-control-request-headers")) && !allows_names(p, all, h->items[i].value, &n_left))
            return false;
    return true;
}

/* --- What the response says --- */

static void add_unless_empty(struct response_edit *out, struct str name, struct str value)
{
    if (value.len > 0)
        response_edit_add(out, name, value);
}

void cors_respond(const struct cors_policy *p, const struct headers *h, bool preflight, struct response_edit *out)
{
    const bool fixed = p->origins.n == 1; /* "*" is such a one */
    struct str asked;
    const struct str *listed = p->any_origin ? p->origins.items : headers_get_single(h, STR("origin"), &asked) ? find(&p->origins, asked) : NULL;
    const struct str *allowed = fixed && !preflight ? p->origins.items : listed;
    const bool refused = allowed == NULL || (preflight && !(allows_method(p, h) && allows_headers(p, h)));

    out->cors = true;
    if (!fixed || (preflight && refused && !p->any_origin))
        response_edit_add(out, STR("vary"), STR("Origin"));
    if (refused)
        return;
    response_edit_add(out, STR("access-control-allow-origin"), *allowed);
    if (p->credentials)
        response_edit_add(out, STR("access-control-allow-credentials"), STR("true"));
    if (!preflight) {
        add_unless_empty(out, STR("access-control-expose-headers"), p->expose_headers);
        return;
    }
    add_unless_empty(out, STR("access-control-allow-methods"), p->allow_methods);
    add_unless_empty(out, STR("access-control-allow-headers"), p->allow_headers);
    add_unless_empty(out, STR("access-control-max-age"), p->max_age);
}
