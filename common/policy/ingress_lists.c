/* The lists among the settings of ingress: trusted proxies, and viewer headers with those of a preset. */
#include "common/policy/ingress_priv.h"

bool ingress_next_entry(struct str *list, struct str *entry)
{
    const size_t comma = str_find_byte(*list, ',');

    if (list->p == NULL)
        return false;
    *entry = str_trim(str_sub(*list, 0, comma));
    *list = comma == SIZE_MAX ? STR_NONE : (struct str){list->p + comma + 1, list->len - comma - 1};
    return true;
}

static struct str list_of(const char *text)
{
    return text == NULL || text[0] == '\0' ? STR_NONE : str_of(text);
}

/* ---- peers: TRUSTED_PROXIES, EDGE_PROXY_PROTOCOL ---- */

/* All of IPv4, or of IPv6, whatever way it is written. */
static bool is_everybody(const struct addr_range *range)
{
    struct addr_range v4, v6;

    return (addr_parse_cidr(STR("0.0.0.0/0"), &v4) && addr_cmp(&range->first, &v4.first) == 0 && addr_cmp(&range->last, &v4.last) == 0) ||
           (addr_parse_cidr(STR("::/0"), &v6) && addr_cmp(&range->first, &v6.first) == 0 && addr_cmp(&range->last, &v6.last) == 0);
}

static bool read_range(struct ingress_reading *r, const char *setting, struct str entry, bool any_allowed, struct addr_range *out)
{
    const struct str shown = str_cut_utf8(entry, INGRESS_SHOWN_MAX);

    if (entry.len == 0)
        ingress_fault(r, setting, "has an empty entry: write addresses and ranges with one comma between them");
    else if (!addr_parse_cidr(entry, out))
        ingress_fault(r, setting, "\"%.*s\" is neither an address nor a range such as 10.0.0.0/8 or 2001:db8::/32: no name, no port, and no bits "
                      "set behind the prefix", STR_ARG(shown));
    else if (is_everybody(out) && !any_allowed)
        ingress_fault(r, setting, "\"%.*s\" trusts everybody, so that whoever reaches the edge says who they are: name the proxies' own ranges, or "
                      "set EDGE_TRUST_ANY_PEER=true where the network lets nobody else in", STR_ARG(shown));
    else
        return true;
    return false;
}

static void read_peers(struct ingress_reading *r, const char *setting, const char *text, bool any_allowed, struct addr_set *out)
{
    struct str list = list_of(text), left = list, entry;
    struct addr_range *ranges;
    size_t n_entries = 0, n = 0;

    while (ingress_next_entry(&left, &entry))
        n_entries++;
    if (n_entries > INGRESS_PROXIES_MAX) {
        ingress_fault(r, setting, "has %zu entries: at most %d; join neighbours to ranges", n_entries, INGRESS_PROXIES_MAX);
        return;
    }
    ranges = ARENA_NEW_N(r->a, n_entries, struct addr_range);
    if (ranges == NULL) {
        r->no_memory = true;
        return;
    }
    while (ingress_next_entry(&list, &entry))
        if (read_range(r, setting, entry, any_allowed, &ranges[n]))
            n++;
    addr_set_build(out, ranges, n);
}

void ingress_read_proxies(struct ingress_reading *r)
{
    read_peers(r, "TRUSTED_PROXIES", r->text->trusted_proxies, r->text->trust_any_peer, &r->in.trusted);
}

bool ingress_read_peers(const char *setting, const char *text, bool any_allowed, struct arena *a, struct addr_set *out, struct errlist *errors)
{
    struct ingress_reading r = {.a = a, .errors = errors};

    read_peers(&r, setting, text, any_allowed, out);
    return !r.no_memory;
}

/* ---- VIEWER_HEADERS ---- */

static const char viewer[] = "VIEWER_HEADERS";

#define SOURCE_NAME_0(name)
#define SOURCE_NAME_1(name) name,
static const char *const viewer_names[] = {
#define SOURCE_ROW(id, name, is_viewer, meaning) SOURCE_NAME_##is_viewer(name)
#include "schemas/sources.def"
#undef SOURCE_ROW
    NULL};

