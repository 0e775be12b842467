/* From settings to deployment: paths that exist, sizes that fit the machine. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/log.h"
#include "spoa/launcher/launcher_priv.h"
#include "spoa/launcher/limits.h"
#include "spoa/settings_deployment.h"

static void say_faults(const struct errlist *faults)
{
    for (size_t i = 0; i < faults->n; i++)
        fprintf(stderr, "edge-spoa run: %s\n", faults->items[i].text);
    if (faults->n_dropped > 0)
        fprintf(stderr, "edge-spoa run: and %zu more faults\n", faults->n_dropped);
}

/* The file's absolute path, with its links resolved, in the arena; NULL when it is not there. */
static const char *resolve(struct arena *a, const char *path)
{
    char absolute[PATH_MAX];
    struct str copy;

    if (realpath(path, absolute) == NULL || !arena_copy_str(a, str_of(absolute), &copy))
        return NULL;
    return copy.p;
}

/* Links of an absolute path stay: a reload uses it again, and an upgrade may have changed what they name. */
static const char *make_absolute(struct arena *a, const char *path)
{
    struct str copy;

    if (path[0] != '/')
        return resolve(a, path);
    return arena_copy_str(a, str_of(path), &copy) ? copy.p : NULL;
}

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static const char *find_in_path(struct arena *a, char *const envp[], const char *name)
{
    const char *path = settings_env(envp, "PATH");
    struct str rest = str_of(path == NULL ? "" : path);

    while (rest.len > 0) {
        const struct str folder = str_sub(rest, 0, str_find_byte(rest, ':'));
        char file[PATH_MAX];
        struct str copy;

        if (folder.len > 0 && folder.p[0] == '/' &&
            snprintf(file, sizeof(file), "%.*s/%s", STR_ARG(folder), name) < (int)sizeof(file) && is_program(file))
            return arena_copy_str(a, str_of(file), &copy) ? copy.p : NULL;
        rest = str_sub(rest, folder.len + 1, rest.len);
    }
    return NULL;
}

static void find_haproxy(struct deployment *d, struct arena *a, struct errlist *faults)
{
    const char *wanted = d->settings.haproxy;

    d->haproxy = strchr(wanted, '/') == NULL ? find_in_path(a, d->envp, wanted)
                 : is_program(wanted)        ? make_absolute(a, wanted)
                                             : NULL;
    if (d->haproxy == NULL)
        errlist_add(faults, ERR_SETTING, "/EDGE_HAPROXY",
                    "EDGE_HAPROXY: %s is not a program that can be executed%s; name the binary of HAProxy %s", wanted,
                    strchr(wanted, '/') == NULL ? " from PATH" : "", "3.2 or newer");
}

static void find_haproxy_dir(struct deployment *d, struct arena *a, struct errlist *faults)
{
    const char *slash = strrchr(d->self, '/');
    char wanted[PATH_MAX], file[PATH_MAX + 16];

    if (d->settings.haproxy_dir[0] != '\0')
        snprintf(wanted, sizeof(wanted), "%s", d->settings.haproxy_dir);
    else
        snprintf(wanted, sizeof(wanted), "%.*s/../share/edge-proxy/haproxy", (int)(slash - d->self), d->self);
    d->haproxy_dir = make_absolute(a, wanted);
    snprintf(file, sizeof(file), "%s/haproxy.cfg", wanted);
    if (d->haproxy_dir == NULL || access(file, R_OK) != 0)
        errlist_add(faults, ERR_SETTING, "/EDGE_HAPROXY_DIR",
                    "EDGE_HAPROXY_DIR: %s can't be read; name the folder of haproxy.cfg", file);
}

static void size_caps(struct deployment *d, struct errlist *faults)
{
    const uint64_t streams = d->settings.max_streams, n_fds = limits_raise_fds();
    uint64_t wanted;

    d->max_inflight = d->settings.max_inflight;
    if (d->max_inflight == 0)
        d->max_inflight =
            limits_max_inflight(limits_memory_bytes("/proc/self/cgroup", "/sys/fs/cgroup", limits_physical_bytes()));
    d->maxconn = limits_maxconn(d->max_inflight, streams, environment_has_hop(d), n_fds);
    wanted = limits_maxconn(d->max_inflight, streams, false, UINT64_MAX);
    if (d->maxconn == 0)
        errlist_add(faults, ERR_SETTING, "/MAX_INFLIGHT",
                    "MAX_INFLIGHT: %ju requests at once do not fit the limit of %ju open files; raise it (ulimit -n) "
                    "or lower MAX_INFLIGHT",
                    (uintmax_t)d->max_inflight, (uintmax_t)n_fds);
    else if (d->maxconn < wanted)
        log_event(LOG_LEVEL_WARN, "maxconn_lowered",
                  "the limit of %ju open files allows %ju connections instead of %ju (MAX_INFLIGHT %ju, MAX_STREAMS "
                  "%ju, half as many idle "
                  "ones): more will wait; raise it (ulimit -n) or lower the two",
                  (uintmax_t)n_fds, (uintmax_t)d->maxconn, (uintmax_t)wanted, (uintmax_t)d->max_inflight,
                  (uintmax_t)streams);
}

/* A path, not /proc/self/exe: an exchange starts the binary that stands there by then. */
static bool find_self(struct deployment *d, struct arena *a)
{
    d->self = resolve(a, "/proc/self/exe");
    if (d->self == NULL)
        fprintf(stderr, "edge-spoa run: cannot read /proc/self/exe, by which agents are started: %s\n",
                strerror(errno));
    return d->self != NULL;
}

int setup_deployment(struct deployment *d, char *const envp[], struct arena *a)
{
    struct errlist faults;
    int status = 0;
    struct err e;

    *d = (struct deployment){.envp = envp, .has_ipv6 = limits_has_ipv6()};
    if (!errlist_init(&faults, 0)) {
        fprintf(stderr, "edge-spoa run: no memory\n");
        return 1;
    }
    err_clear(&e);
    if (!find_self(d, a)) {
        status = 1;
    } else if (settings_load(&d->settings, SETTINGS_RUN, envp, &faults)) {
        if (!settings_split_upstream(d->settings.upstream_url, &d->upstream, &e))
            errlist_add_err(&faults, &e);
        find_haproxy(d, a, &faults);
        find_haproxy_dir(d, a, &faults);
        d->ingress = settings_ingress_logged(&d->settings, SETTINGS_RUN);
        if (d->ingress != NULL)
            size_caps(d, &faults);
        else
            errlist_add(&faults, ERR_NO_MEMORY, "", "no memory to read how requests reach this deployment");
        if (!settings_balancers(&d->settings, a, &d->balancers, &faults))
            status = 2;
    }
    if (faults.n > 0)
        status = 2;
    say_faults(&faults);
    errlist_release(&faults);
    return status;
}
