/* Failures of config tests as lines that people read. */
#include "spoa/cli/test_text.h"

#include <stdlib.h>

static void put_json(FILE *f, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    fputs(text != NULL ? text : "?", f);
    free(text);
}

char *test_text_failure(const json_t *failure)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (f == NULL)
        return NULL;
    const json_t *rules = json_object_get(failure, "rules");
    fprintf(f, "%s: expected ", json_string_value(json_object_get(failure, "path")));
    put_json(f, json_object_get(failure, "want"));
    fputs(", got ", f);
    put_json(f, json_object_get(failure, "got"));
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const json_t *rule = json_array_get(rules, i);
        fprintf(f, "; %s: %s", json_string_value(json_object_get(rule, "id")), json_string_value(json_object_get(rule, "reason")));
    }
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

void test_text_print(FILE *f, const char *text)
{
    for (; *text != '\0'; text++)
        putc((unsigned char) *text < 0x20 || *text == 0x7f ? '?' : *text, f);
}
