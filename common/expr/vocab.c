/* The names that expressions are written with, from the tables, and what to say about a name that is not among them. */
#include "common/expr/hints_priv.h"

/* Columns of the tables as they are written there. */
enum { P_CONFIG = EXPR_CONFIG, P_RATE = EXPR_RATE, P_HEADERS = EXPR_HEADERS, P_ALL = P_CONFIG | P_RATE | P_HEADERS };

static const struct field_info fields[FIELD_N] = {
#define FIELD_ROW(id, name_, type_, list_, key_, phases_, source_, client_, absent_, meaning)                          \
    [FIELD_##id] = {.name = (name_),                                                                                   \
                    .type = T_##type_,                                                                                 \
                    .list = (list_),                                                                                   \
                    .key = KEY_##key_,                                                                                 \
                    .phases = (phases_),                                                                               \
                    .source = EXPR_SOURCE_##source_,                                                                   \
                    .client = (client_),                                                                               \
                    .absent = ABSENT_##absent_},
#include "schemas/fields.def"
#undef FIELD_ROW
};

static const struct operator_info operators[OP_N] = {
#define OPERATOR_ROW(id, name_, call_, set_, negated_, types_, label)                                                  \
    [OP_##id] = {.name = (name_), .call = (call_), .set = (set_), .negated = (negated_), .types = (types_)},
#include "schemas/operators.def"
#undef OPERATOR_ROW
};

static const struct signal_info signals[SIGNAL_N] = {
#define SIGNAL_ROW(id, name_, source_, meaning) [SIGNAL_##id] = {.name = (name_), .source = EXPR_SOURCE_##source_},
#include "schemas/signals.def"
#undef SIGNAL_ROW
};

static const struct {
    const char *name;
    bool viewer;
} sources[EXPR_N_SOURCES] = {
#define SOURCE_ROW(id, name_, viewer_, meaning) [EXPR_SOURCE_##id] = {.name = (name_), .viewer = (viewer_)},
#include "schemas/sources.def"
#undef SOURCE_ROW
};

const struct expr_deployment expr_deployment_any = {.sources = UINT32_MAX, .allow_regex = true};

const char *expr_source_name(enum expr_source s)
{
    return sources[s].name;
}

bool expr_source_is_viewer(enum expr_source s)
{
    return sources[s].viewer;
}

const struct signal_info *signal_info(enum signal_id s)
{
    return &signals[s];
}

size_t expr_n_signals(void)
{
    return SIGNAL_N;
}

const char *expr_signal_name(size_t i)
{
    return signals[i].name;
}

bool signal_find(struct str name, enum signal_id *out)
{
    for (size_t i = 0; i < SIGNAL_N; i++) {
        if (str_eq(name, str_of(signals[i].name))) {
            *out = (enum signal_id)i;
            return true;
        }
    }
    return false;
}

const struct field_info *field_info(enum field f)
{
    return &fields[f];
}

const struct operator_info *operator_info(enum op op)
{
    return &operators[op];
}

bool field_find(struct str name, enum field *out)
{
    for (size_t i = 0; i < FIELD_N; i++) {
        if (str_eq(name, str_of(fields[i].name))) {
            *out = (enum field)i;
            return true;
        }
    }
    return false;
}

bool operator_find(struct str name, enum op *out)
{
    for (size_t i = 0; i < OP_N; i++) {
        if (str_eq(name, str_of(operators[i].name))) {
            *out = (enum op)i;
            return true;
        }
    }
    return false;
}

enum { NAME_MAX_COMPARED = 64, NAME_SHOWN = 64 };

/* Edits (insert, delete, replace) from one name to the other, upper and lower case being equal. */
static size_t edit_distance(struct str a, struct str b)
{
    size_t row[NAME_MAX_COMPARED + 1];

    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t replaced = diagonal + (ascii_lower(a.p[i - 1]) != ascii_lower(b.p[j - 1]));
            size_t shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

            diagonal = row[j];
            row[j] = replaced < shorter ? replaced : shorter;
        }
    }
    return row[b.len];
}

static struct str last_part(struct str name)
{
    size_t dot;

    while ((dot = str_find_byte(name, '.')) != SIZE_MAX)
        name = str_sub(name, dot + 1, name.len);
    return name;
}

/* The one of names that wrong is likely meant to be: it ends in the same part ("http.path", "HOST"), else it is the one
 * with the fewest edits. NULL when more than a third of wrong would have to change. */
static const char *nearest(struct str wrong, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t best_distance = wrong.len / 3 + 1;

    if (wrong.len > NAME_MAX_COMPARED)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t distance = edit_distance(wrong, str_of(names[i]));

        if (str_eq_nocase(last_part(wrong), last_part(str_of(names[i]))))
            return names[i];
        if (distance < best_distance) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}

/* "a, b, c" of those that are not NULL. */
static void join(const char *const *names, size_t n, struct buf *b)
{
    for (size_t i = 0; i < n; i++) {
        if (names[i] == NULL)
            continue;
        if (b->len > 0)
            buf_put_cstr(b, ", ");
        buf_put_cstr(b, names[i]);
    }
}

/* What a message has room for besides its own words; the tables' names fit. */
enum { LIST_MAX = ERR_TEXT_MAX - 150 };

