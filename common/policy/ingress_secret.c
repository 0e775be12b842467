/* The settings of the ingress secret: the header that carries it, and the values that it may have. */
#include "common/policy/ingress_priv.h"

#include <openssl/crypto.h>

static const char header_setting[] = "INGRESS_SECRET_HEADER", values_setting[] = "INGRESS_SECRET";

enum { SECRET_SHORT = 16, SECRET_STEP = 64 };

_Static_assert(INGRESS_SECRET_MAX % SECRET_STEP == 0, "the longest secret is compared within its bytes");

struct secrets {
    char bytes[INGRESS_SECRETS_MAX][INGRESS_SECRET_MAX];
};

static void wipe(void *secrets)
{
    OPENSSL_cleanse(secrets, sizeof(struct secrets));
}

/* The header's text is not shown: it may be the secret, put into the wrong setting. */
static void read_header(struct ingress_reading *r, struct str name)
{
    const char *reason = ingress_header_refused(name);

    if (reason != NULL) {
        ingress_fault(r, header_setting, "the header %s", reason);
        return;
    }
    for (size_t i = 0; i < r->in.n_own_headers; i++)
        if (str_eq_nocase(r->in.own_headers[i], name)) {
            ingress_fault(r, header_setting, "the header is a source of the client's address or connection already: name one that carries nothing "
                          "but the secret");
            return;
        }
    (void) ingress_own_header(r, name, &r->in.secret_header);
}

static bool is_secret(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    return s.len > 0 && s.len <= INGRESS_SECRET_MAX;
}

static void read_value(struct ingress_reading *r, struct str value, size_t nth, struct secrets *to)
{
    char *p = to->bytes[r->in.n_secrets];

    if (!is_secret(value)) {
        ingress_fault(r, values_setting, "value %zu must be 1 to %d printable ASCII characters without blanks; commas stand between values", nth,
                      INGRESS_SECRET_MAX);
        return;
    }
    if (value.len < SECRET_SHORT)
        ingress_warn(r, values_setting, "value %zu has fewer than %d characters and could be guessed: take a longer one, of random characters", nth,
                     SECRET_SHORT);
    memcpy(p, value.p, value.len);
    while (r->in.secret_bytes < value.len)
        r->in.secret_bytes += SECRET_STEP;
    r->in.secrets[r->in.n_secrets++] = (struct str){p, value.len};
}

static void read_values(struct ingress_reading *r, struct str list)
{
    struct secrets *to = ARENA_NEW(r->a, struct secrets);
    struct str value;

    if (to == NULL || !arena_on_release(r->a, wipe, to)) {
        r->no_memory = true;
        return;
    }
    for (size_t nth = 1; ingress_next_entry(&list, &value); nth++) {
        if (nth > INGRESS_SECRETS_MAX) {
            ingress_fault(r, values_setting, "has more than %d values: leave old ones out", INGRESS_SECRETS_MAX);
            return;
        }
        read_value(r, value, nth, to);
    }
}

void ingress_read_secret(struct ingress_reading *r)
{
    const struct str header = str_of(r->text->secret_header == NULL ? "" : r->text->secret_header);
    const struct str values = str_of(r->text->secrets == NULL ? "" : r->text->secrets);

    if (header.len > 0)
        read_header(r, header);
    if (r->text->look_only)
        return;
    if (header.len == 0 && values.len > 0)
        ingress_fault(r, header_setting, "is required with %s: the header in which the proxy in front sends it, as in X-Ingress-Secret", values_setting);
    if (header.len > 0 && values.len == 0)
        ingress_fault(r, values_setting, "is required with %s: a comma list of the values that the header may have", header_setting);
    if (values.len > 0)
        read_values(r, values);
}
