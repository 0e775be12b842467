/* The addresses of HAProxy's servers, kept over a reload, when the name server may not answer. */
#include "spoa/launcher/server_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spoa/launcher/haproxy_ctl.h"

enum { TEMPORARY_MAX = 4096 };

/* The version of the format, which is all that a file without servers needs. */
static const char nothing_known[] = "1\n";

static bool write_all(int fd, struct str text)
{
    while (text.len > 0) {
        const ssize_t n = write(fd, text.p, text.len);

        if (n >= 0)
            text = str_sub(text, (size_t)n, text.len);
        else if (errno != EINTR)
            return false;
    }
    return true;
}

static bool replace(const char *path, struct str text, struct err *e)
{
    char temporary[TEMPORARY_MAX];
    const int len = snprintf(temporary, sizeof(temporary), "%s.new", path);
    const int fd = len < 0 || (size_t)len >= sizeof(temporary)
                       ? -1
                       : open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    bool ok;

    if (fd < 0)
        return err_set(e, ERR_IO, "", "cannot write %s.new: %s", path, strerror(errno));
    ok = write_all(fd, text);
    ok = close(fd) == 0 && ok;
    ok = ok && rename(temporary, path) == 0;
    if (ok)
        return true;
    (void)err_set(e, ERR_IO, "", "cannot write %s: %s", path, strerror(errno));
    (void)unlink(temporary);
    return false;
}

bool server_state_begin(const char *path, struct err *e)
{
    return replace(path, STR(nothing_known), e);
}

bool server_state_save(const char *command_socket, const char *path, struct err *e)
{
    char storage[SERVER_STATE_MAX];
    struct str said;

    /* One byte less, for the end of the last line, which comes without. */
    if (!haproxy_ctl(command_socket, "show servers state", storage, sizeof(storage) - 1, &said, e))
        return false;
    if (!str_starts(said, STR(nothing_known)) || said.len >= sizeof(storage) - 1)
        return err_set(e, ERR_PROTOCOL, "", "HAProxy did not tell the state of its servers: %.*s", STR_ARG(str_sub(said, 0, 80)));
    memmove(storage, said.p, said.len);
    storage[said.len] = '\n';
    return replace(path, (struct str){storage, said.len + 1}, e);
}
