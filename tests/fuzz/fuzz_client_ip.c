/* Any bytes as an address out of a header, in both forms, and as the lines of X-Forwarded-For. The first line names whom to trust. */
#include "common/net/client_ip.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

enum { LINES_MAX = 64, RANGES_MAX = 16, ENTRIES_MAX = 512, SHOWN_MAX = ADDR_TEXT_MAX + 16 };

static bool reads_as(const char *before, const struct addr *a, const char *behind, enum client_ip_form form)
{
    char text[ADDR_TEXT_MAX], storage[SHOWN_MAX];
    struct addr again;
    struct buf b;

    buf_init(&b, storage, sizeof storage);
    buf_put_cstr(&b, before);
    buf_put(&b, (struct str){text, addr_render(a, text)});
    buf_put_cstr(&b, behind);
    return !b.full && client_ip_parse(buf_str(&b), form, &again) && addr_cmp(a, &again) == 0;
}

/* Whatever was read is read again from canonical text, with and without a port. */
static void check_form(struct str text, enum client_ip_form form)
{
    struct addr a = {{77}};

    if (!client_ip_parse(text, form, &a)) {
        GUARANTEE(a.b[0] == 77 && a.b[15] == 0);
        return;
    }
    GUARANTEE(reads_as("", &a, "", CLIENT_IP_ADDRESS) && reads_as("", &a, ":65535", CLIENT_IP_ADDRESS_PORT));
    if (addr_is_v4(&a))
        GUARANTEE(reads_as("", &a, ":0", CLIENT_IP_ADDRESS));
    else
        GUARANTEE(reads_as("[", &a, "]", CLIENT_IP_ADDRESS) && reads_as("[", &a, "]:1", CLIENT_IP_ADDRESS_PORT));
    for (size_t i = 0; i < text.len; i++)
        GUARANTEE(memchr("0123456789abcdefABCDEF.:[]", text.p[i], 26) != NULL);
}

/* Entries in order of receipt, empty ones left out. */
static size_t split(const struct str *lines, size_t n, struct str entries[static ENTRIES_MAX])
{
    size_t n_entries = 0;

    for (size_t i = 0; i < n; i++) {
        size_t from = 0;

        for (size_t at = 0; at <= lines[i].len; at++) {
            if (at < lines[i].len && lines[i].p[at] != ',')
                continue;
            const struct str entry = str_trim(str_sub(lines[i], from, at));

            if (entry.len > 0 && n_entries < ENTRIES_MAX)
                entries[n_entries++] = entry;
            from = at + 1;
        }
    }
    return n_entries;
}

/* The same by what the list holds: from the right, everything that is trusted, and one more. */
static enum client_ip_walk walk_naively(const struct str *entries, size_t n, const struct addr_set *trusted, struct addr *out)
{
    struct addr a;

    if (n == 0)
        return CLIENT_IP_MISSING;
    if (!client_ip_parse(entries[n - 1], CLIENT_IP_ADDRESS, &a))
        return CLIENT_IP_MALFORMED;
    while (n > 1 && addr_set_has(trusted, &a)) {
        n--;
        if (!client_ip_parse(entries[n - 1], CLIENT_IP_ADDRESS, &a))
            return CLIENT_IP_MALFORMED;
    }
    *out = a;
    return CLIENT_IP_FOUND;
}

static void check_walk(const struct str *lines, size_t n, const struct addr_set *trusted)
{
    struct str entries[ENTRIES_MAX];
    const size_t n_entries = split(lines, n, entries);
    struct addr got = {{77}}, want = {{77}};

    if (n_entries == ENTRIES_MAX)
        return;
    GUARANTEE(client_ip_walk(lines, n, trusted, &got) == walk_naively(entries, n_entries, trusted, &want));
    GUARANTEE(addr_cmp(&got, &want) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str left = {(const char *) data, size}, lines[LINES_MAX];
    struct addr_range ranges[RANGES_MAX];
    struct str proxies[ENTRIES_MAX];
    struct addr_set trusted;
    size_t n = 0, n_ranges = 0;

    check_form(left, CLIENT_IP_ADDRESS);
    check_form(left, CLIENT_IP_ADDRESS_PORT);
    while (n < LINES_MAX && left.len > 0) {
        const size_t end = str_find_byte(left, '\n');

        lines[n] = str_sub(left, 0, end);
        check_form(lines[n], CLIENT_IP_ADDRESS);
        check_form(lines[n++], CLIENT_IP_ADDRESS_PORT);
        left = end == SIZE_MAX ? STR_NONE : str_sub(left, end + 1, left.len);
    }
    const size_t n_proxies = n > 0 ? split(lines, 1, proxies) : 0;

    for (size_t i = 0; i < n_proxies && n_ranges < RANGES_MAX; i++)
        if (addr_parse_cidr(proxies[i], &ranges[n_ranges]))
            n_ranges++;
    addr_set_build(&trusted, ranges, n_ranges);
    check_walk(lines, n, &trusted);
    if (n > 1)
        check_walk(lines + 1, n - 1, &trusted);
    return 0;
}
