/* Regular expressions by PCRE2, held to a number of steps: what a pattern costs is bounded whatever the subject. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <pthread.h>

#include "common/expr/expr_priv.h"

enum { HEAP_LIMIT_KIB = 256, NESTED_MAX = 32 };

struct regex {
    pcre2_code *code;
    pcre2_match_context *limits;
};

static void regex_free(void *arg)
{
    struct regex *r = arg;

    pcre2_match_context_free(r->limits);
    pcre2_code_free(r->code);
    r->limits = NULL;
    r->code = NULL;
}

/* ---- what a match writes to: one a thread, kept until the thread ends ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t match_data_key;
static bool has_key;

static void free_match_data(void *data)
{
    pcre2_match_data_free(data);
}

static void make_key(void)
{
    has_key = pthread_key_create(&match_data_key, free_match_data) == 0;
}

/* With room for the whole match only: nobody asks for its parts. NULL: memory is refused. */
static pcre2_match_data *match_data(void)
{
    pcre2_match_data *data;

    pthread_once(&once, make_key);
    data = has_key ? pthread_getspecific(match_data_key) : NULL;
    if (data != NULL)
        return data;
    data = pcre2_match_data_create(1, NULL);
    if (data != NULL && (!has_key || pthread_setspecific(match_data_key, data) != 0)) {
        pcre2_match_data_free(data);
        data = NULL;
    }
    return data;
}

/* ---- compiling ---- */

static bool refuse(int code, size_t offset, struct err *e)
{
    char words[128] = "";

    /* Words that are too long are cut, and end with a NUL all the same. */
    (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)words, sizeof(words));
    return err_set(e, ERR_EXPR_REGEX, "", "the regular expression does not compile: %s, at byte %zu of it", words, offset + 1);
}

static int is_callout(pcre2_callout_enumerate_block *block, void *arg)
{
    (void)block;
    (void)arg;
    return 1;
}

/* `$` is the end and not a line break before it: a path may hold one. */
static bool compile(struct str pattern, struct regex *r, struct err *e)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    const char *p = pattern.len == 0 ? "" : pattern.p;
    PCRE2_SIZE offset;
    int code;

    if (context == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for this regular expression");
    pcre2_set_parens_nest_limit(context, NESTED_MAX);
    r->code = pcre2_compile((PCRE2_SPTR)p, pattern.len, PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY, &code,
                            &offset, context);
    pcre2_compile_context_free(context);
    if (r->code == NULL)
        return refuse(code, offset, e);
    if (pcre2_callout_enumerate(r->code, is_callout, NULL) != 0)
        return err_set(e, ERR_EXPR_REGEX, "", "callouts, (?C...), can't be used: leave them out");
    /* Where the system allows no code at run time, matching is slower and held to the same limits. */
    (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
    return true;
}

static bool set_limits(struct regex *r, struct err *e)
{
    r->limits = pcre2_match_context_create(NULL);
    if (r->limits == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for this regular expression");
    pcre2_set_match_limit(r->limits, REGEX_MATCH_LIMIT);
    pcre2_set_heap_limit(r->limits, HEAP_LIMIT_KIB);
    return true;
}

bool regex_compile(struct str pattern, struct arena *a, const struct regex **out, struct err *e)
{
    struct regex *r;

    /* Verbs there set options and limits for the whole pattern. */
    if (str_starts(pattern, STR("(*")))
        return err_set(e, ERR_EXPR_REGEX, "", "a regular expression does not begin with a verb such as (*UCP): leave it out");
    r = ARENA_NEW(a, struct regex);
    if (r == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for this regular expression");
    if (!compile(pattern, r, e) || !set_limits(r, e)) {
        regex_free(r);
        return false;
    }
    if (!arena_on_release(a, regex_free, r)) {
        regex_free(r);
        return err_set(e, ERR_NO_MEMORY, "", "no memory for this regular expression");
    }
    *out = r;
    return true;
}

enum match regex_matches(const struct regex *r, struct str text)
{
    const char *p = text.len == 0 ? "" : text.p;
    pcre2_match_data *data;
    int found;

    if (text.len > REGEX_SUBJECT_MAX)
        return MATCH_ERROR;
    data = match_data();
    if (data == NULL)
        return MATCH_ERROR;
    found = pcre2_match(r->code, (PCRE2_SPTR)p, text.len, 0, 0, data, r->limits);
    if (found >= 0)
        return MATCH_YES;
    return found == PCRE2_ERROR_NOMATCH ? MATCH_NO : MATCH_ERROR;
}
