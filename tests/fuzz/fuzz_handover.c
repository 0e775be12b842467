/* What a connection begins with, as a hand-over: whole at one length only, and never more than its sender may have read. */
#include "spoa/record/handover.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str all = {(const char *) data, size};
    struct str rest = STR_NONE, before;
    if (size == 0)
        return 0;
    const enum handover found = handover_parse(all, &rest);
    GUARANTEE(found == HANDOVER_BAD || handover_begins(all));
    if (found == HANDOVER_WHOLE)
        GUARANTEE(rest.len <= HANDOVER_REST_MAX && rest.len < size && rest.p + rest.len == all.p + all.len);
    for (size_t n = 1; n < size; n++) {
        const enum handover earlier = handover_parse(str_sub(all, 0, n), &before);
        GUARANTEE(found == HANDOVER_BAD || earlier == HANDOVER_PART);
        GUARANTEE(earlier != HANDOVER_BAD || found == HANDOVER_BAD);
    }
    return 0;
}
