/* Who sent a request: the secret of the front, the peer, the client's address, and what is known of its connection. */
#include <openssl/crypto.h>

#include "common/policy/ingress_priv.h"

const char *identity_refusal_name(enum identity_refusal r)
{
    static const char *const names[IDENTITY_REFUSAL_N] = {"",
#define IDENTITY_REFUSAL_ROW(id, name, meaning) name,
#include "schemas/identity_refusals.def"
#undef IDENTITY_REFUSAL_ROW
    };

    return names[r];
}

/* The client's address may stand in several lines, which are kept in order. */
struct lines {
    struct str values[HEADERS_MAX];
    size_t n;
};

/* One pass over the headers; most differ from all own ones by the length of their name. */
static void search(const struct ingress *in, const struct headers *headers, struct ingress_found *found, struct lines *lines)
{
    for (size_t i = 0; i < headers->n; i++) {
        const struct header *h = &headers->items[i];

        if ((in->own_lengths >> (h->name.len < 63 ? h->name.len : 63) & 1) == 0)
            continue;
        for (size_t k = 0; k < in->n_own_headers; k++) {
            if (!str_eq(in->own_headers[k], h->name))
                continue;
            found->n[k]++;
            found->value[k] = str_trim(h->value);
            if (in->own_headers[k].p == in->client_ip_header.p && in->source == CLIENT_IP_FORWARDED_FOR)
                lines->values[lines->n++] = h->value;
        }
    }
}

/* Neither which value it is nor how far it agrees shows in the time that this takes. */
static bool secret_ok(const struct ingress *in, const struct ingress_found *found)
{
    const size_t place = ingress_own_place(in, in->secret_header);
    const struct str sent = found->value[place];
    char padded[INGRESS_SECRET_MAX] = {0};
    int is_none = 1;

    if (found->n[place] != 1 || sent.len == 0 || sent.len > in->secret_bytes)
        return false;
    memcpy(padded, sent.p, sent.len);
    for (size_t i = 0; i < in->n_secrets; i++) {
        const size_t other_len = in->secrets[i].len ^ sent.len;

        is_none &= (CRYPTO_memcmp(in->secrets[i].p, padded, in->secret_bytes) | (int) other_len) != 0;
    }
    OPENSSL_cleanse(padded, in->secret_bytes);
    return is_none == 0;
}

static enum identity_refusal read_header(const struct ingress *in, const struct ingress_found *found, struct addr *ip)
{
    const size_t place = ingress_own_place(in, in->client_ip_header);

    if (found->n[place] > 1)
        return IDENTITY_SEVERAL;
    if (found->value[place].len == 0)
        return IDENTITY_MISSING;
    return client_ip_parse(found->value[place], in->form, ip) ? IDENTITY_OK : IDENTITY_MALFORMED;
}

static enum identity_refusal read_address(const struct ingress *in, const struct ingress_connection *c, const struct ingress_found *found,
                                          const struct lines *lines, struct addr *ip)
{
    static const enum identity_refusal of_walk[] = {
        [CLIENT_IP_FOUND] = IDENTITY_OK, [CLIENT_IP_MISSING] = IDENTITY_MISSING, [CLIENT_IP_MALFORMED] = IDENTITY_MALFORMED};

    if (in->source == CLIENT_IP_HEADER)
        return read_header(in, found, ip);
    if (in->source == CLIENT_IP_FORWARDED_FOR)
        return of_walk[client_ip_walk(lines->values, lines->n, &in->trusted, ip)];
    if (!c->has_src)
        return IDENTITY_NO_PEER;
    *ip = c->src;
    return IDENTITY_OK;
}

bool ingress_identify(const struct ingress *in, const struct ingress_connection *c, const struct headers *headers, struct arena *a,
                      struct ingress_client *out)
{
    struct ingress_client client = {.peer_trusted = c->has_src && addr_set_has(&in->trusted, &c->src)};
    struct ingress_found found;
    struct lines lines;

    if (headers->n > HEADERS_MAX)
        return false;
    if (in->n_own_headers > 0) {
        memset(found.n, 0, sizeof found.n);
        memset(found.value, 0, sizeof found.value);
        lines.n = 0;
        search(in, headers, &found, &lines);
    }
    if (in->secret_header.len > 0 && !secret_ok(in, &found))
        client.refusal = IDENTITY_SECRET;
    else if (in->reads_headers && !client.peer_trusted)
        client.refusal = IDENTITY_UNTRUSTED_PEER;
    else
        client.refusal = read_address(in, c, &found, &lines, &client.ip);
    if (client.refusal == IDENTITY_OK && in->handshake)
        ingress_viewer_of_handshake(c, &client.viewer);
    else if (client.refusal == IDENTITY_OK && in->reads_headers && !ingress_viewer_of_headers(in, &found, a, &client.viewer))
        return false;
    *out = client;
    return true;
}
