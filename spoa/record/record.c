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

bool record_parse(struct str line, struct record *out)
{
    if (!fields_split(line, out->fields) || !str_eq(out->fields[RECORD_VERSION], STR("2")))
        return false;
    struct str rec = out->fields[RECORD_REC];
    out->has_rec = rec.len > 0 && !str_eq(rec, STR("-"));
    return !out->has_rec || rec_parse(rec, &out->rec);
}

int64_t record_number(const struct record *r, enum record_field field, int64_t fallback)
{
    uint64_t n;
    return parse_digits(r->fields[field], INT64_MAX, &n) ? (int64_t) n : fallback;
}
