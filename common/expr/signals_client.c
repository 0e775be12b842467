/* Reading what signals look at: headers in one pass, the User-Agent's pieces in another. */
#include "common/expr/signals_priv.h"

#include <pthread.h>

enum place { BEGINS, ENDS };

struct word {
    enum kind kind;
    enum place place;
    struct str text;
};

static const struct word words[] = {
#define USER_AGENT_WORD(kind, place, word) {KIND_##kind, place, {(word), sizeof(word) - 1}},
#define BROWSER(id, token, oldest, fetch_metadata, client_hints)
#include "schemas/user_agents.def"
#undef USER_AGENT_WORD
#undef BROWSER
};

static const struct browser browsers[] = {
#define USER_AGENT_WORD(kind, place, word)
#define BROWSER(id, token, oldest, fetch_metadata, client_hints)                                                       \
    {{(token), sizeof(token) - 1}, (oldest), (fetch_metadata), (client_hints)},
#include "schemas/user_agents.def"
#undef USER_AGENT_WORD
#undef BROWSER
};

enum { N_WORDS = sizeof(words) / sizeof(words[0]), N_BROWSERS = sizeof(browsers) / sizeof(browsers[0]), NONE = UINT8_MAX };
_Static_assert((int)N_WORDS < NONE, "a row's number is one byte");

enum browser_row {
#define USER_AGENT_WORD(kind, place, word)
#define BROWSER(id, token, oldest, fetch_metadata, client_hints) BROWSER_##id,
#include "schemas/user_agents.def"
#undef USER_AGENT_WORD
#undef BROWSER
};

static const struct str wanted_names[N_WANTED] = {
    [USER_AGENT] = {"user-agent", 10},           [ACCEPT] = {"accept", 6},
    [ACCEPT_LANGUAGE] = {"accept-language", 15}, [ACCEPT_ENCODING] = {"accept-encoding", 15},
    [SEC_FETCH_SITE] = {"sec-fetch-site", 14},   [SEC_CH_UA] = {"sec-ch-ua", 9},
    [SEC_CH_UA_PLATFORM] = {"sec-ch-ua-platform", 18},
};

/* By a name's length the first of its length; 0 stands for none, too. */
static const uint8_t first_of_len[] = {
    [6] = ACCEPT, [9] = SEC_CH_UA, [10] = USER_AGENT, [14] = SEC_FETCH_SITE, [15] = ACCEPT_LANGUAGE, [18] = SEC_CH_UA_PLATFORM,
};

static void find_headers(struct client *c)
{
    const struct headers *h = c->facts->headers;

    for (size_t i = 0; h != NULL && i < h->n; i++) {
        const struct str name = h->items[i].name;
        size_t w = name.len < sizeof(first_of_len) ? first_of_len[name.len] : 0;
        for (; w < N_WANTED && wanted_names[w].len == name.len; w++)
            if (c->headers[w] == NULL && str_eq_nocase(name, wanted_names[w]))
                c->headers[w] = &h->items[i];
    }
}

static bool ends_with(struct str s, struct str word)
{
    return s.len >= word.len && begins_with(str_sub(s, s.len - word.len, s.len), word);
}

static const bool piece_bytes[256] = {
    ['a' ... 'z'] = true, ['0' ... '9'] = true, ['.'] = true, ['_'] = true, ['-'] = true,
};

/* Rows of words by the byte that they begin or end with: the first such row, and for each row the next one. */
static struct word_index {
    uint8_t first[2][256], next[N_WORDS];
} word_index;
static pthread_once_t word_index_once = PTHREAD_ONCE_INIT;

static void word_index_make(void)
{
    memset(&word_index, NONE, sizeof(word_index));
    for (size_t i = N_WORDS; i-- > 0;) {
        const struct word *w = &words[i];
        unsigned char byte = (unsigned char)w->text.p[w->place == BEGINS ? 0 : w->text.len - 1];

        word_index.next[i] = word_index.first[w->place][byte];
        word_index.first[w->place][byte] = (uint8_t)i;
    }
}

