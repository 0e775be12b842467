/* DECODE: the arguments of a NOTIFY, held against schemas/wire.def. */
#include "spoa/request/contract.h"
#include "spoa/request/request.h"

enum arg_type { ARG_INT, ARG_BOOL, ARG_STR, ARG_BIN, ARG_IP };
/* The last two: optional, and asked for only by configurations with that feature. */
enum arg_need { ARG_OPTIONAL, ARG_REQUIRED, ARG_FINGERPRINTS, ARG_CLIENT_CERT };

enum arg {
#define WIRE_ARG(id, name, type, max_len, need, fetch) ARG_ID_##id,
#include "schemas/wire.def"
    ARG_ID_N
};

struct arg_row {
    struct str name;
    enum arg_type type;
    size_t max_len;
    enum arg_need need;
};

static const struct arg_row arg_rows[ARG_ID_N] = {
#define WIRE_ARG(id, name, type, max_len, need, fetch) {STR(name), ARG_##type, max_len, ARG_##need},
#include "schemas/wire.def"
};

static enum arg arg_find(struct str name)
{
    for (size_t i = 0; i < ARG_ID_N; i++)
        if (str_eq(arg_rows[i].name, name))
            return (enum arg) i;
    return ARG_ID_N;
}

static bool arg_fits(const struct arg_row *row, const struct spop_value *v)
{
    if (v->type == SPOP_NULL)
        return row->need != ARG_REQUIRED;
    switch (row->type) {
    case ARG_INT:
        return v->type == SPOP_INT32 || v->type == SPOP_INT64 || v->type == SPOP_UINT32 || v->type == SPOP_UINT64;
    case ARG_BOOL:
        return v->type == SPOP_BOOL;
    case ARG_STR:
        return v->type == SPOP_STR && v->s.len <= row->max_len;
    case ARG_BIN:
        return v->type == SPOP_BIN && v->s.len <= row->max_len;
    case ARG_IP:
        break;
    }
    return v->type == SPOP_IPV4 || v->type == SPOP_IPV6;
}

/* The id goes into templates, headers and logs as it is, so it may hold nothing that means anything there. */
static bool id_ok(struct str id)
{
    for (size_t i = 0; i < id.len; i++)
        if (!ascii_is_alpha(id.p[i]) && !ascii_is_digit(id.p[i]) && id.p[i] != '.' && id.p[i] != '_' && id.p[i] != '-')
            return false;
    return id.len > 0;
}

static int64_t int_of(const struct spop_value *v)
{
    return v->type == SPOP_UINT32 || v->type == SPOP_UINT64 ? (int64_t) v->u : v->i;
}

/* 0 where HAProxy knows nothing. It has no number for an announced 2^63 bytes and more, which come out negative. */
static uint64_t size_of(const struct spop_value *v)
{
    if (v->type == SPOP_NULL)
        return 0;
    return int_of(v) < 0 ? UINT64_MAX : (uint64_t) int_of(v);
}

/* HAProxy sends arguments in the order of its configuration, which is the table's: the guess is nearly always right. True: the next argument
 * has that name, which is taken. */
static bool arg_guessed(struct str *in, size_t guess)
{
    if (guess >= ARG_ID_N)
        return false;
    struct str name = arg_rows[guess].name;
    if (in->len <= name.len || (unsigned char) in->p[0] != name.len || memcmp(in->p + 1, name.p, name.len) != 0)
        return false;
    str_skip(in, 1 + name.len);
    return true;
}

/* The next argument, whichever it is. False: it is cut. */
static bool arg_read(struct str *in, size_t guess, enum arg *arg, struct spop_value *v)
{
    struct str name;
    if (arg_guessed(in, guess)) {
        *arg = (enum arg) guess;
        return spop_get_value(in, v);
    }
    if (!spop_get_kv(in, &name, v))
        return false;
    *arg = arg_find(name);
    return true;
}