static bool did_you_mean(struct str name, const char *what, enum err_code code, const char *near, struct err *e)
{
    return err_set(e, code, "", "unknown %s \"%.*s\": did you mean \"%s\"?", what,
                   STR_ARG(str_cut_utf8(name, NAME_SHOWN)), near);
}

/* "http.request.headers.x-key" and the like: the keyed field before the dot. */
static bool dotted_key(struct str name, struct err *e)
{
    for (size_t i = 0; i < FIELD_N; i++) {
        struct str base = str_of(fields[i].name), key = str_sub(name, base.len + 1, name.len);

        if (fields[i].key == KEY_NONE || !str_starts(name, base) || key.len == 0 || name.p[base.len] != '.' ||
            (key.len <= NAME_MAX_COMPARED && edit_distance(key, STR("names")) <= 1))
            continue;
        err_set(e, ERR_EXPR_UNKNOWN_FIELD, "", "unknown field \"%.*s\": a key stands in brackets, write %s[\"%.*s\"]",
                STR_ARG(str_cut_utf8(name, NAME_SHOWN)), fields[i].name, STR_ARG(str_cut_utf8(key, NAME_SHOWN)));
        return true;
    }
    return false;
}

bool field_unknown(struct str name, struct err *e)
{
    const char *names[FIELD_N], *near = hint_field(name);
    enum field f;

    if (dotted_key(name, e))
        return false;
    for (size_t i = 0; i < FIELD_N; i++)
        names[i] = fields[i].name;
    if (near == NULL)
        near = nearest(name, names, FIELD_N);
    if (near == NULL)
        return err_set(e, ERR_EXPR_UNKNOWN_FIELD, "",
                       "unknown field \"%.*s\": `edge-spoa expr --fields` lists all fields, such as http.host, "
                       "http.request.method, http.request.uri.path, http.request.headers[\"name\"], ip.src",
                       STR_ARG(str_cut_utf8(name, NAME_SHOWN)));
    if (field_find(str_of(near), &f) && fields[f].key != KEY_NONE)
        return err_set(e, ERR_EXPR_UNKNOWN_FIELD, "", "unknown field \"%.*s\": did you mean %s[\"name\"]?",
                       STR_ARG(str_cut_utf8(name, NAME_SHOWN)), near);
    return did_you_mean(name, "field", ERR_EXPR_UNKNOWN_FIELD, near, e);
}

static bool unknown_of(struct str name, const char *what, enum err_code code, const char *const *names, size_t n,
                       struct err *e)
{
    const char *near = nearest(name, names, n);
    char storage[LIST_MAX];
    struct buf list;

    if (near != NULL)
        return did_you_mean(name, what, code, near, e);
    buf_init(&list, storage, sizeof(storage));
    join(names, n, &list);
    return err_set(e, code, "", "unknown %s \"%.*s\": known are %.*s", what, STR_ARG(str_cut_utf8(name, NAME_SHOWN)),
                   STR_ARG(buf_str(&list)));
}

/* The operator that a name may have been meant as; NULL: none. */
static const char *near_operator(struct str name)
{
    const char *names[OP_N], *near = hint_operator(name);

    for (size_t i = 0; i < OP_N; i++)
        names[i] = operators[i].name;
    return near != NULL ? near : nearest(name, names, OP_N);
}

bool operator_unknown(struct str name, struct err *e)
{
    const char *names[OP_N], *near = near_operator(name);

    for (size_t i = 0; i < OP_N; i++)
        names[i] = operators[i].name;
    if (near != NULL)
        return did_you_mean(name, "operator", ERR_EXPR_UNKNOWN_OPERATOR, near, e);
    return unknown_of(name, "operator", ERR_EXPR_UNKNOWN_OPERATOR, names, OP_N, e);
}

bool function_unknown(struct str name, struct err *e)
{
    const char *near = near_operator(name);

    if (near != NULL)
        return did_you_mean(name, "operator", ERR_EXPR_UNKNOWN_OPERATOR, near, e);
    return err_set(e, ERR_EXPR_UNKNOWN_OPERATOR, "",
                   "unknown function \"%.*s\": starts_with(field, \"text\") and ends_with(field, \"text\") are all there are; "
                   "everything else is written field operator value",
                   STR_ARG(str_cut_utf8(name, NAME_SHOWN)));
}

bool signal_unknown(struct str name, struct err *e)
{
    const char *names[SIGNAL_N];

    for (size_t i = 0; i < SIGNAL_N; i++)
        names[i] = signals[i].name;
    return unknown_of(name, "signal", ERR_BAD_VALUE, names, SIGNAL_N, e);
}

bool operator_takes(enum op op, enum field f, struct err *e)
{
    const char *names[OP_N];
    char storage[LIST_MAX];
    struct buf list;

    if ((operators[op].types & fields[f].type) != 0)
        return true;
    for (size_t i = 0; i < OP_N; i++)
        names[i] = (operators[i].types & fields[f].type) != 0 ? operators[i].name : NULL;
    buf_init(&list, storage, sizeof(storage));
    join(names, OP_N, &list);
    return err_set(e, ERR_EXPR_TYPE, "", "%s does not take %s: use one of %.*s", fields[f].name, operators[op].name,
                   STR_ARG(buf_str(&list)));
}
