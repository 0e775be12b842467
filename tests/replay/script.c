/* Reads replay scripts. */
#include "tests/replay/script.h"

#include <stdio.h>

enum { LINE_MAX_BYTES = 8192 };

bool script_word(struct str *line, struct str *word)
{
    size_t at = 0, begin;
    bool quoted = false;

    while (at < line->len && line->p[at] == ' ')
        at++;
    for (begin = at; at < line->len && (quoted || line->p[at] != ' '); at++)
        quoted ^= line->p[at] == '"';
    *word = str_sub(*line, begin, at);
    *line = str_sub(*line, at, line->len);
    return word->len != 0;
}

bool script_number(struct str word, uint64_t *out)
{
    bool negative = word.len > 1 && word.p[0] == '-';
    uint64_t n = 0;

    if (word.len == 0)
        return false;
    for (size_t i = negative; i < word.len; i++) {
        if (!ascii_is_digit(word.p[i]) || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(word.p[i] - '0'), &n))
            return false;
    }
    *out = negative ? 0 - n : n;
    return true;
}

bool script_ids(struct str word, uint64_t *stream_id, uint64_t *frame_id)
{
    size_t colon = str_find_byte(word, ':');

    return colon != SIZE_MAX && script_number(str_sub(word, 0, colon), stream_id) &&
           script_number(str_sub(word, colon + 1, word.len), frame_id);
}

static bool keep_bytes(struct script *s, struct str bytes, struct str *out)
{
    *out = (struct str){s->wire.p + s->wire.len, bytes.len};
    buf_put(&s->wire, bytes);
    return !s->wire.full;
}

/* Consecutive sends become one, so that frames of several lines arrive together. */
static bool read_send(struct script *s, struct str rest, struct step *step)
{
    struct step *last = s->n_steps == 0 ? NULL : &s->steps[s->n_steps - 1];
    size_t begin = s->wire.len;

    if (!script_frame(&s->wire, rest))
        return false;
    s->sent_bytes += s->wire.len - begin;
    if (last != NULL && last->kind == STEP_SEND) {
        last->bytes.len += s->wire.len - begin;
        s->n_steps--; /* the caller's is not needed */
        return true;
    }
    *step = (struct step){.kind = STEP_SEND, .line = step->line, .bytes = {s->wire.p + begin, s->wire.len - begin}};
    return true;
}

static bool read_expect(struct script *s, struct str rest, struct step *step)
{
    struct str after = rest, word;
    size_t begin = s->wire.len;

    step->kind = STEP_EXPECT_DISCONNECT;
    if (script_word(&after, &word) && str_eq(word, STR("agent-disconnect")))
        return script_word(&after, &word) && script_number(word, &step->number);
    step->kind = STEP_EXPECT;
    if (!script_frame(&s->wire, rest))
        return false;
    step->bytes = (struct str){s->wire.p + begin, s->wire.len - begin};
    return true;
}

static bool read_closed(struct script *s, struct str rest, struct step *step)
{
    rest = str_trim(rest);
    if (str_eq(rest, STR("in order")))
        return true;
    return rest.len > 2 && rest.p[0] == '"' && rest.p[rest.len - 1] == '"' &&
           keep_bytes(s, str_sub(rest, 1, rest.len - 1), &step->bytes);
}

static bool read_count(struct script *s, struct str rest, struct step *step)
{
    struct str name, number;

    return script_word(&rest, &name) && script_word(&rest, &number) && script_number(number, &step->number) &&
           keep_bytes(s, name, &step->bytes);
}

static const struct {
    struct str word;
    enum step_kind kind;
} VERBS[] = {
    {STR("connection"), STEP_CONNECTION},
    {STR(">"), STEP_SEND},
    {STR("<"), STEP_EXPECT},
    {STR("hold"), STEP_HOLD},
    {STR("answer"), STEP_ANSWER},
    {STR("available"), STEP_AVAILABLE},
    {STR("leave"), STEP_LEAVE},
    {STR("refuse"), STEP_REFUSE},
    {STR("pause"), STEP_PAUSE},
    {STR("resume"), STEP_RESUME},
    {STR("stop"), STEP_STOP},
    {STR("eof"), STEP_EOF},
    {STR("open"), STEP_OPEN},
    {STR("closed"), STEP_CLOSED},
    {STR("count"), STEP_COUNT},
};

static bool read_arguments(struct script *s, struct str rest, struct step *step)
{
    struct str word;

    switch (step->kind) {
    case STEP_SEND:
        return read_send(s, rest, step);
    case STEP_EXPECT:
    case STEP_EXPECT_DISCONNECT:
        return read_expect(s, rest, step);
    case STEP_ANSWER:
        return script_word(&rest, &word) && script_ids(word, &step->stream_id, &step->frame_id);
    case STEP_AVAILABLE:
        return script_word(&rest, &word) && script_number(word, &step->number);
    case STEP_CLOSED:
        return read_closed(s, rest, step);
    case STEP_COUNT:
        return read_count(s, rest, step);
    case STEP_CONNECTION:
    case STEP_HOLD:
    case STEP_LEAVE:
    case STEP_REFUSE:
    case STEP_PAUSE:
    case STEP_RESUME:
    case STEP_STOP:
    case STEP_EOF:
    case STEP_OPEN:
        break;
    }
    return !script_word(&rest, &word);
}

static bool read_line(struct script *s, struct str line, unsigned number)
{
    struct step *step = &s->steps[s->n_steps];
    struct str word;

    if (!script_word(&line, &word) || word.p[0] == '#')
        return true;
    for (size_t i = 0; i < sizeof(VERBS) / sizeof(*VERBS); i++) {
        if (!str_eq(word, VERBS[i].word))
            continue;
        *step = (struct step){.kind = VERBS[i].kind, .line = number};
        if (!read_arguments(s, line, step))
            return false;
        s->n_steps++;
        return s->n_steps < STEPS_MAX;
    }
    return false;
}

bool script_load(struct script *s, const char *file)
{
    FILE *f = fopen(file, "r");
    char line[LINE_MAX_BYTES];
    unsigned number = 0;
    bool ok = f != NULL;

    s->file = file;
    s->n_steps = s->sent_bytes = 0;
    buf_init(&s->wire, s->storage, sizeof(s->storage));
    while (ok && fgets(line, sizeof(line), f) != NULL) {
        ok = read_line(s, str_trim(str_of(line)), ++number);
        if (!ok)
            printf("%s:%u: this line is not understood\n", file, number);
    }
    if (f == NULL)
        printf("%s: cannot be read\n", file);
    else
        fclose(f);
    if (ok && s->n_steps == 0) {
        printf("%s: no steps\n", file);
        ok = false;
    }
    return ok;
}
