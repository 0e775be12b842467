/* Fields and operators, from schemas/fields.def and schemas/operators.def. */
#include "spoa/cli/expr_fields.h"

enum { T_STRING = 1, T_INT = 2, T_IP = 4, T_BOOL = 8, T_SIGNAL = 16 };
enum { P_CONFIG = EXPR_CONFIG, P_RATE = EXPR_RATE, P_HEADERS = EXPR_HEADERS, P_ALL = P_CONFIG | P_RATE | P_HEADERS };

struct field {
    const char *name, *type, *key, *absent, *meaning;
    unsigned type_bit, phases;
    enum expr_source source;
    bool list, client;
};
static const struct field fields[] = {
#define FIELD_ROW(id, name, type, list, key, phases, source, client, absent, meaning) \
    {name, #type, #key, #absent, meaning, T_##type, phases, EXPR_SOURCE_##source, list, client},
#include "schemas/fields.def"
#undef FIELD_ROW
};
enum { N_FIELDS = sizeof fields / sizeof fields[0] };

struct operator {
    const char *name, *label;
    bool call, set, negated;
    unsigned types;
};
static const struct operator operators[] = {
#define OPERATOR_ROW(id, name, call, set, negated, types, label) {name, label, call, set, negated, types},
#include "schemas/operators.def"
#undef OPERATOR_ROW
};
enum { N_OPERATORS = sizeof operators / sizeof operators[0] };

static const struct {
    unsigned bit;
    const char *name;
} types[] = {{T_STRING, "string"}, {T_INT, "int"}, {T_IP, "ip"}, {T_BOOL, "bool"}, {T_SIGNAL, "signal"}},
  phases[] = {{P_CONFIG, "config"}, {P_RATE, "rate_limit"}, {P_HEADERS, "request_headers"}};
enum { N_TYPES = sizeof types / sizeof types[0], N_PHASES = sizeof phases / sizeof phases[0], WORD_MAX = 32 };

static const char *lower(const char *word, char out[static WORD_MAX])
{
    size_t i = 0;
    for (; word[i] != '\0' && i < WORD_MAX - 1; i++)
        out[i] = ascii_lower(word[i]);
    out[i] = '\0';
    return out;
}

static bool has_key(const struct field *f)
{
    return strcmp(f->key, "NONE") != 0;
}

static bool is_available(const struct field *f, const struct expr_deployment *d)
{
    return !expr_source_is_viewer(f->source) || (d->sources >> f->source & 1) != 0;
}

static bool takes(const struct field *f, const struct operator *o, const struct expr_deployment *d)
{
    return (o->types & f->type_bit) != 0 && (d->allow_regex || strcmp(o->name, "matches") != 0);
}

static const char *absent_text(const struct field *f)
{
    switch (f->absent[0]) {
    case 'M':
        return "absent: no value, so positive operators are false and negated ones true";
    case 'E':
        return "absent: the empty string";
    case 'F':
        return "absent: false";
    default:
        return "every request has it";
    }
}

static void print_field(FILE *f, const struct field *field, const struct expr_deployment *d)
{
    char word[WORD_MAX], key[WORD_MAX + 8] = "";
    if (has_key(field))
        snprintf(key, sizeof key, "[\"%s\"]", lower(field->key, word));
    fprintf(f, "%s%s  %s%s%s\n    %s\n    ", field->name, key, field->list ? "list of " : "", lower(field->type, word),
            is_available(field, d) ? "" : "  NOT AVAILABLE HERE: the deployment has no source for it", field->meaning);
    for (size_t i = 0, n = 0; i < N_PHASES; i++)
        if ((field->phases & phases[i].bit) != 0)
            fprintf(f, "%s%s", n++ > 0 ? ", " : "phases: ", phases[i].name);
    fprintf(f, "; source: %s%s; %s\n    ", expr_source_name(field->source), field->client ? " (the client chooses it freely)" : "",
            absent_text(field));
    for (size_t i = 0, n = 0; i < N_OPERATORS; i++)
        if (takes(field, &operators[i], d))
            fprintf(f, "%s%s", n++ > 0 ? " " : "operators: ", operators[i].name);
    fprintf(f, "\n\n");
}

void expr_fields_print(FILE *f, const struct expr_deployment *deployment)
{
    for (size_t i = 0; i < N_FIELDS; i++)
        print_field(f, &fields[i], deployment);
    for (size_t i = 0; i < N_OPERATORS; i++) {
        const struct operator *o = &operators[i];
        char form[64];
        snprintf(form, sizeof form, o->call ? "%s(field, value)" : o->set ? "field %s {value value}" : "field %s value", o->name);
        fprintf(f, "%-32s %s%s\n", form, o->label, o->negated ? "; true where the field has no value" : "");
    }
}

static json_t *field_json(const struct field *field, const struct expr_deployment *d)
{
    char type[WORD_MAX], key[WORD_MAX], absent[WORD_MAX];
    json_t *phase_names = json_array(), *operator_names = json_array();
    for (size_t i = 0; i < N_PHASES; i++)
        if ((field->phases & phases[i].bit) != 0)
            json_array_append_new(phase_names, json_string(phases[i].name));
    for (size_t i = 0; i < N_OPERATORS; i++)
        if (takes(field, &operators[i], d))
            json_array_append_new(operator_names, json_string(operators[i].name));
    return json_pack("{s:s, s:s, s:b, s:s?, s:o, s:s, s:b, s:b, s:s, s:o, s:s}", "name", field->name, "type", lower(field->type, type), "list",
                     (int) field->list, "key", has_key(field) ? lower(field->key, key) : NULL, "phases", phase_names, "source",
                     expr_source_name(field->source), "available", (int) is_available(field, d), "client", (int) field->client, "absent",
                     lower(field->absent, absent), "operators", operator_names, "meaning", field->meaning);
}

static json_t *operator_json(const struct operator *o)
{
    json_t *names = json_array();
    for (size_t i = 0; i < N_TYPES; i++)
        if ((o->types & types[i].bit) != 0)
            json_array_append_new(names, json_string(types[i].name));
    return json_pack("{s:s, s:b, s:b, s:b, s:o, s:s}", "name", o->name, "call", (int) o->call, "set", (int) o->set, "negated", (int) o->negated,
                     "types", names, "label", o->label);
}

json_t *expr_fields_json(const struct expr_deployment *deployment)
{
    json_t *all_fields = json_array(), *all_operators = json_array();
    for (size_t i = 0; i < N_FIELDS; i++)
        json_array_append_new(all_fields, field_json(&fields[i], deployment));
    for (size_t i = 0; i < N_OPERATORS; i++)
        json_array_append_new(all_operators, operator_json(&operators[i]));
    return json_pack("{s:o, s:o}", "fields", all_fields, "operators", all_operators);
}
