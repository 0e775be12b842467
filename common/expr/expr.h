/* The expression language: text or JSON AST in, a checked tree, its canonical text, and a flat program that decides
 * without allocation. The one public header of this folder; the vocabulary is schemas/fields.def, operators.def,
 * sources.def and signals.def. */
#ifndef COMMON_EXPR_EXPR_H
#define COMMON_EXPR_EXPR_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/jx.h"
#include "common/http/headers.h"
#include "common/net/addr.h"

enum { EXPR_TEXT_MAX = 4096, EXPR_CONDITIONS_MAX = 32, EXPR_NESTING_MAX = 8, EXPR_PROGRAMS_MAX = 256 };

enum expr_phase { EXPR_CONFIG = 1, EXPR_RATE = 2, EXPR_HEADERS = 4 };

/* Where fields get their values. */
enum expr_source {
#define SOURCE_ROW(id, name, viewer, meaning) EXPR_SOURCE_##id,
#include "schemas/sources.def"
#undef SOURCE_ROW
    EXPR_N_SOURCES
};
const char *expr_source_name(enum expr_source s); /* as VIEWER_HEADERS names it */
bool expr_source_is_viewer(enum expr_source s);

/* What the deployment decides about the language. */
struct expr_deployment {
    uint32_t sources;             /* 1 << enum expr_source: the viewer sources that are configured; others are not asked */
    bool allow_regex;             /* ALLOW_REGEX: `matches` may be used */
    const struct str *unreadable; /* lower-case header names that no rule may read: source headers, the ingress secret */
    size_t n_unreadable;
};
/* Every field available, regular expressions too: what offline commands assume where nothing is configured. */
extern const struct expr_deployment expr_deployment_any;

struct expr; /* an AST in the arena it was read into; immutable */

/* Text as people write it. Names, operators that the field's type does not take, keys and the form of literals are
 * refused here. Errors carry line and column (bytes, from 1; 0 when the whole text is too long) and, for a mistyped
 * name, a suggestion; path is "". */
MUSTUSE bool expr_parse(struct str text, struct arena *a, const struct expr **out, struct err *e);
/* Text or AST JSON ({"combinator","not","rules"} or {"field","key","operator","value"}), strictly, with the same
 * refusals; faults go to the document's list at the place they stand. NULL when there was one. Other ways to write the
 * same tree than the canonical one (a group of one, a negated group around a group) become canonical. */
const struct expr *expr_decode(const struct jx *j, struct arena *a);
/* Canonical text, at most EXPR_TEXT_MAX bytes; parse(render(x)) is x. */
void expr_render(const struct expr *x, struct buf *out);
/* Canonical AST; the caller owns it. NULL when memory is refused. */
json_t *expr_to_json(const struct expr *x);
bool expr_equal(const struct expr *a, const struct expr *b);
/* The literal `true` and no other tautology: the only site-wide form. */
bool expr_is_true(const struct expr *x);
/* `true` is none. */
size_t expr_n_conditions(const struct expr *x);

/* What warnings and indexes ask about a tree. */
struct expr_traits {
    bool reads_client;     /* a field that the client chooses freely */
    bool excludes_client;  /* such a field under a negation (`ne`, `not_in`, `not`): what it leaves out, a client can be */
    bool reads_claims, reads_locale, reads_signals, reads_verified_bot;
};
void expr_traits(const struct expr *x, struct expr_traits *out);

/* Meaning: a field that the phase or the deployment does not have, literals that the field can never have. Every fault
 * is added to errors at path, below it at the member's own place when x came from AST JSON, else with line and column.
 * False when there was one. Warnings (raw addresses, unknown versions, contradictions that are proven) go to warnings.
 * schema: the document's; in schema 1 a path without its slash is a warning. */
struct expr_context {
    enum expr_phase phase;
    const struct expr_deployment *deployment;
    int64_t schema;
    const char *path;
};
MUSTUSE bool expr_check(const struct expr *x, const struct expr_context *context, struct errlist *errors,
                        struct errlist *warnings);

/* The form of a JA3 (32 lower-case hex digits) and a JA4 ("t13d1516h2_8daaf6152771_02713d6af862") fingerprint: what
 * literals are held to, and without which a value from a source is absent. */
bool expr_ja3_ok(struct str s);
bool expr_ja4_ok(struct str s);

/* ---- a phase's programs ---- */

/* Equal predicates of all programs are one, evaluated when first reached. Filled, finished, then immutable. */
struct expr_set;
MUSTUSE bool expr_set_new(struct arena *a, struct expr_set **out);
/* x must have passed expr_check; the set keeps nothing of it. *program: its number in this set, from 0, at most EXPR_PROGRAMS_MAX of them. */
MUSTUSE bool expr_set_add(struct expr_set *set, const struct expr *x, size_t *program);
/* After the last add, before the first run: builds the index of which programs can hold for which host, path and method. */
MUSTUSE bool expr_set_finish(struct expr_set *set);
size_t expr_set_n_predicates(const struct expr_set *set);

