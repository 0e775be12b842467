/* Path normalisation: one pass decodes, checks and compacts segment by segment; another escapes what a path can't
 * carry. */
#include "common/http/path.h"

#include "common/http/uri_bytes_priv.h"

const char *path_verdict_name(enum path_verdict v)
{
    static const char *const names[PATH_N_VERDICTS] = {
        [PATH_OK] = "ok",
#define PATH_REFUSAL_ROW(id, name, meaning) [PATH_##id] = name,
#include "schemas/path_refusals.def"
#undef PATH_REFUSAL_ROW
    };
    return (unsigned)v < PATH_N_VERDICTS ? names[v] : "unknown";
}

/* One segment while it is being decoded. A part is what stands between two encoded slashes: an upstream that decodes
 * %2F sees each part as a segment, so each is held against the dot rules, those behind a ';' too. */
struct segment {
    char *p;              /* where it begins in the output */
    size_t len;           /* decoded so far, parameters included */
    size_t name_len;      /* up to the first ';' */
    size_t part;          /* where the current part begins */
    size_t part_name_end; /* up to the part's own first ';' */
    bool in_parameter, part_in_parameter, has_encoded_slash;
};

enum dots { NO_DOTS, ONE_DOT, TWO_DOTS };

static enum dots part_dots(const struct segment *s)
{
    const char *p = s->p + s->part;
    size_t len = s->part_name_end - s->part;
    if (len == 1 && p[0] == '.')
        return ONE_DOT;
    return len == 2 && p[0] == '.' && p[1] == '.' ? TWO_DOTS : NO_DOTS;
}

static void segment_put(struct segment *s, char c)
{
    if (c == ';')
        s->in_parameter = s->part_in_parameter = true;
    s->p[s->len++] = c;
    if (!s->in_parameter)
        s->name_len = s->len;
    if (!s->part_in_parameter)
        s->part_name_end = s->len;
}

/* False when the part that ends here is a dot-segment to whoever decodes %2F. */
static bool segment_end_part(struct segment *s)
{
    s->has_encoded_slash = true;
    if (part_dots(s) != NO_DOTS)
        return false;
    memcpy(s->p + s->len, "%2F", 3);
    s->len += 3;
    if (!s->in_parameter)
        s->name_len = s->len;
    s->part = s->part_name_end = s->len;
    s->part_in_parameter = false;
    return true;
}

/* raw holds no '/'. Decodes it into s->p, which holds raw.len bytes. */
static enum path_verdict segment_decode(struct str raw, struct segment *s)
{
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.p[i];
        if (c == '%') {
            int value = uri_escape_at(raw, i);
            if (value < 0)
                return PATH_BAD_ESCAPE;
            i += 2;
            if (value == '/') {
                if (!segment_end_part(s))
                    return PATH_HIDDEN_DOT;
                continue;
            }
            c = (char)value;
        }
        if (c == '\0')
            return PATH_NUL;
        if (c == '\\')
            return PATH_BACKSLASH;
        segment_put(s, c);
    }
    return str_is_utf8((struct str){s->p, s->len}) ? PATH_OK : PATH_NOT_UTF8;
}

/* Sets *kept to the bytes that stay in the normal form: none for an empty segment and for ".". */
static enum path_verdict segment_normalise(struct str raw, char *out, size_t *kept)
{
    struct segment s = {.p = out};
    enum path_verdict v = segment_decode(raw, &s);
    if (v != PATH_OK)
        return v;
    enum dots dots = part_dots(&s);
    if (dots != NO_DOTS && s.has_encoded_slash)
        return PATH_HIDDEN_DOT;
    if (dots != NO_DOTS && s.in_parameter)
        return PATH_DOT_PARAMETER;
    if (dots == TWO_DOTS)
        return PATH_DOT_DOT;
    *kept = dots == ONE_DOT ? 0 : s.name_len;
    return PATH_OK;
}

/* Whether the normal form of raw, which begins with '/', may differ from it or be refused. */
static bool needs_work(struct str raw)
{
    static const bool plain[256] = {
        [1 ... '$'] = true, ['&' ... '.'] = true, ['0' ... ':'] = true, ['<' ... '['] = true, [']' ... 0x7f] = true,
    };
    while (raw.len > 0) {
        str_skip(&raw, 1); /* the slash */
        if (raw.len > 0 && raw.p[0] == '.')
            return true;
        size_t n = str_span(raw, plain);
        str_skip(&raw, n);
        if (raw.len > 0 && (n == 0 || raw.p[0] != '/'))
            return true;
    }
    return false;
}

/* Segments only shrink and a segment's slash is written behind it, so out never holds more than has been read. */
static enum path_verdict normal_form(struct str raw, struct arena *a, struct str *normal)
{
    if (!needs_work(raw)) {
        *normal = raw;
        return PATH_OK;
    }
    char *out = arena_take_bytes(a, raw.len);
    if (out == NULL)
        return PATH_NO_MEMORY;
    size_t len = 0;
    out[len++] = '/';
    for (size_t from = 1; from < raw.len;) {
        struct str rest = str_sub(raw, from, raw.len);
        size_t slash = str_find_byte(rest, '/');
        bool last = slash == SIZE_MAX;
        size_t kept;
        enum path_verdict v = segment_normalise(last ? rest : str_sub(rest, 0, slash), out + len, &kept);
        if (v != PATH_OK)
            return v;
        len += kept;
        if (last)
            break;
        if (kept > 0)
            out[len++] = '/';
        from += slash + 1;
    }
    *normal = (struct str){out, len};
    return PATH_OK;
}

enum path_verdict path_normalise(struct str raw, struct arena *a, struct path *out)
{
    if (raw.len == 0 || raw.p[0] != '/')
        return PATH_NOT_ORIGIN_FORM;
    if (raw.len > PATH_RAW_MAX)
        return PATH_TOO_LONG;
    struct path path;
    enum path_verdict v = normal_form(raw, a, &path.normal);
    if (v != PATH_OK)
        return v;
    if (!uri_escape(raw, URI_PATH, a, &path.forward))
        return PATH_NO_MEMORY;
    *out = path;
    return PATH_OK;
}
