/* The request path: the form that rules match on, the form that is forwarded, and what is refused as ambiguous. */
#ifndef COMMON_HTTP_PATH_H
#define COMMON_HTTP_PATH_H

#include "common/base/arena.h"
#include "common/base/str.h"

/* schemas/path_refusals.def: one row a reason. PATH_OK is 0. */
enum path_verdict {
    PATH_OK = 0,
#define PATH_REFUSAL_ROW(id, name, meaning) PATH_##id,
#include "schemas/path_refusals.def"
#undef PATH_REFUSAL_ROW
    PATH_N_VERDICTS
};

const char *path_verdict_name(enum path_verdict v);

/* normal: what rules see. Each segment decoded once, its parameters dropped (from the first ';' on, %3B being one),
 * then "//" collapsed and "." removed; a last '/' stays. An encoded slash stays inside its segment, always written
 * %2F so that %2f is no way round a rule. Decoding once leaves text that looks like an escape: %252F gives the text
 * %2F too. A rule that names %2F thus holds for both spellings, which an upstream that decodes twice can't tell
 * apart either; no request evades a rule by it.
 * normal begins with '/', is UTF-8, and has no "//", no "." or ".." segment, no ';', '\\' or NUL. Where raw has no
 * %25, no part beside a %2F is "." or ".." either, and normalising normal again changes nothing.
 * forward: as sent, with only the bytes that a path can't carry raw (RFC 3986 3.3) percent-encoded. It has the same
 * normal. */
/* Browsers and servers stop well below; it bounds what one request can cost the rules that search in it. */
enum { PATH_RAW_MAX = 8192 };

struct path {
    struct str normal;
    struct str forward;
};

/* raw: the path of the request target as the client sent it, without scheme, authority and query. Borrows raw where
 * it has nothing to decode or drop, else takes from the arena (at most 4 * raw.len bytes). Not PATH_OK leaves *out
 * untouched; PATH_NO_MEMORY is one of the rows. A path with several faults is named after one of them. Parameters
 * are held to the rules for bytes, escapes and %2F like the rest, although they are dropped. */
MUSTUSE enum path_verdict path_normalise(struct str raw, struct arena *a, struct path *out);

#endif
