/* Any bytes as a template: the first one chooses the content type, the rest is the body. */
#include <jansson.h>

#include "common/http/template.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static void check_rendering(const struct template *t, bool json, uint32_t retry_after_s, struct str request_id)
{
    static char storage[TEMPLATE_RENDERED_MAX];
    struct buf b;
    buf_init(&b, storage, sizeof(storage));
    template_render(t, &(struct template_values){retry_after_s, request_id}, &b);
    GUARANTEE(!b.full && b.len <= t->rendered_max);
    GUARANTEE(str_is_utf8(buf_str(&b)));
    if (!json)
        return;
    json_t *value = json_loadb(b.p, b.len, JSON_DECODE_ANY, NULL);
    GUARANTEE(value != NULL);
    json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    bool json = data[0] % 2 == 0;
    struct str body = {(const char *)data + 1, size - 1};
    struct template t = {.name = STR("fuzzed")};
    struct arena a;
    struct err e;
    arena_init(&a, 4096, 0);
    err_clear(&e);
    if (template_compile(body, 503, json ? STR("application/json") : STR("text/html; charset=utf-8"), &a, &t, "/body",
                         &e)) {
        GUARANTEE(t.rendered_max <= TEMPLATE_RENDERED_MAX);
        check_rendering(&t, json, 0, STR("A"));
        check_rendering(&t, json, 17, STR("0000"));
        check_rendering(&t, json, 3600, STR("b5f0c1d2e3a44567"));
        check_rendering(&t, json, UINT32_MAX, STR("u._-"));
    } else {
        GUARANTEE(e.code != ERR_NONE && t.parts == NULL);
    }
    arena_release(&a);
    return 0;
}