/* The first row of that place that fits; NONE. */
static size_t word_find(struct str piece, enum place place)
{
    size_t i = word_index.first[place][(unsigned char)piece.p[place == BEGINS ? 0 : piece.len - 1]];

    while (i != NONE && !(place == BEGINS ? begins_with(piece, words[i].text) : ends_with(piece, words[i].text)))
        i = word_index.next[i];
    return i;
}

static enum kind kind_of(struct str piece)
{
    size_t begins = word_find(piece, BEGINS), ends = word_find(piece, ENDS), i = begins < ends ? begins : ends;

    return i == NONE ? KIND_OTHER : words[i].kind;
}

/* "16.4.1" is 1604, "99" 9900: what is behind the second dot does not count, and four digits are more than any has. */
static unsigned read_version(struct str s)
{
    unsigned major = 0, minor = 0;
    size_t i = 0;

    for (; i < s.len && i < 4 && ascii_is_digit(s.p[i]); i++)
        major = major * 10 + (unsigned)(s.p[i] - '0');
    if (i + 1 < s.len && s.p[i] == '.' && ascii_is_digit(s.p[i + 1])) {
        minor = (unsigned)(s.p[i + 1] - '0');
        if (i + 2 < s.len && ascii_is_digit(s.p[i + 2]))
            minor = minor * 10 + (unsigned)(s.p[i + 2] - '0');
    }
    return major * 100 + minor;
}

/* Products ("chrome/124") by the pieces that name them. */
struct products {
    size_t browser; /* the first row whose token is there; NONE */
    size_t version_at;
    size_t safari_row_at; /* where Version/ names its version; SIZE_MAX */
    bool safari;          /* Safari/ is there */
};

/* piece: behind a blank, so that "headlesschrome/" is no "chrome/", and before a '/'. */
static void read_product(struct products *p, struct str piece, size_t version_at)
{
    if (str_eq(piece, STR("safari")))
        p->safari = true;
    for (size_t i = 0; i < N_BROWSERS && i < p->browser; i++) {
        if (browsers[i].token.len != piece.len + 1 || !begins_with(browsers[i].token, piece))
            continue;
        if (!str_eq(piece, STR("version"))) {
            p->browser = i;
            p->version_at = version_at;
        } else if (p->safari_row_at == SIZE_MAX) {
            p->safari_row_at = version_at;
        }
    }
}

static void read_browser(struct client *c, const struct products *p)
{
    size_t row = p->browser, at = p->version_at;

    if (!str_starts(c->user_agent, STR("mozilla/")) || c->kinds != 0)
        return;
    if (p->safari && p->safari_row_at != SIZE_MAX && BROWSER_SAFARI < row) {
        row = BROWSER_SAFARI;
        at = p->safari_row_at;
    }
    if (row == NONE)
        return;
    c->browser = &browsers[row];
    c->version = read_version(str_sub(c->user_agent, at, c->user_agent.len));
}

static void read_user_agent(struct client *c)
{
    struct str s = c->user_agent;
    struct products products = {.browser = NONE, .safari_row_at = SIZE_MAX};

    for (size_t i = 0; i < s.len;) {
        size_t from = i;

        while (i < s.len && piece_bytes[(unsigned char)s.p[i]])
            i++;
        if (i == from) {
            i++;
            continue;
        }
        struct str piece = {s.p + from, i - from};
        c->kinds |= kind_of(piece);
        if (from > 0 && s.p[from - 1] == ' ' && i < s.len && s.p[i] == '/')
            read_product(&products, piece, i + 1);
    }
    read_browser(c, &products);
}

void signals_client_read(const struct expr_facts *f, struct client *c)
{
    c->facts = f;
    memset(c->headers, 0, sizeof(c->headers));
    c->user_agent = STR_NONE;
    c->kinds = 0;
    c->browser = NULL;
    c->version = 0;
    find_headers(c);
    if (c->headers[USER_AGENT] == NULL || pthread_once(&word_index_once, word_index_make) != 0)
        return;
    struct str sent = str_sub(c->headers[USER_AGENT]->value, 0, SCANNED_MAX);
    for (size_t i = 0; i < sent.len; i++)
        c->lower[i] = ascii_lower(sent.p[i]);
    c->user_agent = (struct str){c->lower, sent.len};
    read_user_agent(c);
}
