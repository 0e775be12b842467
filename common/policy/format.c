/* From a document to its canonical values, and from those to text. */
#include "common/policy/format.h"

#include <stdlib.h>

#include "common/expr/expr.h"

enum { LINE_MAX_BYTES = 120, EXPRESSION_ARENA = 256 * 1024 };

/* Rows of the table; an object's row has no name and stands before its members. */
struct row {
    const char *object, *name, *type;
};
static const struct row rows[] = {
#define OBJECT_ROW(id, title, meaning) {#id, NULL, NULL},
#define MEMBER_ROW(object, name, type, need, dflt, schema, meaning) {#object, name, type},
#include "schemas/policy.def"
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static const char *const kinds[] = {
#define KIND_ROW(id, name, status, meaning) name,
#include "schemas/kinds.def"
#undef KIND_ROW
};

struct canonical {
    struct arena arena; /* of one expression at a time */
    enum format_expressions expressions;
    bool failed; /* no memory */
};

static json_t *canonical_value(struct canonical *c, const char *type, json_t *value);

static json_t *keep(struct canonical *c, json_t *value)
{
    c->failed |= value == NULL;
    return value;
}

static bool set(struct canonical *c, json_t *object, const char *name, json_t *value)
{
    c->failed |= json_object_set_new(object, name, value) != 0;
    return !c->failed;
}

/* The row of the object that is called name, N_ROWS when there is none. */
static size_t object_row(struct str name)
{
    size_t i = 0;
    while (i < N_ROWS && (rows[i].name != NULL || !str_eq(str_of(rows[i].object), name)))
        i++;
    return i;
}

static json_t *rendered(struct canonical *c, const struct expr *x)
{
    struct buf b;
    if (!arena_take_buf(&c->arena, EXPR_TEXT_MAX, &b))
        return keep(c, NULL);
    expr_render(x, &b);
    return keep(c, json_stringn(b.p, b.len));
}

/* What does not parse stays as it is: compile has refused it, or nobody asked. */
static json_t *canonical_expression(struct canonical *c, json_t *value)
{
    struct errlist errors;
    if (!errlist_init(&errors, 1))
        return keep(c, NULL);
    struct jx_doc doc = {.arena = &c->arena, .errors = &errors};
    const struct jx root = jx_root(value, &doc);
    const struct expr *x = expr_decode(&root, &c->arena);
    json_t *out;
    if (x == NULL)
        out = errors.n > 0 && errors.items[0].code == ERR_NO_MEMORY ? keep(c, NULL) : json_incref(value);
    else if (json_is_string(value) || c->expressions == FORMAT_AS_TEXT)
        out = rendered(c, x);
    else
        out = keep(c, expr_to_json(x));
    errlist_release(&errors);
    arena_reset(&c->arena);
    return out;
}

static json_t *canonical_object(struct canonical *c, size_t row, json_t *value)
{
    json_t *out = keep(c, json_object());
    const char *name;
    json_t *member;
    for (size_t i = row + 1; !c->failed && i < N_ROWS && rows[i].name != NULL; i++) {
        member = json_object_get(value, rows[i].name);
        if (member != NULL)
            set(c, out, rows[i].name, canonical_value(c, rows[i].type, member));
    }
    /* Names of older schemas, which the table does not have. */
    json_object_foreach(value, name, member) if (!c->failed && json_object_get(out, name) == NULL) set(c, out, name, json_incref(member));
    return out;
}

static json_t *canonical_kinds(struct canonical *c, json_t *value)
{
    json_t *out = keep(c, json_object());
    const char *name;
    json_t *member;
    for (size_t i = 0; !c->failed && i < sizeof kinds / sizeof kinds[0]; i++)
        if ((member = json_object_get(value, kinds[i])) != NULL)
            set(c, out, kinds[i], json_incref(member));
    json_object_foreach(value, name, member) if (!c->failed && json_object_get(out, name) == NULL) set(c, out, name, json_incref(member));
    return out;
}

static json_t *canonical_map(struct canonical *c, size_t row, json_t *value)
{
    json_t *out = keep(c, json_object());
    const char *name;
    json_t *member;
    json_object_foreach(value, name, member)
    {
        if (c->failed || !set(c, out, name, json_is_object(member) ? canonical_object(c, row, member) : json_incref(member)))
            break;
    }
    return out;
}

static json_t *canonical_list(struct canonical *c, size_t row, json_t *value)
{
    json_t *out = keep(c, json_array()), *item;
    size_t i;
    json_array_foreach(value, i, item)
    {
        if (c->failed)
            break;
        c->failed |= json_array_append_new(out, json_is_object(item) ? canonical_object(c, row, item) : json_incref(item)) != 0;
    }
    return out;
}

/* Recursion follows the table's objects, none of which is inside itself. */
static json_t *canonical_value(struct canonical *c, const char *type, json_t *value)
{
    const struct str t = str_of(type);
    const struct str inner = str_sub(t, 1, t.len - 1);
    if (str_eq(t, STR("expression")))
        return canonical_expression(c, value);
    if (json_is_object(value) && str_starts(t, STR("{kind: ")))
        return canonical_kinds(c, value);
    if (json_is_object(value) && str_starts(t, STR("{name: "))) {
        const size_t row = object_row(str_sub(inner, sizeof "name: " - 1, inner.len));
        return row < N_ROWS ? canonical_map(c, row, value) : json_incref(value);
    }
    const size_t row = object_row(inner);
    if (row < N_ROWS && type[0] == '{' && json_is_object(value))
        return canonical_object(c, row, value);
    if (row < N_ROWS && type[0] == '[' && json_is_array(value))
        return canonical_list(c, row, value);
    return json_incref(value);
}

json_t *policy_canonical(const json_t *document, enum format_expressions expressions)
{
    struct canonical c = {.expressions = expressions};
    const bool is_envelope = json_object_get(document, "active") != NULL;
    /* The copy is what jansson counts references on. */
    json_t *copy = json_deep_copy(document), *out;
    if (copy == NULL)
        return NULL;
    arena_init(&c.arena, EXPRESSION_ARENA, 0);
    out = canonical_value(&c, is_envelope ? "{ENVELOPE}" : "{CONFIG}", copy);
    arena_release(&c.arena);
    json_decref(copy);
    if (c.failed) {
        json_decref(out);
        return NULL;
    }
    return out;
}

static bool is_container(const json_t *value)
{
    return json_is_object(value) || json_is_array(value);
}

static bool holds_containers(const json_t *array)
{
    json_t *item;
    size_t i;
    json_array_foreach(array, i, item) if (is_container(item)) return true;
    return false;
}

/* Holds nothing but single values and lists of such. */
static bool is_flat(const json_t *value)
{
    const char *name;
    json_t *part;
    size_t i;
    json_array_foreach(value, i, part) if (json_is_object(part) || holds_containers(part)) return false;
    json_object_foreach((json_t *) (uintptr_t) value, name, part) if (json_is_object(part) || holds_containers(part)) return false;
    return true;
}

static void indent(FILE *f, size_t depth)
{
    fprintf(f, "%*s", (int) (2 * depth), "");
}

static bool put_name(FILE *f, const char *name, size_t *len)
{
    json_t *string = json_string(name);
    char *text = json_dumps(string, JSON_ENCODE_ANY);
    const bool ok = text != NULL && fprintf(f, "%s: ", text) >= 0;
    *len = ok ? strlen(text) + 2 : 0;
    free(text);
    json_decref(string);
    return ok;
}

/* used: bytes of the line before the value. Recursion is as deep as the document, which jx_parse bounds. */
static bool put(FILE *f, const json_t *value, size_t depth, size_t used)
{
    if (is_flat(value)) {
        char *line = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        const bool fits = line != NULL && (!is_container(value) || used + strlen(line) < LINE_MAX_BYTES);
        if (fits)
            fputs(line, f);
        free(line);
        if (fits || line == NULL)
            return line != NULL;
    }
    const char *name, *before = "\n";
    json_t *part;
    size_t i, len;
    bool ok = true;
    putc(json_is_object(value) ? '{' : '[', f);
    json_object_foreach((json_t *) (uintptr_t) value, name, part)
    {
        fputs(before, f);
        indent(f, depth + 1);
        ok = ok && put_name(f, name, &len) && put(f, part, depth + 1, 2 * (depth + 1) + len);
        before = ",\n";
    }
    json_array_foreach(value, i, part)
    {
        fputs(before, f);
        indent(f, depth + 1);
        ok = ok && put(f, part, depth + 1, 2 * (depth + 1));
        before = ",\n";
    }
    putc('\n', f);
    indent(f, depth);
    putc(json_is_object(value) ? '}' : ']', f);
    return ok;
}

bool policy_format(const json_t *document, FILE *f)
{
    const bool ok = put(f, document, 0, 0);
    putc('\n', f);
    return ok;
}
