/* Peers for HAProxy: each range as the CIDRs that make it up, IPv4 as IPv4-mapped IPv6. */
#include "spoa/launcher/peer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BITS = 128, PATH_BYTES = 512 };

/* All of IPv4. */
static const struct addr_range mapped = {
    .first = {{[10] = 0xff, [11] = 0xff}},
    .last = {{[10] = 0xff, [11] = 0xff, [12] = 0xff, [13] = 0xff, [14] = 0xff, [15] = 0xff}},
};

/* The largest CIDR that begins with first and ends at last or before; *end is its end. */
static unsigned widest(const struct addr *first, const struct addr *last, struct addr *end)
{
    unsigned prefix = BITS;

    *end = *first;
    while (prefix > 0) {
        const unsigned bit = prefix - 1;
        const uint8_t mask = (uint8_t)(0x80 >> bit % 8);
        struct addr wider = *end;

        wider.b[bit / 8] |= mask;
        if ((first->b[bit / 8] & mask) != 0 || addr_cmp(&wider, last) > 0)
            break;
        *end = wider;
        prefix = bit;
    }
    return prefix;
}

static struct addr after(struct addr a)
{
    for (size_t i = sizeof(a.b); i-- > 0;)
        if (++a.b[i] != 0)
            break;
    return a;
}

static struct addr before(struct addr a)
{
    for (size_t i = sizeof(a.b); i-- > 0;)
        if (a.b[i]-- != 0)
            break;
    return a;
}

/* HAProxy matches an IPv4 range with 6to4 and IPv4-compatible addresses as well (2002:a00:1:: and ::10.0.0.1 are in 10.0.0.0/8), which are other
 * hosts. Written as mapped addresses the range matches IPv4 peers, whatever socket they came in on, and nobody else. */
static void put_range(FILE *f, struct addr first, const struct addr *last)
{
    for (;;) {
        struct addr end;
        char text[ADDR_TEXT_MAX];
        const unsigned prefix = widest(&first, last, &end);
        const size_t len = addr_render(&first, text);

        fprintf(f, "%s%.*s/%u\n", addr_is_v4(&first) ? "::ffff:" : "", (int)len, text, prefix);
        if (addr_cmp(&end, last) == 0)
            return;
        first = after(end);
    }
}

/* A range of IPv6 never means IPv4, though it may span the mapped addresses. */
static void put_set(FILE *f, const struct addr_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct addr_range *r = &set->ranges[i];
        struct addr left_end = before(mapped.first), right = after(mapped.last);
        const bool spans = i >= set->n_v4 && addr_cmp(&r->first, &mapped.last) <= 0 && addr_cmp(&r->last, &mapped.first) >= 0;

        if (!spans)
            put_range(f, r->first, &r->last);
        if (spans && addr_cmp(&r->first, &mapped.first) < 0)
            put_range(f, r->first, &left_end);
        if (spans && addr_cmp(&r->last, &mapped.last) > 0)
            put_range(f, right, &r->last);
    }
}

bool peer_file_write(const char *folder, const char *name, const struct addr_set *set, struct err *e)
{
    char path[PATH_BYTES];
    bool written;
    FILE *f;
    int fd;

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return err_set(e, ERR_IO, "", "a path must be shorter than %d bytes, which is not: %s/%s", (int)sizeof(path), folder, name);
    (void)unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    f = fd < 0 ? NULL : fdopen(fd, "w");
    if (f == NULL) {
        (void)err_set(e, ERR_IO, "", "cannot make %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    put_set(f, set);
    written = fflush(f) == 0 && ferror(f) == 0;
    if (!written)
        (void)err_set(e, ERR_IO, "", "cannot write %s: %s", path, strerror(errno));
    fclose(f);
    return written;
}
