/* The record intake on any bytes: framing, fields, and a line that is JSON; and any text as a part of a record. */
#include <jansson.h>
#include <string.h>

#include "spoa/record/access_log.h"
#include "spoa/record/intake.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static bool is_id(struct str id)
{
    for (size_t i = 0; i < id.len; i++)
        if (!ascii_is_alpha(id.p[i]) && !ascii_is_digit(id.p[i]) && id.p[i] != '.' && id.p[i] != '_' && id.p[i] != '-')
            return false;
    return id.len > 0;
}

static bool is_printable(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~')
            return false;
    return true;
}

/* Between quotes it is a JSON string of printable ASCII. */
static void check_inside(struct str text)
{
    char json[REC_MAX + 2];
    struct buf quoted;
    buf_init(&quoted, json, sizeof json);
    buf_put_byte(&quoted, '"');
    buf_put(&quoted, text);
    buf_put_byte(&quoted, '"');
    json_t *decoded = json_loadb(quoted.p, quoted.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    GUARANTEE(json_is_string(decoded) && is_printable(text));
    json_decref(decoded);
}

static void check_list(struct str list)
{
    struct rec_item item;
    uint64_t n_left_out;
    size_t len = list.len;
    while (rec_next(&list, &item, &n_left_out)) {
        GUARANTEE(list.len < len && is_id(item.id));
        len = list.len;
        check_inside(item.value);
    }
    GUARANTEE(list.len == 0);
}

/* Any bytes as a part. */
static void check_rec(struct str text)
{
    struct rec rec;
    if (!rec_parse(text, &rec))
        return;
    check_list(rec.limits);
    check_list(rec.config_rules);
    check_list(rec.header_rules);
    check_list(rec.counted);
    check_list(rec.subjects);
    const struct str words[] = {rec.auth, rec.client_ip, rec.country, rec.asnum, rec.ja4, rec.request_id, rec.query_keys, rec.trace.trace_id, rec.trace.span_id};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        GUARANTEE(is_printable(words[i]) && str_find_byte(words[i], '"') == SIZE_MAX && str_find_byte(words[i], '\\') == SIZE_MAX);
    check_inside(rec.method);
    check_inside(rec.host);
    check_inside(rec.user_agent);
    check_inside(rec.path);
}

/* Whatever is accepted becomes one line of valid JSON that fits. */
static void on_record(void *ctx, struct str line)
{
    static char storage[ACCESS_LINE_MAX];
    struct record r;
    struct outcome outcome;
    struct buf out;
    uint64_t n_dropped;
    (void) ctx;
    GUARANTEE(line.len <= INTAKE_RECORD_MAX);
    bool is_record = record_parse(line, &r);
    GUARANTEE(!record_dropped(line, &n_dropped) || !is_record);
    if (!is_record)
        return;
    outcome_read(&r, &outcome);
    GUARANTEE(outcome.decision < DECISION_N && outcome.status <= 999);
    if (!r.has_rec)
        return;
    buf_init(&out, storage, sizeof storage);
    access_log_render(&r, &outcome, STR("2026-01-01T00:00:00.000Z"), line.len % RATE_WHOLE, &out);
    GUARANTEE(!out.full);
    GUARANTEE(memchr(out.p, '\n', out.len) == NULL);
    json_t *j = json_loadb(out.p, out.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    GUARANTEE(json_is_object(j));
    json_decref(j);
}

static bool is_prefix_of(const char *decoded, struct str text)
{
    struct str rest = str_of(decoded);
    while (rest.len > 0) {
        size_t in_text = str_utf8_len(text), n = in_text > 0 ? in_text : 1;
        struct str wanted = in_text > 0 ? str_sub(text, 0, n) : STR("\xef\xbf\xbd");
        if (text.len == 0 || !str_starts(rest, wanted))
            return false;
        rest = str_sub(rest, wanted.len, rest.len);
        text = str_sub(text, n, text.len);
    }
    return true;
}

/* Within its room, readable, and decoded what the text began with. */
static void check_text(struct str text, size_t max, size_t room)
{
    char storage[REC_MAX], json[REC_MAX + 2];
    struct buf b, quoted;
    struct rec rec;
    buf_init(&b, storage, sizeof storage);
    buf_put_cstr(&b, "3 0 a 1 allow - - - - - - - - - - - - id GET - - 0 - ");
    size_t before = b.len;
    rec_put_text(&b, text, max, room);
    GUARANTEE(!b.full && b.len > before && b.len - before <= room);
    GUARANTEE(rec_parse(buf_str(&b), &rec));
    buf_init(&quoted, json, sizeof json);
    buf_put_byte(&quoted, '"');
    buf_put(&quoted, rec.path);
    buf_put_byte(&quoted, '"');
    json_t *decoded = json_loadb(quoted.p, quoted.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    GUARANTEE(json_is_string(decoded));
    /* What lies behind a NUL is compared in the rows of tests/cases. */
    GUARANTEE(is_prefix_of(json_string_value(decoded), str_cut_utf8(text, max)));
    json_decref(decoded);
    b.len = before;
    rec_put_item_text(&b, text, room);
    GUARANTEE(!b.full && b.len > before && b.len - before <= room && str_find_byte(str_sub(buf_str(&b), before, b.len), ',') == SIZE_MAX);
    check_inside(str_sub(buf_str(&b), before, b.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct intake_stream stream;
    stream.len = 0;
    for (size_t at = 0; at < size;) {
        size_t room;
        char *to = intake_stream_room(&stream, &room);
        /* Uneven pieces, as a socket gives them. */
        size_t n = 1 + data[at] % 61u * 7u;
        n = n < size - at ? n : size - at;
        n = n < room ? n : room;
        if (n == 0)
            break;
        memcpy(to, data + at, n);
        at += n;
        if (!intake_stream_filled(&stream, n, on_record, NULL))
            break;
    }
    check_rec((struct str){(const char *) data, size});
    if (size > 1)
        check_text((struct str){(const char *) data + 1, size - 1}, 1 + size / 2, 1 + data[0] * 16u);
    return 0;
}
