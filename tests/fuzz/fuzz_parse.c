/* Values written by people, from any bytes (the first chooses the parser), and the encodings of codec.h. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "common/base/codec.h"
#include "common/base/parse.h"
#include "tests/fuzz/guarantee.h"

/* A refusal says something printable; a value comes without one. */
static void check_error(bool ok, const struct err *e)
{
    GUARANTEE(ok == (e->code == ERR_NONE) && ok == (e->text[0] == '\0'));
    for (const char *p = e->text; *p != '\0'; p++)
        GUARANTEE((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void check_duration(struct str s, struct err *e)
{
    uint64_t ms = 0, again = 1;
    char text[32];

    if (!parse_duration_ms(s, &ms, "", e))
        return;
    s = (struct str){text, parse_render_duration(ms, text, sizeof(text))};
    GUARANTEE(parse_duration_ms(s, &again, "", e) && again == ms);
}

static void check_listen(struct str s, struct err *e)
{
    struct listen_addr at;

    if (!parse_listen(s, &at, "", e))
        return;
    GUARANTEE(at.host.len == 0 || (at.host.p >= s.p && at.host.p + at.host.len <= s.p + s.len));
}

static void check_codec(struct str s)
{
    char *text = malloc(s.len + 4);
    uint8_t *bytes = malloc(s.len + 1);
    size_t len;

    GUARANTEE(text != NULL && bytes != NULL);
    if (codec_base64url_decode(s, bytes, &len)) {
        GUARANTEE(len <= s.len * 3 / 4 && CODEC_BASE64URL_LEN(len) == s.len);
        codec_base64url(bytes, len, text);
        GUARANTEE(str_eq((struct str){text, s.len}, s));
    }
    if (codec_percent_decode(s, s.len % 2 == 0, text, &len))
        GUARANTEE(len <= s.len);
    free(text);
    free(bytes);
}

/* Years 0 to 9999, and less than a day beside them for the offset. */
static void check_time(struct str s)
{
    int64_t ms = 424242;

    if (!parse_time_ms(s, &ms))
        GUARANTEE(ms == 424242);
    else
        GUARANTEE(ms > -62167305600000 && ms < 253402387200000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str s;
    uint64_t n = 0;
    struct err e;
    bool ok = true, yes;

    if (size == 0)
        return 0;
    s = (struct str){(const char *)data + 1, size - 1};
    err_clear(&e);
    switch (data[0] % 7) {
    case 0:
        check_duration(s, &e);
        ok = e.code == ERR_NONE;
        break;
    case 1:
        ok = parse_size_bytes(s, &n, "", &e);
        break;
    case 2:
        ok = parse_u64(s, 10, 1000000, &n, "", &e);
        GUARANTEE(!ok || (n >= 10 && n <= 1000000));
        break;
    case 3:
        ok = parse_bool(s, &yes, "", &e);
        break;
    case 4:
        check_listen(s, &e);
        ok = e.code == ERR_NONE;
        break;
    case 5:
        check_codec(s);
        break;
    default:
        check_time(s);
    }
    check_error(ok, &e);
    return 0;
}
