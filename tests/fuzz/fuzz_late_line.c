/* Any line as one of HAProxy's: what is cut off is its end, and the record fits what an agent takes. */
#include "spoa/launcher/late_records.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str line = {(const char *)data, size};
    char storage[LATE_RECORD_MAX];
    struct late_line found;
    struct buf record;

    buf_init(&record, storage, sizeof(storage));
    if (!late_line_parse(line, &found, &record))
        return 0;
    GUARANTEE(!record.full && record.len > 0);
    GUARANTEE(found.len < line.len && str_starts(str_sub(line, found.len, line.len), STR(",\"edge.record\":\"")));
    return 0;
}
