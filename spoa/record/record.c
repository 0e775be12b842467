/* Cuts an access record into its fields. */
#include "spoa/record/record.h"

#include "common/base/parse.h"

static bool fields_split(struct str line, struct str fields[static RECORD_N_FIELDS])
{
    for (size_t i = 0; i < RECORD_N_FIELDS; i++) {
        size_t tab = str_find_byte(line, '\t');
        bool last = i == RECORD_N_FIELDS - 1;
        if (last != (tab == SIZE_MAX))
            return false;
        fields[i] = str_sub(line, 0, tab);
        str_skip(&line, last ? line.len : tab + 1);
    }
    return true;
}

static bool is_absent(struct str field)
{
    return field.len == 0 || str_eq(field, STR("-"));
}

bool record_split(struct str line, struct record *out)
{
    if (!fields_split(line, out->fields) || !str_eq(out->fields[RECORD_VERSION], STR("4")))
        return false;
    out->has_rec = !is_absent(out->fields[RECORD_REC]);
    return !out->has_rec || rec_agent(out->fields[RECORD_REC], &out->agent);
}

bool record_read(struct record *r)
{
    struct str decision = r->fields[RECORD_DECISION];
    if (r->has_rec && !rec_parse(r->fields[RECORD_REC], &r->rec))
        return false;
    r->decision = r->has_rec ? r->rec.decision : DECISION_BAD_REQUEST;
    return is_absent(decision) || rec_decision_find(decision, &r->decision);
}

bool record_parse(struct str line, struct record *out)
{
    return record_split(line, out) && record_read(out);
}

bool record_dropped(struct str line, uint64_t *n)
{
    size_t blank = str_find_byte(line, ' ');
    if (blank == SIZE_MAX || line.p[line.len - 1] != '\0')
        return false;
    struct str what = str_sub(line, blank + 1, line.len - 1);
    bool said = str_eq(what, STR("events dropped")) || str_eq(what, STR("event dropped"));
    return said && parse_digits(str_sub(line, 0, blank), UINT32_MAX, n);
}

bool record_is_absent(const struct record *r, enum record_field field)
{
    return is_absent(r->fields[field]);
}

int64_t record_number(const struct record *r, enum record_field field, int64_t fallback)
{
    uint64_t n;
    return parse_digits(r->fields[field], INT64_MAX, &n) ? (int64_t) n : fallback;
}
