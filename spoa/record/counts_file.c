/* The counters' file: made, mapped, locked. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "spoa/record/counts_priv.h"

/* Bytes of the file that are locked (of an open description, F_OFD_SETLK, so that they end with whoever holds them): one for changes of structure, one
 * for each who has it open. */
enum { BYTE_STRUCTURE, BYTE_ATTACHED };
/* Changed when struct counts_file means something else without another size or other tables. */
enum { LAYOUT = 1 };

static const uint64_t mark = UINT64_C(0x65646765636f756e); /* "edgecoun" */
static const uint64_t wait_us = 1000000;

static uint64_t layout_add(uint64_t hash, const char *name)
{
    do
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3); /* FNV-1a, the NUL included */
    while (*name++ != '\0');
    return hash;
}

static uint64_t layout_hash(void)
{
    static const char *const names[] = {
#define DECISION_ROW(id, name, meaning) name,
#include "schemas/decisions.def"
#undef DECISION_ROW
#define UPSTREAM_ERROR_ROW(id, name, decision, meaning) name,
#include "schemas/upstream_errors.def"
#undef UPSTREAM_ERROR_ROW
#define LATENCY_BUCKET_ROW(ms, le) le,
#include "schemas/latency_buckets.def"
#undef LATENCY_BUCKET_ROW
#define RULE_COUNT_ROW(phase, id, letter, name, meaning) #phase name,
#include "schemas/rule_counts.def"
#undef RULE_COUNT_ROW
    };
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ sizeof(struct counts_file) ^ ((uint64_t)LAYOUT << 32);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        hash = layout_add(hash, names[i]);
    return hash;
}

static bool byte_lock(int fd, int byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static void byte_unlock(int fd, int byte)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    (void)fcntl(fd, F_OFD_SETLK, &lock);
}

/* It is held for less than a millisecond, but its holder may be stopped: no wait without an end. */
static bool structure_lock(int fd, bool wait)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (uint64_t waited_us = 0; !byte_lock(fd, BYTE_STRUCTURE); waited_us += 1000) {
        if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || !wait || waited_us >= wait_us)
            return false;
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

bool counts_lock(struct counts *c, bool wait)
{
    if (wait)
        pthread_mutex_lock(&c->structure);
    else if (pthread_mutex_trylock(&c->structure) != 0)
        return false;
    if (!structure_lock(c->fd, wait)) {
        pthread_mutex_unlock(&c->structure);
        return false;
    }
    counts_repair(c);
    return true;
}

void counts_unlock(struct counts *c)
{
    byte_unlock(c->fd, BYTE_STRUCTURE);
    pthread_mutex_unlock(&c->structure);
}

