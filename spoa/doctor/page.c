/* The two pages of the doctor, both ways. */
#include "spoa/doctor/page.h"

#include <openssl/crypto.h>

#include "common/base/jx.h"

enum { READ_ARENA_BYTES = 4096, READ_ARENA_MAX = 256 * 1024 };

/* --- writing --- */

static void put_str(struct buf *out, const char *name, struct str value)
{
    buf_put_json(out, str_of(name));
    buf_put_byte(out, ':');
    buf_put_json(out, value);
    buf_put_byte(out, ',');
}

static void put_int(struct buf *out, const char *name, int64_t value)
{
    buf_put_json(out, str_of(name));
    buf_put_byte(out, ':');
    buf_put_i64(out, value);
    buf_put_byte(out, ',');
}

/* In place of the comma behind the last member. */
static void end_object(struct buf *out)
{
    if (!out->full)
        out->p[out->len - 1] = '}';
}

static void put_store(struct buf *out, const struct store_state *s)
{
    buf_put_cstr(out, "\"store\":{");
    put_str(out, "kind", str_of(s->kind));
    buf_put_cstr(out, s->connected ? "\"connected\":true," : "\"connected\":false,");
    put_str(out, "trouble", str_of(s->trouble));
    put_int(out, "clock_skew_ms", s->clock_skew_ms);
    end_object(out);
    buf_put_byte(out, ',');
}

void doctor_page_put(struct buf *out, const struct doctor_page *page)
{
    buf_put_byte(out, '{');
    put_int(out, "agent", (int64_t) page->agent);
    put_str(out, "state", str_of(page->state));
    put_str(out, "reason", str_of(page->reason));
    put_int(out, "policy_version", page->policy_version);
    put_str(out, "policy_trouble", str_of(page->policy_trouble));
    put_int(out, "healthchecks", (int64_t) page->n_healthchecks);
    put_int(out, "notifies", (int64_t) page->n_notifies);
    put_int(out, "contract_mismatches", (int64_t) page->n_contract_mismatches);
    put_int(out, "clock_ms", (int64_t) page->clock_ms);
    put_store(out, &page->store);
    buf_put_cstr(out, "\"challenge\":{");
    put_str(out, "name", (struct str){page->challenge.name, CHALLENGE_HEX});
    put_str(out, "key", (struct str){page->challenge.key, CHALLENGE_HEX});
    end_object(out);
    buf_put_cstr(out, "}\n");
}

void doctor_proof_put(struct buf *out, const char proof[static CHALLENGE_PROOF_HEX], unsigned agent)
{
    buf_put_cstr(out, "{\"edge_doctor\":");
    buf_put_json(out, (struct str){proof, CHALLENGE_PROOF_HEX});
    buf_put_cstr(out, ",\"agent\":");
    buf_put_u64(out, agent);
    buf_put_cstr(out, "}\n");
}

/* --- reading --- */

void doctor_text(struct str text, char *out, size_t size)
{
    size_t n = text.len < size ? text.len : size - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = text.p[i] >= ' ' && text.p[i] <= '~' ? text.p[i] : '?';
    out[n] = '\0';
}

static void read_text(const struct jx *object, const char *name, char *out, size_t size)
{
    struct jx member = jx_member(object, name);
    struct str text;
    if (jx_need_str(&member, &text))
        doctor_text(text, out, size);
}

static void read_count(const struct jx *object, const char *name, uint64_t *out)
{
    struct jx member = jx_member(object, name);
    int64_t value;
    if (jx_need_int(&member, 0, INT64_MAX, &value))
        *out = (uint64_t) value;
}

static void read_int(const struct jx *object, const char *name, int64_t *out)
{
    struct jx member = jx_member(object, name);
    if (!jx_need_int(&member, INT64_MIN, INT64_MAX, out))
        *out = 0;
}

