/* The folder of an edge's sockets and counters. */
#include "spoa/launcher/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether a folder below temp can carry sockets and stand in HAProxy's arguments. */
static bool is_usable(const char *temp, size_t suffix_bytes)
{
    const struct str s = str_of(temp);

    for (size_t i = 0; i < s.len; i++)
        if (!ascii_is_alpha(s.p[i]) && !ascii_is_digit(s.p[i]) && memchr("/._-", s.p[i], 4) == NULL)
            return false;
    return s.len > 0 && s.p[0] == '/' && s.len + suffix_bytes <= SETTING_RUN_DIR_MAX + 1;
}

static bool make_private(struct run_dir *d, const char *temp, struct err *e)
{
    static const char suffix[] = "/edge-spoa-XXXXXX";

    if (temp == NULL || !is_usable(temp, sizeof(suffix)))
        temp = "/tmp";
    snprintf(d->path, sizeof(d->path), "%s%s", temp, suffix);
    if (mkdtemp(d->path) == NULL)
        return err_set(e, ERR_IO, "", "cannot make a folder for sockets in %s: %s", temp, strerror(errno));
    d->is_ours = true;
    return true;
}

/* The lock is the folder's own: no file, and gone with the process. */
static bool lock(struct run_dir *d, struct err *e)
{
    struct stat st;

    d->lock_fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->lock_fd < 0 || fstat(d->lock_fd, &st) != 0)
        return err_set(e, ERR_SETTING, "/EDGE_RUN_DIR", "EDGE_RUN_DIR: %s is no folder that can be used: %s", d->path,
                       strerror(errno));
    if ((st.st_mode & S_IWOTH) != 0)
        return err_set(e, ERR_SETTING, "/EDGE_RUN_DIR",
                       "EDGE_RUN_DIR: %s can be written to by everybody; sockets need a folder of their own", d->path);
    if (access(d->path, W_OK | X_OK) != 0)
        return err_set(e, ERR_SETTING, "/EDGE_RUN_DIR", "EDGE_RUN_DIR: %s can't be written to: %s", d->path,
                       strerror(errno));
    if (flock(d->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return err_set(e, ERR_SETTING, "/EDGE_RUN_DIR",
                       "EDGE_RUN_DIR: %s is in use by another edge; each needs a folder of its own", d->path);
    return true;
}

/* An agent's counters: counts-<index>.<hash of their layout>. */
static bool is_counts(struct str name)
{
    size_t at = sizeof("counts-") - 1;

    if (!str_starts(name, STR("counts-")) || at == name.len || !ascii_is_digit(name.p[at]))
        return false;
    while (at < name.len && ascii_is_digit(name.p[at]))
        at++;
    return at < name.len && name.p[at] == '.';
}

static void remove_files(int dir_fd, bool all)
{
    const int fd = dup(dir_fd);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return;
    }
    /* The position is shared with dir_fd, and may be where an earlier walk ended. */
    rewinddir(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        if (all || is_counts(str_of(entry->d_name)))
            (void)unlinkat(dir_fd, entry->d_name, 0);
    closedir(dir);
}

bool run_dir_open(struct run_dir *d, const char *wanted, const char *temp, struct err *e)
{
    *d = (struct run_dir){.lock_fd = -1};
    if (wanted[0] == '\0') {
        if (!make_private(d, temp, e))
            return false;
    } else {
        snprintf(d->path, sizeof(d->path), "%s", wanted);
        if (mkdir(d->path, S_IRWXU) != 0 && errno != EEXIST)
            return err_set(e, ERR_SETTING, "/EDGE_RUN_DIR", "EDGE_RUN_DIR: cannot make %s: %s; name a folder that is there, or one in a folder "
                           "that can be written to", d->path, strerror(errno));
    }
    if (lock(d, e)) {
        /* What a launcher left that was killed: counters begin with the launcher. */
        remove_files(d->lock_fd, false);
        return true;
    }
    run_dir_close(d);
    return false;
}

void run_dir_close(struct run_dir *d)
{
    if (d->lock_fd >= 0)
        remove_files(d->lock_fd, d->is_ours);
    if (d->is_ours && d->lock_fd >= 0)
        (void)rmdir(d->path);
    if (d->lock_fd >= 0)
        close(d->lock_fd);
    d->lock_fd = -1;
    d->is_ours = false;
}