bool counts_is_alone(const struct counts *c)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = BYTE_ATTACHED, .l_len = COUNTS_PROCESSES_MAX};

    /* It tells of locks of others alone. */
    return fcntl(c->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

static bool file_attach(int fd)
{
    for (int i = 0; i < COUNTS_PROCESSES_MAX; i++)
        if (byte_lock(fd, BYTE_ATTACHED + i))
            return true;
    return false;
}

static int file_open(const char *path, struct err *e)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
    struct stat st;

    if (fd < 0 && errno == ELOOP)
        (void)err_set(e, ERR_IO, "", "%s is a symbolic link; the counters' file must be a regular file: remove it", path);
    else if (fd < 0 || fstat(fd, &st) != 0)
        (void)err_set(e, ERR_IO, "", "cannot open %s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
        (void)err_set(e, ERR_IO, "", "%s is not a regular file with this name alone, as the counters' file must be: remove it", path);
    else if (st.st_uid != geteuid())
        (void)err_set(e, ERR_IO, "", "%s belongs to user %u; the counters' file must belong to the agent's, %u: remove it", path,
                      (unsigned)st.st_uid, (unsigned)geteuid());
    else if ((st.st_mode & ALLPERMS) != (S_IRUSR | S_IWUSR) && fchmod(fd, S_IRUSR | S_IWUSR) != 0)
        (void)err_set(e, ERR_IO, "", "cannot make %s readable for its owner alone: %s", path, strerror(errno));
    else
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static struct counts_file *file_map(int fd)
{
    void *p = mmap(NULL, sizeof(struct counts_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* The file as it must be, made so where it is not; with the lock, attached. A half made one has no mark. Its space is taken now: a disk that is full later would end
 * the process where it adds. */
static bool file_make(struct counts *c, const char *path, struct err *e)
{
    const uint64_t layout = layout_hash();
    const off_t size = (off_t)sizeof(struct counts_file);
    struct stat st;
    int rc = 0;

    if (fstat(c->fd, &st) != 0 || (st.st_size == size && (c->file = file_map(c->fd)) == NULL))
        return err_set(e, ERR_IO, "", "cannot map %s: %s", path, strerror(errno));
    if (c->file != NULL && atomic_load(&c->file->mark) == mark && atomic_load(&c->file->layout) == layout)
        return true;
    if (!counts_is_alone(c))
        return err_set(e, ERR_IO, "", "%s is no counters' file of this build, and another process has it open: remove it", path);
    if (c->file != NULL)
        munmap(c->file, sizeof(*c->file));
    c->file = NULL;
    if (ftruncate(c->fd, 0) != 0 || (rc = posix_fallocate(c->fd, 0, size)) != 0 || (c->file = file_map(c->fd)) == NULL)
        return err_set(e, ERR_IO, "", "cannot make %s, of %zu bytes: %s", path, sizeof(struct counts_file),
                       strerror(rc != 0 ? rc : errno));
    atomic_store(&c->file->layout, layout);
    atomic_store(&c->file->mark, mark);
    return true;
}

static bool counts_begin(struct counts *c, const char *path, struct err *e)
{
    c->fd = file_open(path, e);
    if (c->fd < 0)
        return false;
    if (!structure_lock(c->fd, true))
        return err_set(e, ERR_IO, "", "another process holds the lock of %s: %s", path, strerror(errno));
    if (!file_attach(c->fd))
        return err_set(e, ERR_IO, "", "%d processes have %s open, which is as many as may", COUNTS_PROCESSES_MAX, path);
    if (!file_make(c, path, e))
        return false;
    counts_repair(c);
    byte_unlock(c->fd, BYTE_STRUCTURE);
    c->ticked_us = c->second_began_us = clock_mono_us(c->clock);
    c->now_ms = c->ticked_us / 1000;
    counts_estimate(c);
    c->low = c->numbered - c->received;
    c->low_before = 0; /* nothing is known of the second before: it takes two from now */
    return true;
}

bool counts_open(struct counts **out, const char *file, const struct clock *clock, struct err *e)
{
    char path[PATH_MAX];
    struct counts *c;
    const int len = snprintf(path, sizeof(path), "%s.%016llx", file, (unsigned long long)layout_hash());

    if (len < 0 || (size_t)len >= sizeof(path))
        return err_set(e, ERR_IO, "", "the counters' file has a name of more than %d bytes", PATH_MAX - 1);
    c = calloc(1, sizeof(*c));
    if (c == NULL)
        return err_set(e, ERR_NO_MEMORY, "", "no memory for the counters");
    c->clock = clock;
    c->fd = -1;
    pthread_mutex_init(&c->structure, NULL);
    pthread_mutex_init(&c->top_lock, NULL);
    if (!counts_begin(c, path, e)) {
        counts_close(&c);
        return false;
    }
    *out = c;
    return true;
}

void counts_close(struct counts **out)
{
    struct counts *c = *out;

    if (c == NULL)
        return;
    *out = NULL;
    if (c->file != NULL)
        munmap(c->file, sizeof(*c->file));
    if (c->fd >= 0)
        close(c->fd);
    pthread_mutex_destroy(&c->structure);
    pthread_mutex_destroy(&c->top_lock);
    free(c);
}
