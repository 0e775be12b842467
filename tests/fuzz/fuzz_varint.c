/* Decodes varints from any bytes: nothing is read or consumed beyond them, and each value has one encoding. */
#include "tests/fuzz/fuzz.h"

#include "common/base/varint.h"
#include "tests/fuzz/guarantee.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};

    for (;;) {
        struct str before = in;
        char storage[VARINT_MAX_LEN];
        uint64_t value = 4242;
        struct buf b;

        if (!varint_get(&in, &value)) {
            GUARANTEE(in.p == before.p && in.len == before.len && value == 4242);
            return 0;
        }
        buf_init(&b, storage, sizeof(storage));
        varint_put(&b, value);
        GUARANTEE(!b.full && b.len == varint_len(value));
        GUARANTEE(str_eq(buf_str(&b), str_sub(before, 0, before.len - in.len)));
    }
}
