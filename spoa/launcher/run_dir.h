/* The folder of an edge's sockets and counters. */
#ifndef SPOA_LAUNCHER_RUN_DIR_H
#define SPOA_LAUNCHER_RUN_DIR_H

#include "common/base/err.h"
#include "spoa/settings.h"

struct run_dir {
    char path[SETTING_RUN_DIR_MAX + 1];
    int lock_fd;  /* -1: not open */
    bool is_ours; /* made for this run: removed with it */
};

/* wanted: EDGE_RUN_DIR, "" for a new private folder below temp (TMPDIR, NULL = /tmp). A folder that is not there is made (mode 0700);
 * one that others may write to is refused, and one that another launcher uses. Counters that an earlier launcher left there are removed. */
MUSTUSE bool run_dir_open(struct run_dir *d, const char *wanted, const char *temp, struct err *e);
/* Removes the folder, with all in it, when it was made for this run, else the counters in it. */
void run_dir_close(struct run_dir *d);

#endif
