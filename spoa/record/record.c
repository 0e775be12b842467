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

bool record_parse(struct str line, struct record *out)
{
    if (!fields_split(line, out->fields) || !str_eq(out->fields[RECORD_VERSION], STR("3")))
        return false;
    struct str rec = out->fields[RECORD_REC];
    out->has_rec = !is_absent(rec);
    if (!out->has_rec)
        return true;
    if (!rec_parse(rec, &out->rec))
        return false;
    out->decision = out->rec.decision;
    return is_absent(out->fields[RECORD_ENDED]) || rec_decision_find(out->fields[RECORD_ENDED], &out->decision);
}

int64_t record_number(const struct record *r, enum record_field field, int64_t fallback)
{
    uint64_t n;
    return parse_digits(r->fields[field], INT64_MAX, &n) ? (int64_t) n : fallback;
}
