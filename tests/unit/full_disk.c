/* The limit of file sizes at zero: write(2) fails with EFBIG. */
#include "tests/unit/full_disk.h"

#include <CUnit/CUnit.h>
#include <signal.h>
#include <sys/resource.h>

static struct rlimit before;
static void (*signal_before)(int);

void full_disk_begin(void)
{
    CU_ASSERT_FATAL(getrlimit(RLIMIT_FSIZE, &before) == 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};

    signal_before = signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_FATAL(setrlimit(RLIMIT_FSIZE, &none) == 0);
}

void full_disk_end(void)
{
    CU_ASSERT_FATAL(setrlimit(RLIMIT_FSIZE, &before) == 0);
    signal(SIGXFSZ, signal_before);
}
