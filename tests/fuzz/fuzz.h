/* What a fuzz target defines: it takes any bytes, returns 0, and crashes when a guarantee is broken. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The name is libFuzzer's. data is exactly size bytes long and freed by the caller. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
