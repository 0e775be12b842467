/* The most frequent subjects of a stream in fixed memory: Space-Saving (Metwally, Agrawal, El Abbadi, 2005). */
#ifndef SPOA_RECORD_TOPK_H
#define SPOA_RECORD_TOPK_H

#include "common/base/str.h"

enum { TOPK_SUBJECTS = 256, TOPK_ID_MAX = 64, TOPK_HASH_LEN = 32, TOPK_DISPLAY_MAX = 160 };

/* A new subject replaces the smallest and inherits its count: whatever had more than 1/256 of all is in it, and a count is never too low; it
 * is too high by at most err. */
struct topk_entry {
    char rule[TOPK_ID_MAX + 1];
    char subject[TOPK_HASH_LEN + 1]; /* hex of its hash */
    char display[TOPK_DISPLAY_MAX];  /* the inside of a JSON string; ends in NUL */
    uint64_t count, err;
    uint64_t since; /* how many had come before it */
};

struct topk {
    struct topk_entry entries[TOPK_SUBJECTS];
    size_t n;
    uint64_t n_came;
};

void topk_clear(struct topk *t);
/* One more of a rule's subject, whose weight is what it stands for (a sampled one for several). What is too long for its place is cut, display never
 * inside an escape; a subject is rule and hash. */
void topk_add(struct topk *t, struct str rule, struct str subject, struct str display, uint64_t weight);
/* Entries by count, largest first, equal ones in the order they came in; returns how many, at most max. */
size_t topk_largest(const struct topk *t, const struct topk_entry **out, size_t max);

#endif
