/* A row's member "facts" as what a request looks like to expressions. */
#ifndef TESTS_UNIT_EXPR_FACTS_H
#define TESTS_UNIT_EXPR_FACTS_H

#include <jansson.h>

#include "common/expr/expr.h"

/* facts: "host", "method", "path", "uri", "query", "ip", "locale", "verified_bot", "ssl", "http_version", "country",
 * "continent", "asnum", "ja3", "ja4", "cert" {"present", "verified", "subject", "issuer", "serial", "sha256"}, "headers"
 * [["name", "value"]...], "claims" {"name": ["value"...]}, "unreadable" ["name"...]; any other member ends the test. What is
 * left out is absent. Texts are borrowed from the row; the rest is in the arena. */
void expr_row_facts(const json_t *facts, struct arena *a, struct expr_facts *out);

/* The request's locale is tag, whatever its Accept-Language. */
void expr_facts_give_locale(struct expr_facts *f, struct str tag, struct arena *a);

#endif
