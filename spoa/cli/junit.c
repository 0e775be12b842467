/* JUnit XML. */
#include "spoa/cli/junit.h"

#include <stdlib.h>

#include "common/base/str.h"
#include "spoa/cli/test_text.h"

/* What XML 1.0 (2.2) has no form for, bytes that are no UTF-8 too, becomes '?'. */
static void put_escaped(FILE *f, const char *text)
{
    struct str s = str_of(text);
    while (s.len > 0) {
        const size_t n = str_utf8_len(s);
        const unsigned char c = (unsigned char) s.p[0];
        const bool is_no_character = n == 3 && c == 0xef && (unsigned char) s.p[1] == 0xbf && (unsigned char) s.p[2] >= 0xbe; /* U+FFFE, U+FFFF */
        if (n == 0 || is_no_character || c < 0x20)
            putc('?', f);
        else if (c == '&')
            fputs("&amp;", f);
        else if (c == '<')
            fputs("&lt;", f);
        else if (c == '>')
            fputs("&gt;", f);
        else if (c == '"')
            fputs("&quot;", f);
        else
            fwrite(s.p, 1, n, f);
        str_skip(&s, n == 0 ? 1 : n);
    }
}

static void put_failures(FILE *f, const json_t *failures)
{
    for (size_t i = 0; i < json_array_size(failures); i++) {
        char *text = test_text_failure(json_array_get(failures, i));
        fputs("      <failure message=\"", f);
        put_escaped(f, text != NULL ? text : "no memory to tell");
        fputs("\"/>\n", f);
        free(text);
    }
}

static void put_case(FILE *f, const char *suite, const json_t *result)
{
    const json_t *failures = json_object_get(result, "failures");
    fputs("    <testcase classname=\"", f);
    put_escaped(f, suite);
    fputs("\" name=\"", f);
    put_escaped(f, json_string_value(json_object_get(result, "name")));
    if (json_array_size(failures) == 0) {
        fputs("\"/>\n", f);
        return;
    }
    fputs("\">\n", f);
    put_failures(f, failures);
    fputs("    </testcase>\n", f);
}

void junit_print(FILE *f, const char *name, const json_t *report)
{
    const json_t *results = json_object_get(report, "results");
    const json_int_t n_failed = json_integer_value(json_object_get(report, "failed"));
    fprintf(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"%zu\" failures=\"%" JSON_INTEGER_FORMAT "\">\n  <testsuite name=\"",
            json_array_size(results), n_failed);
    put_escaped(f, name);
    fprintf(f, "\" tests=\"%zu\" failures=\"%" JSON_INTEGER_FORMAT "\" errors=\"0\" skipped=\"0\">\n", json_array_size(results), n_failed);
    for (size_t i = 0; i < json_array_size(results); i++)
        put_case(f, name, json_array_get(results, i));
    fputs("  </testsuite>\n</testsuites>\n", f);
}
