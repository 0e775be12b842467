/* What the files of ingress share: a reading of its settings, and the headers that a request was searched for. */
#ifndef COMMON_POLICY_INGRESS_PRIV_H
#define COMMON_POLICY_INGRESS_PRIV_H

#include "common/policy/ingress.h"

/* ---- reading settings ---- */

struct ingress_reading {
    const struct ingress_text *text;
    struct arena *a;
    struct ingress in; /* what is read so far */
    struct errlist *errors, *warnings;
    bool no_memory;
};

/* How much of a value a text shows. */
enum { INGRESS_SHOWN_MAX = 64 };

/* Adds a fault, or a warning, of a setting: path "/NAME", text "NAME: ...". */
void ingress_fault(struct ingress_reading *r, const char *setting, const char *fmt, ...) PRINTF_LIKE(3, 4);
void ingress_warn(struct ingress_reading *r, const char *setting, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Takes the next entry, without blanks around it, off a comma list; an empty list has none. *list is STR_NONE behind the last one. */
bool ingress_next_entry(struct str *list, struct str *entry);

/* NULL: a setting may name this header as a source; else why not, and what would be right. */
const char *ingress_header_refused(struct str name);
/* The name as an own header, in lower case; the one that is there already when there is one. False: no memory, which r remembers. */
bool ingress_own_header(struct ingress_reading *r, struct str name, struct str *out);

void ingress_read_proxies(struct ingress_reading *r);
void ingress_read_secret(struct ingress_reading *r);
/* preset: index into what schemas/client_ip_presets.def lists, SIZE_MAX for none. */
void ingress_read_viewer(struct ingress_reading *r, size_t preset);

/* Numbers of the presets, in the order of their rows. */
enum ingress_preset {
#define PRESET_ROW(id, name, header, form, meaning) INGRESS_PRESET_##id,
#include "schemas/client_ip_presets.def"
    INGRESS_N_PRESETS
};

/* ---- reading requests ---- */

/* The own headers of a request, by their place in own_headers. */
struct ingress_found {
    struct str value[INGRESS_OWN_MAX]; /* of one of them, without blanks around it: where there are several, none counts */
    uint8_t n[INGRESS_OWN_MAX];        /* how many there are: headers are at most HEADERS_MAX */
};
/* The place of a source's name; name is one of in's. */
size_t ingress_own_place(const struct ingress *in, struct str name);

/* What the viewer headers say, in normal form. False: no memory. */
MUSTUSE bool ingress_viewer_of_headers(const struct ingress *in, const struct ingress_found *found, struct arena *a, struct expr_viewer *out);
/* What the edge's own handshake says. */
void ingress_viewer_of_handshake(const struct ingress_connection *c, struct expr_viewer *out);

#endif
