/* How many requests HAProxy has under way, asked of its master, which still answers while its processes stop. */
#include "spoa/launcher/open_requests.h"

#include <stdio.h>

#include "common/base/parse.h"
#include "spoa/launcher/haproxy_ctl.h"

/* A line for each process; its old ones are few (mworker-max-reloads). A line for each backend, below 1 KiB, and the names of 100 columns. */
enum { PROCESSES_CAP = 4096, STATS_CAP = 16384, COMMAND_CAP = 64, COLUMN_SCUR = 4 };

/* The first column is the backend, the second says that the line is about all of its servers. */
static const char *const counted[] = {"plain,BACKEND,", "body,BACKEND,", "stream,BACKEND,", "stream_body,BACKEND,"};
enum { N_COUNTED = sizeof(counted) / sizeof(counted[0]) };

/* What stands before the next separator; it goes with it. */
static struct str take_until(struct str *text, char separator)
{
    const size_t at = str_find_byte(*text, separator);
    const struct str taken = str_sub(*text, 0, at);

    *text = at == SIZE_MAX ? STR_NONE : str_sub(*text, at + 1, text->len);
    return taken;
}

static struct str take_word(struct str *line)
{
    *line = str_trim(*line);
    return take_until(line, ' ');
}

bool open_requests_next_pid(struct str *processes, struct str *out)
{
    while (processes->len > 0) {
        struct str line = take_until(processes, '\n');
        const struct str pid = take_word(&line);

        if (str_eq(take_word(&line), STR("worker"))) {
            *out = pid;
            return true;
        }
    }
    return false;
}

bool open_requests_count(struct str stats, uint64_t *out, struct err *e)
{
    uint64_t sum = 0, n;
    size_t found = 0;

    while (stats.len > 0) {
        struct str line = take_until(&stats, '\n');

        for (size_t i = 0; i < N_COUNTED; i++) {
            if (!str_starts(line, str_of(counted[i])))
                continue;
            for (unsigned column = 0; column < COLUMN_SCUR; column++)
                (void)take_until(&line, ',');
            if (!parse_u64(take_until(&line, ','), 0, UINT32_MAX, &n, "", e))
                return false;
            sum += n;
            found++;
            break;
        }
    }
    if (found != N_COUNTED)
        return err_set(e, ERR_PROTOCOL, "", "HAProxy counts %zu of %d backends", found, (int)N_COUNTED);
    *out = sum;
    return true;
}

static bool add_process(const char *master_path, struct str pid, uint64_t *sum, struct err *e)
{
    char command[COMMAND_CAP], storage[STATS_CAP];
    struct str stats;
    uint64_t n;

    snprintf(command, sizeof(command), "@!%.*s show stat -1 2 -1", STR_ARG(pid));
    if (!haproxy_ctl(master_path, command, storage, sizeof(storage), &stats, e) || !open_requests_count(stats, &n, e))
        return false;
    *sum += n;
    return true;
}

bool open_requests_ask(const char *master_path, uint64_t *out, struct err *e)
{
    char storage[PROCESSES_CAP];
    struct str processes, pid;
    uint64_t sum = 0;

    if (!haproxy_ctl(master_path, "show proc", storage, sizeof(storage), &processes, e))
        return false;
    while (open_requests_next_pid(&processes, &pid))
        if (!add_process(master_path, pid, &sum, e))
            return false;
    *out = sum;
    return true;
}