/* Arguments of the table, each once at most, none else; the optional ones may be left out. */
static bool args_read(struct str *in, uint8_t n_args, struct spop_value values[static ARG_ID_N])
{
    bool seen[ARG_ID_N] = {false};
    for (size_t i = 0; i < n_args; i++) {
        struct spop_value v;
        enum arg arg;
        if (!arg_read(in, i, &arg, &v))
            return false;
        if (arg == ARG_ID_N || seen[arg] || !arg_fits(&arg_rows[arg], &v))
            return false;
        seen[arg] = true;
        values[arg] = v;
    }
    for (size_t i = 0; i < ARG_ID_N; i++) {
        if (!seen[i] && arg_rows[i].need == ARG_REQUIRED)
            return false;
        if (!seen[i])
            values[i] = (struct spop_value){.type = SPOP_NULL};
    }
    return in->len == 0;
}

/* A NOTIFY of another contract may have other arguments: its version is looked for on its own. */
static bool contract_differs(struct str in, uint8_t n_args)
{
    for (size_t i = 0; i < n_args; i++) {
        struct str name;
        struct spop_value v;
        if (!spop_get_kv(&in, &name, &v))
            return false;
        if (str_eq(name, arg_rows[ARG_ID_CONTRACT].name))
            return arg_fits(&arg_rows[ARG_ID_CONTRACT], &v) && int_of(&v) != CONTRACT_VERSION;
    }
    return false;
}

static struct str text_of(const struct spop_value *v)
{
    return v->type == SPOP_NULL ? STR_NONE : v->s;
}

/* What the client's handshake told; nothing of it in configurations without these features. */
static void read_tls(const struct spop_value v[static ARG_ID_N], struct request_args *out)
{
    out->hello = text_of(&v[ARG_ID_HELLO]);
    out->has_cert = v[ARG_ID_CERT_VERIFY].type != SPOP_NULL;
    out->cert_verify = out->has_cert ? int_of(&v[ARG_ID_CERT_VERIFY]) : 0;
    out->cert_subject = text_of(&v[ARG_ID_CERT_SUBJECT]);
    out->cert_issuer = text_of(&v[ARG_ID_CERT_ISSUER]);
    out->cert_serial = text_of(&v[ARG_ID_CERT_SERIAL]);
    out->cert_sha256 = text_of(&v[ARG_ID_CERT_SHA256]);
}

enum step_result step_decode(struct request *r)
{
    struct str in = r->payload, message;
    uint8_t n_args;
    if (!spop_get_message(&in, &message, &n_args))
        return request_fail(r, METRIC_BAD_NOTIFY);

    struct spop_value v[ARG_ID_N];
    struct str args = in;
    bool whole = args_read(&args, n_args, v);
    if (whole ? int_of(&v[ARG_ID_CONTRACT]) != CONTRACT_VERSION : contract_differs(in, n_args))
        return request_fail(r, METRIC_CONTRACT_MISMATCH);
    if (!whole || !id_ok(v[ARG_ID_UNIQUE_ID].s))
        return request_fail(r, METRIC_BAD_NOTIFY);

    r->args.id = v[ARG_ID_UNIQUE_ID].s;
    r->args.method = v[ARG_ID_METHOD].s;
    r->args.url = v[ARG_ID_URL].s;
    r->args.version = v[ARG_ID_HTTP_VERSION].s;
    r->args.tls = v[ARG_ID_TLS].b;
    r->args.native = v[ARG_ID_NATIVE].b;
    r->args.body_comes = v[ARG_ID_BODY_COMES].type != SPOP_NULL && v[ARG_ID_BODY_COMES].b;
    r->args.body_bytes = size_of(&v[ARG_ID_BODY_SIZE]);
    if (size_of(&v[ARG_ID_BODY_CAME]) > r->args.body_bytes)
        r->args.body_bytes = size_of(&v[ARG_ID_BODY_CAME]);
    read_tls(v, &r->args);
    r->args.has_src = v[ARG_ID_SRC].type != SPOP_NULL;
    if (r->args.has_src)
        r->args.src = v[ARG_ID_SRC].ip;
    if (!headers_decode(v[ARG_ID_HEADERS].s, &r->arena, &r->headers))
        return request_fail(r, METRIC_BAD_NOTIFY);
    return STEP_NEXT;
}
