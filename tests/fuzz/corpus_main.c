/* Replays a fuzz target over every file of the folders given: the corpus as an ordinary test, no fuzzer needed. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 1 << 20 };

static char current[4096];

/* An ASSERT and every sanitizer report end in abort (make asan sets abort_on_error): say which file did it. */
static void name_culprit(int sig)
{
    static const char text[] = "crashed on ";

    (void)sig;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0 || write(STDERR_FILENO, current, strlen(current)) < 0 ||
        write(STDERR_FILENO, "\n", 1) < 0) {
        _exit(1);
    }
}

/* The input is copied into a block of exactly its size, so that the address sanitizer sees a read one byte too far. */
static bool replay_file(const char *path, size_t size_bytes)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(size_bytes > 0 ? size_bytes : 1);
    bool ok = false;

    if (f == NULL || data == NULL || fread(data, 1, size_bytes, f) != size_bytes) {
        fprintf(stderr, "%s: cannot be read: %s\n", path, strerror(errno));
        goto out;
    }
    ok = LLVMFuzzerTestOneInput(data, size_bytes) == 0;
    if (!ok) {
        fprintf(stderr, "%s: refused by the target\n", path);
    }
out:
    free(data);
    if (f != NULL) {
        fclose(f);
    }
    return ok;
}

static int skip_dots(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Sorted, so that two runs are alike. */
static void replay_folder(const char *folder, unsigned *n_passed, unsigned *n_failed)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, skip_dots, alphasort);

    if (n < 0) {
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        *n_failed += 1;
        return;
    }
    for (int i = 0; i < n; i++) {
        struct stat st;
        int len = snprintf(current, sizeof current, "%s/%s", folder, entries[i]->d_name);
        bool fits = len > 0 && (size_t)len < sizeof current && stat(current, &st) == 0 && st.st_size <= FILE_MAX_BYTES;

        if (fits && S_ISREG(st.st_mode)) {
            bool ok = replay_file(current, (size_t)st.st_size);
            *(ok ? n_passed : n_failed) += 1;
        } else if (!fits) {
            fprintf(stderr, "%s/%s: unreadable, or over %d bytes\n", folder, entries[i]->d_name, FILE_MAX_BYTES);
            *n_failed += 1;
        }
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    unsigned n_passed = 0, n_failed = 0;
    const char *name = strrchr(argv[0], '/');

    if (argc < 2) {
        fprintf(stderr, "usage: %s FOLDER...\n", argv[0]);
        return 2;
    }
    sigaction(SIGABRT, &(struct sigaction){.sa_handler = name_culprit, .sa_flags = (int)SA_RESETHAND}, NULL);
    for (int i = 1; i < argc; i++) {
        replay_folder(argv[i], &n_passed, &n_failed);
    }
    printf("%s: %u passed, %u failed\n", name != NULL ? name + 1 : argv[0], n_passed, n_failed);
    return n_failed == 0 && n_passed > 0 ? 0 : 1;
}
