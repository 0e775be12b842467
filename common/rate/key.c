/* What a counter is filed under: subjects that no client can forge, hashed to a fixed size. */
#include "common/rate/rate.h"

#include "common/base/codec.h"
#include "common/base/digest.h"

enum { PREFIX_MAX = 128 };

void rate_subject_begin(struct buf *b, enum rate_domain domain)
{
    buf_put_byte(b, (char) domain);
}

void rate_subject_value(struct buf *b, struct str value)
{
    if (value.len > RATE_SUBJECT_MAX) {
        b->full = true;
        return;
    }
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_put_byte(b, (char) (uint8_t) (value.len >> shift));
    buf_put(b, value);
}

void rate_subject_ip(struct buf *b, const struct addr *ip)
{
    struct addr unit = addr_subscriber(ip);
    rate_subject_value(b, (struct str){(const char *) unit.b, sizeof unit.b});
}

bool rate_name_make(const struct rate_params *p, struct str rule_id, struct arena *a, struct rate_name *out)
{
    char storage[PREFIX_MAX];
    struct buf prefix;
    struct rate_name name;

    buf_init(&prefix, storage, sizeof storage);
    buf_put(&prefix, STR("rl:tb:"));
    buf_put_u64(&prefix, p->period_ms);
    buf_put_byte(&prefix, ':');
    buf_put(&prefix, rule_id);
    buf_put_byte(&prefix, ':');
    if (prefix.full || !digest_sha256(buf_str(&prefix), name.digest, sizeof name.digest) || !arena_copy_str(a, buf_str(&prefix), &name.prefix))
        return false;
    *out = name;
    return true;
}

bool rate_subject_hash(struct str text, struct rate_subject *out)
{
    return digest_sha256(text, out->b, sizeof out->b);
}

void rate_key_put(struct buf *b, const struct rate_name *name, const struct rate_subject *subject)
{
    char text[CODEC_BASE64URL_LEN(sizeof subject->b)];
    codec_base64url(subject->b, sizeof subject->b, text);
    buf_put(b, name->prefix);
    buf_put_byte(b, '{');
    buf_put(b, (struct str){text, sizeof text});
    buf_put_byte(b, '}');
}