/* ---- what a request looks like to expressions ---- */

/* A verified token's claims, each as the values that rules compare. */
struct expr_claim {
    struct str name;
    const struct str *values;
    size_t n_values;
};
struct expr_claims {
    const struct expr_claim *items;
    size_t n;
};

/* What trusted sources say about the client's connection; normalised (http_version "2.0", fingerprints well-formed,
 * country and continent upper case), empty or false where absent. */
struct expr_viewer {
    bool ssl;
    struct str http_version, country, continent, ja3, ja4;
    int64_t asnum;
    bool has_asnum;
    struct {
        bool present, verified;
        struct str subject, issuer, serial, sha256;
    } cert;
};

struct expr_lazy; /* what is extracted on first use, once a request */

/* Bytes are borrowed for as long as the request lasts. expr_facts_begin first, then the members. */
struct expr_facts {
    struct str host, method, path; /* normalised */
    struct str uri;                /* path and query as sent */
    struct str query;              /* as forwarded, without '?' */
    const struct headers *headers; /* as received; lower-case names. NULL: none */
    const struct expr_deployment *deployment; /* whose unreadable names rules do not see. NULL: none */
    struct addr ip;
    bool has_ip;
    bool verified_bot;                     /* whatever verified_bots says */
    const struct addr_set *verified_bots;  /* ranges whose addresses are; NULL: none */
    struct expr_viewer viewer;
    const struct expr_claims *claims; /* NULL: no token was verified */
    /* Chooses the request's locale by all of its Accept-Language; called once, when something first reads it. NULL: off, and it is empty. */
    struct str (*locale)(void *ctx, struct str accept_language);
    void *locale_ctx;
    struct expr_lazy *lazy;
};
/* Clears f and takes what it needs from a, which later extraction uses too. False: no memory. */
MUSTUSE bool expr_facts_begin(struct expr_facts *f, struct arena *a);

/* For readers other than expressions (limit keys, header values, records); the same values that rules see, extracted on
 * first use. False or empty where there is none, or memory is refused. */
bool expr_facts_header(const struct expr_facts *f, struct str name, struct str *value);   /* the first; never an unreadable one */
bool expr_facts_argument(const struct expr_facts *f, struct str name, struct str *value); /* the first, decoded */
bool expr_facts_cookie(const struct expr_facts *f, struct str name, struct str *value);   /* the first */
bool expr_facts_claim(const struct expr_facts *f, struct str name, struct str *value);    /* the first */
struct str expr_facts_locale(const struct expr_facts *f);
/* client.signals as bits: 1 << the row's place in schemas/signals.def. */
uint32_t expr_facts_signals(const struct expr_facts *f);
size_t expr_n_signals(void);
const char *expr_signal_name(size_t i);

/* ---- evaluation ---- */

enum match { MATCH_NO, MATCH_YES, MATCH_ERROR };

/* One request's evaluation of one set: remembers which predicates are known. */
struct expr_run {
    const struct expr_set *set;
    const struct expr_facts *facts;
    uint64_t *memo; /* bits by predicate: yes, then no, then error; none of them: not asked yet */
    void *slots;    /* values that are extracted already */
};
/* Takes memory for the set's predicates and fields from a. */
MUSTUSE bool expr_run_init(struct expr_run *run, const struct expr_set *set, const struct expr_facts *facts,
                           struct arena *a);
enum match expr_run(struct expr_run *run, size_t program);

/* Programs that can hold for the request's host, path and method; those left out can't, and need no run. */
struct expr_candidates {
    uint64_t bits[EXPR_PROGRAMS_MAX / 64];
};
void expr_run_candidates(const struct expr_run *run, struct expr_candidates *out);
/* The same where looking them up is less work than running what it leaves out; else all. */
void expr_run_worth_asking(const struct expr_run *run, struct expr_candidates *out);
static inline bool expr_is_candidate(const struct expr_candidates *c, size_t program)
{
    return (c->bits[program / 64] >> (program % 64) & 1) != 0;
}

/* ---- explanation: the same answer, with the reason ---- */

/* {"text", "result": true|false|"error"} for a condition, with "value": what the request has there (a string, number,
 * boolean, null when missing, or an array for a list); for a group "combinator", "not", "result", "rules". Conditions
 * that the evaluation did not need have "result": null. The caller owns it; NULL when memory is refused. */
json_t *expr_explain(const struct expr *x, const struct expr_facts *facts);

#endif