#define SOURCE_LISTED_0(name)
#define SOURCE_LISTED_1(name) " " name
static const char viewer_list[] =
#define SOURCE_ROW(id, name, is_viewer, meaning) SOURCE_LISTED_##is_viewer(name)
#include "schemas/sources.def"
#undef SOURCE_ROW
    ;

/* EXPR_N_SOURCES: there is none of that name, which is a fault. */
static enum expr_source find_source(struct ingress_reading *r, struct str name)
{
    const char *nearest;

    for (enum expr_source s = 0; s < EXPR_N_SOURCES; s++)
        if (expr_source_is_viewer(s) && str_eq(str_of(expr_source_name(s)), name))
            return s;
    nearest = str_nearest(name, viewer_names);
    if (nearest != NULL)
        ingress_fault(r, viewer, "there is no field \"%.*s\": did you mean %s?", STR_ARG(str_cut_utf8(name, INGRESS_SHOWN_MAX)), nearest);
    else
        ingress_fault(r, viewer, "there is no field \"%.*s\": write one of%s", STR_ARG(str_cut_utf8(name, INGRESS_SHOWN_MAX)), viewer_list);
    return EXPR_N_SOURCES;
}

/* What a list names for a source; a name without bytes: `none`. */
struct mapping {
    struct str header[EXPR_N_SOURCES];
    bool given[EXPR_N_SOURCES];
};

static void read_mapping(struct ingress_reading *r, struct str entry, struct mapping *m)
{
    const size_t equals = str_find_byte(entry, '=');
    const struct str name = str_trim(str_sub(entry, 0, equals));
    struct str header = equals == SIZE_MAX ? STR_NONE : str_trim(str_sub(entry, equals + 1, entry.len));
    enum expr_source source;
    const char *reason;

    if (equals == SIZE_MAX || name.len == 0 || header.len == 0) {
        ingress_fault(r, viewer, "\"%.*s\" must be <field>=<header>, as in country=X-Country, or <field>=none",
                      STR_ARG(str_cut_utf8(entry, INGRESS_SHOWN_MAX)));
        return;
    }
    source = find_source(r, name);
    if (source == EXPR_N_SOURCES)
        return;
    if (str_eq_nocase(header, STR("none")))
        header = STR_NONE;
    reason = header.len == 0 ? NULL : ingress_header_refused(header);
    if (m->given[source])
        ingress_fault(r, viewer, "names a header for %.*s twice: leave one out", STR_ARG(name));
    else if (reason != NULL)
        ingress_fault(r, viewer, "the header \"%.*s\" of %.*s %s", STR_ARG(str_cut_utf8(header, INGRESS_SHOWN_MAX)), STR_ARG(name), reason);
    else if (header.len > 0 && str_eq_nocase(header, r->in.client_ip_header))
        ingress_fault(r, viewer, "the header \"%.*s\" of %.*s carries the client's address: name the one that carries the field",
                      STR_ARG(str_cut_utf8(header, INGRESS_SHOWN_MAX)), STR_ARG(name));
    m->given[source] = true;
    m->header[source] = header;
}

static void add_preset(size_t preset, struct mapping *m)
{
    static const struct {
        size_t preset;
        enum expr_source source;
        struct str header;
    } rows[] = {
#define PRESET_VIEWER(preset, source, header) {INGRESS_PRESET_##preset, EXPR_SOURCE_##source, {(header), sizeof(header) - 1}},
#include "schemas/client_ip_presets.def"
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].preset == preset && !m->given[rows[i].source])
            m->header[rows[i].source] = rows[i].header;
}

void ingress_read_viewer(struct ingress_reading *r, size_t preset)
{
    struct str list = list_of(r->text->viewer_headers), entry;
    struct mapping m = {0};

    while (ingress_next_entry(&list, &entry))
        read_mapping(r, entry, &m);
    add_preset(preset, &m);
    for (enum expr_source s = 0; s < EXPR_N_SOURCES; s++)
        if (m.header[s].len > 0 && !ingress_own_header(r, m.header[s], &r->in.viewer[s]))
            return;
}
