/* The choice by hash: the vectors that other implementations are held against. */
#include <CUnit/CUnit.h>

#include "common/base/digest.h"
#include "common/base/parse.h"

static const struct {
    const char *text;
    unsigned share;
} vectors[] = {
#define SAMPLING_VECTOR(text, share) {text, share},
#include "schemas/sampling_vectors.def"
#undef SAMPLING_VECTOR
};

static void each_text_falls_where_its_vector_says(void)
{
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        unsigned share = RATE_WHOLE;
        CU_ASSERT(digest_share(str_of(vectors[i].text), RATE_WHOLE, &share));
        CU_ASSERT_EQUAL(share, vectors[i].share);
    }
}

void test_digest_register(void)
{
    CU_pSuite s = CU_add_suite("digest", NULL, NULL);
    CU_add_test(s, "each text falls where its vector says", each_text_falls_where_its_vector_says);
}
