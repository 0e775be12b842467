/* Holds a scrape against the rules of the Prometheus text format, for the tests of everything that writes one. */
#ifndef TESTS_UNIT_METRICS_CHECK_H
#define TESTS_UNIT_METRICS_CHECK_H

#include "common/base/str.h"

/* True when text is a valid scrape: UTF-8 lines; each family once, HELP then TYPE then only its own samples; counters and
 * no others end in _total; well-formed and unique label names, escaped values, numbers; no series twice, whatever the order
 * of its labels; a histogram without labels of its own, its buckets rising in le and in number up to +Inf, then a _count that equals it. Else why says the line and what is wrong with it. */
bool metrics_check(struct str text, char *why, size_t why_cap);

/* The value of a series as it is written ("name{a=\"b\"}"), as text; STR_NONE when it is not there. */
struct str metrics_find(struct str text, const char *series);

#endif