static void read_digits(const struct jx *object, const char *name, char out[static CHALLENGE_HEX])
{
    struct jx member = jx_member(object, name);
    struct str text;
    if (!jx_need_str(&member, &text))
        return;
    bool ok = text.len == CHALLENGE_HEX;
    for (size_t i = 0; ok && i < text.len; i++)
        ok = ascii_is_digit(text.p[i]) || (text.p[i] >= 'a' && text.p[i] <= 'f');
    if (ok)
        memcpy(out, text.p, CHALLENGE_HEX);
    else
        jx_fault(&member, ERR_BAD_VALUE, "must be %d lower-case hex digits", CHALLENGE_HEX);
}

static void read_store(const struct jx *root, struct store_state *out)
{
    struct jx store = jx_member(root, "store"), connected = jx_member(&store, "connected");
    read_text(&store, "kind", out->kind, sizeof out->kind);
    read_text(&store, "trouble", out->trouble, sizeof out->trouble);
    read_int(&store, "clock_skew_ms", &out->clock_skew_ms);
    if (!jx_has(&connected))
        jx_fault(&connected, ERR_MISSING, "is required");
    else
        jx_bool(&connected, &out->connected);
}

static void read_members(const struct jx *root, struct doctor_page *out)
{
    read_count(root, "agent", &out->agent);
    read_text(root, "state", out->state, sizeof out->state);
    read_text(root, "reason", out->reason, sizeof out->reason);
    read_int(root, "policy_version", &out->policy_version);
    read_text(root, "policy_trouble", out->policy_trouble, sizeof out->policy_trouble);
    read_count(root, "healthchecks", &out->n_healthchecks);
    read_count(root, "notifies", &out->n_notifies);
    read_count(root, "contract_mismatches", &out->n_contract_mismatches);
    read_count(root, "clock_ms", &out->clock_ms);
    read_store(root, &out->store);
    struct jx challenge = jx_member(root, "challenge");
    read_digits(&challenge, "name", out->challenge.name);
    read_digits(&challenge, "key", out->challenge.key);
}

bool doctor_page_read(struct str body, struct doctor_page *out, struct err *e)
{
    json_t *document = NULL;
    struct errlist errors;
    if (!jx_parse(body, DOCTOR_PAGE_MAX, &document, e))
        return false;
    bool ok = errlist_init(&errors, 1);
    if (ok) {
        struct arena arena;
        arena_init(&arena, READ_ARENA_BYTES, READ_ARENA_MAX);
        struct jx_doc doc = {.arena = &arena, .errors = &errors};
        struct jx root = jx_root(document, &doc);
        struct doctor_page page = {0};
        read_members(&root, &page);
        ok = errors.n == 0;
        if (ok)
            *out = page;
        else
            *e = errors.items[0];
        OPENSSL_cleanse(&page.challenge, sizeof page.challenge);
        arena_release(&arena);
        errlist_release(&errors);
    } else {
        err_set(e, ERR_NO_MEMORY, "", "no memory to read the page");
    }
    json_decref(document);
    return ok;
}

static bool proves(const struct challenge *c, const char nonce[static CHALLENGE_HEX], struct str proof)
{
    char wanted[CHALLENGE_PROOF_HEX];
    if (c == NULL || proof.len != sizeof wanted || !challenge_prove(c, nonce, wanted))
        return false;
    return CRYPTO_memcmp(wanted, proof.p, sizeof wanted) == 0;
}

enum doctor_proof doctor_proof_read(struct str body, const struct challenge *const *challenges, size_t n, const char nonce[static CHALLENGE_HEX],
                                    unsigned *by)
{
    json_t *document = NULL;
    struct err e;
    err_clear(&e);
    if (!jx_parse(body, DOCTOR_PAGE_MAX, &document, &e))
        return DOCTOR_PROOF_NONE;
    enum doctor_proof result = DOCTOR_PROOF_NONE;
    const json_t *proof = json_object_get(document, "edge_doctor"), *agent = json_object_get(document, "agent");
    if (json_is_string(proof) && json_is_integer(agent)) {
        const json_int_t i = json_integer_value(agent);
        const struct str text = {json_string_value(proof), json_string_length(proof)};
        result = DOCTOR_PROOF_FALSE;
        if (i >= 0 && (uint64_t) i < n && proves(challenges[i], nonce, text)) {
            result = DOCTOR_PROOF_GOOD;
            *by = (unsigned) i;
        }
    }
    json_decref(document);
    return result;
}
