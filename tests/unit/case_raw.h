/* A row's member as raw bytes: hostile input that JSON text can't hold stands in the member's "_hex" twin. */
#ifndef TESTS_UNIT_CASE_RAW_H
#define TESTS_UNIT_CASE_RAW_H

#include <stdio.h>

#include "tests/unit/cases.h"

/* Member name as it is, or <name>_hex decoded into out; STR_NONE when neither is there. */
static inline struct str case_raw(const json_t *row, const char *name, char *out, size_t cap)
{
    char twin[64];
    snprintf(twin, sizeof(twin), "%s_hex", name);
    return json_object_get(row, twin) != NULL ? case_bytes(row, twin, out, cap) : case_str(row, name);
}

#endif
