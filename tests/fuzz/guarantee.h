/* What a fuzz target states about its subject: a broken guarantee is printed and ends the run. */
#ifndef TESTS_FUZZ_GUARANTEE_H
#define TESTS_FUZZ_GUARANTEE_H

#include <stdio.h>
#include <stdlib.h>

#define GUARANTEE(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: broken guarantee: %s\n", __FILE__, __LINE__, #condition);                          \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
