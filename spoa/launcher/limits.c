/* What the machine allows: memory, open files, IPv6; and the sizes that follow from it. */
#include "spoa/launcher/limits.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/parse.h"

enum { REQUEST_BYTES = 512 * 1024, INFLIGHT_MAX = 10000, PATH_CAP = 4096 };
/* Open files of HAProxy that are no client's: listeners, the threads' own, rings, resolvers, sockets for commands. */
enum { FDS_RESERVED = 200, STREAMS_PER_AGENT_CONNECTION = 20 };

/* A small file's text without blanks around it; false when it can't be read. */
static bool read_small(const char *path, char *storage, size_t cap, struct str *out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return false;
    n = read(fd, storage, cap);
    close(fd);
    if (n < 0)
        return false;
    *out = str_trim((struct str){storage, (size_t)n});
    return true;
}

/* Lowers *limit to the limits of the group at path below base and of its parents. A path that is not there (a container
 * may see the host's) still leaves base itself to look at. */
static void lower_to_group(const char *base, struct str path, const char *file, uint64_t *limit)
{
    char name[PATH_CAP], text[64];
    uint64_t bytes;
    struct str value;
    struct err e;

    for (;;) {
        while (path.len > 0 && path.p[path.len - 1] == '/')
            path.len--;
        err_clear(&e);
        /* "max", what version 2 writes for no limit, does not parse as a number. */
        if (snprintf(name, sizeof(name), "%s%.*s/%s", base, STR_ARG(path), file) < (int)sizeof(name) &&
            read_small(name, text, sizeof(text), &value) && parse_u64(value, 1, UINT64_MAX, &bytes, "", &e) &&
            bytes < *limit)
            *limit = bytes;
        if (path.len == 0)
            return;
        while (path.len > 0 && path.p[path.len - 1] != '/')
            path.len--;
    }
}

static bool has_controller(struct str list, struct str name)
{
    while (list.len > 0) {
        const struct str one = str_sub(list, 0, str_find_byte(list, ','));

        if (str_eq(one, name))
            return true;
        list = str_sub(list, one.len + 1, list.len);
    }
    return false;
}

/* "0::/path" is version 2's line, "4:memory:/path" one of version 1. */
static void lower_to_line(struct str line, const char *cgroup_root, uint64_t *limit)
{
    const size_t colon = str_find_byte(line, ':');
    const struct str rest = colon == SIZE_MAX ? STR_NONE : str_sub(line, colon + 1, line.len);
    const size_t second = str_find_byte(rest, ':');
    char base[PATH_CAP];

    if (second == SIZE_MAX)
        return;
    if (second == 0)
        lower_to_group(cgroup_root, str_sub(rest, 1, rest.len), "memory.max", limit);
    else if (has_controller(str_sub(rest, 0, second), STR("memory")) &&
             snprintf(base, sizeof(base), "%s/memory", cgroup_root) < (int)sizeof(base))
        lower_to_group(base, str_sub(rest, second + 1, rest.len), "memory.limit_in_bytes", limit);
}

uint64_t limits_memory_bytes(const char *proc_cgroup, const char *cgroup_root, uint64_t physical_bytes)
{
    char storage[PATH_CAP * 2];
    uint64_t limit = physical_bytes;
    struct str text;

    if (!read_small(proc_cgroup, storage, sizeof(storage), &text))
        return limit;
    while (text.len > 0) {
        const struct str line = str_sub(text, 0, str_find_byte(text, '\n'));

        lower_to_line(line, cgroup_root, &limit);
        text = str_sub(text, line.len + 1, text.len);
    }
    return limit;
}

uint64_t limits_physical_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

    return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes
                                       : (uint64_t)INFLIGHT_MAX * REQUEST_BYTES;
}

uint64_t limits_max_inflight(uint64_t memory_bytes)
{
    const uint64_t n = memory_bytes / REQUEST_BYTES;

    return n < 1 ? 1 : n > INFLIGHT_MAX ? INFLIGHT_MAX : n;
}

uint64_t limits_raise_fds(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        const struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};

        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return limit.rlim_cur;
}

uint64_t limits_maxconn(uint64_t cap_ordinary, uint64_t cap_streams, bool has_hop, uint64_t n_fds)
{
    const uint64_t caps = cap_ordinary + cap_streams, wanted = caps + caps / 2;
    /* Both engines may hold connections to the agents; each client takes one file, its upstream connection another, and a hop
     * one at each of its ends. */
    const uint64_t reserved = FDS_RESERVED + 2 * cap_ordinary / STREAMS_PER_AGENT_CONNECTION;
    const uint64_t most = n_fds > reserved ? (n_fds - reserved) / (has_hop ? 4 : 2) : 0;

    return wanted < most ? wanted : most;
}

bool limits_has_ipv6(void)
{
    const struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    const int off = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool works;

    if (fd < 0)
        return false;
    works = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
            bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0;
    close(fd);
    return works;
}
