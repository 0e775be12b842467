/* What HAProxy numbered against what was received: records that never came. */
#include <errno.h>
#include <signal.h>

#include "spoa/record/counts_priv.h"

/* A smaller number than before, after so long, is that of another process with the same pid. */
static const uint64_t same_pid_quiet_ms = 10000;
static const uint64_t tick_longest_ms = 2000;
static const uint64_t second_us = 1000000;

static void row_clear(struct counts_row *row)
{
    cell_set(&row->pid, 0);
    cell_set(&row->first, 0);
    cell_set(&row->end, 0);
}

void counts_row_repair(struct counts_file *f)
{
    if (atomic_load(&f->row_end.valid) == 0)
        return;
    cell_set(&f->gone, cell_get(&f->row_end.gone_after));
    row_clear(&f->rows[atomic_load(&f->row_end.row) % COUNTS_ROWS]);
    atomic_store(&f->row_end.valid, 0);
}

/* What it had numbered stays: written down first, so that whoever comes after a kill does the same again. */
static void row_end(struct counts_file *f, size_t at)
{
    const struct counts_row *row = &f->rows[at];

    cell_set(&f->row_end.gone_after, cell_get(&f->gone) + cell_get(&row->end) - cell_get(&row->first));
    atomic_store(&f->row_end.row, (uint32_t)at);
    atomic_store(&f->row_end.valid, 1);
    counts_row_repair(f);
}

static size_t row_find(const struct counts_file *f, uint64_t pid)
{
    size_t i = 0;

    while (i < COUNTS_ROWS && cell_get(&f->rows[i].pid) != pid)
        i++;
    return i;
}

/* Both times are those of ticks, which stand still while the process does: one that was stopped between two records, of which one overtook the other, is
 * not misled. */
static bool row_is_another(const struct counts *c, const struct counts_row *row, uint32_t number)
{
    return (int32_t)(number - (uint32_t)cell_get(&row->end)) < -1 && c->now_ms >= cell_get(&row->seen_ms) + same_pid_quiet_ms;
}

static bool process_ended(uint64_t pid)
{
    return pid > INT32_MAX || (kill((pid_t)pid, 0) != 0 && errno == ESRCH);
}

/* A free one; else that of a process which has ended, or else of any, that has been quiet for longest. */
static size_t row_free(struct counts_file *f)
{
    size_t best = 0;
    bool best_ended = false;

    for (size_t i = 0; i < COUNTS_ROWS; i++) {
        const uint64_t pid = cell_get(&f->rows[i].pid);

        if (pid == 0)
            return i;
        const bool ended = process_ended(pid);
        const bool is_older = cell_get(&f->rows[i].seen_ms) < cell_get(&f->rows[best].seen_ms);

        if (i == 0 || (ended && !best_ended) || (ended == best_ended && is_older)) {
            best = i;
            best_ended = ended;
        }
    }
    row_end(f, best);
    return best;
}

/* The row of a process that has none, or whose pid had another before; COUNTS_ROWS: not now. */
static size_t row_begin(struct counts *c, uint64_t pid, uint32_t number)
{
    struct counts_file *f = c->file;
    size_t at;

    if (!counts_lock(c, false))
        return COUNTS_ROWS;
    at = row_find(f, pid);
    if (at < COUNTS_ROWS && row_is_another(c, &f->rows[at], number)) {
        row_end(f, at);
        at = COUNTS_ROWS;
    }
    if (at == COUNTS_ROWS) {
        at = row_free(f);
        const uint64_t first = atomic_load(&f->rows_begun) == 0 ? number : 0;

        cell_set(&f->rows[at].first, first);
        cell_set(&f->rows[at].end, first);
        cell_set(&f->rows[at].seen_ms, c->now_ms);
        atomic_store_explicit(&f->rows[at].pid, pid, memory_order_release);
        atomic_store(&f->rows_begun, 1);
    }
    counts_unlock(c);
    counts_estimate(c);
    return at;
}

/* The row's bounds, widened to hold a number; how many more it has. Numbers wrap at 32 bits, so one less than half of that ahead is ahead. */
static uint64_t row_take(struct counts_row *row, uint32_t number)
{
    uint64_t end = cell_get(&row->end), first = cell_get(&row->first);
    const int32_t ahead = (int32_t)(number - (uint32_t)end);

    if (ahead >= 0) {
        const uint64_t after = end + (uint64_t)ahead + 1;

        while (end < after)
            if (atomic_compare_exchange_weak_explicit(&row->end, &end, after, memory_order_relaxed, memory_order_relaxed))
                return after - end;
        return 0;
    }
    /* The first number that came was not the first of all that come. */
    const uint64_t at = end - (uint64_t)-(int64_t)ahead;

    while (at < first && at < end)
        if (atomic_compare_exchange_weak_explicit(&row->first, &first, at, memory_order_relaxed, memory_order_relaxed))
            return first - at;
    return 0;
}

void counts_number(struct counts *c, uint64_t pid, uint64_t sequence)
{
    struct counts_file *f = c->file;
    const uint32_t number = (uint32_t)sequence;

    if (pid == 0)
        return;
    if (cell_get(&f->rows[c->last_row].pid) != pid) {
        const size_t at = row_find(f, pid);

        c->last_row = at < COUNTS_ROWS ? at : c->last_row;
    }
    struct counts_row *row = &f->rows[c->last_row];

    if (cell_get(&row->pid) != pid || row_is_another(c, row, number)) {
        const size_t at = row_begin(c, pid, number);

        if (at == COUNTS_ROWS)
            return; /* the next record of it says as much */
        c->last_row = at;
        row = &f->rows[at];
    }
    c->numbered += (int64_t)row_take(row, number);
    if (cell_get(&row->seen_ms) < c->now_ms)
        cell_set(&row->seen_ms, c->now_ms);
}

void counts_estimate(struct counts *c)
{
    const struct counts_file *f = c->file;
    uint64_t numbered = cell_get(&f->gone), received = 0;

    for (size_t i = 0; i < COUNTS_ROWS; i++)
        numbered += cell_get(&f->rows[i].end) - cell_get(&f->rows[i].first);
    /* Received is read after numbered: what comes meanwhile makes the gap smaller, never larger. */
    atomic_thread_fence(memory_order_seq_cst);
    received = cell_get(&f->other);
    for (size_t i = COUNTS_AT(codes); i < COUNTS_AT(decisions); i++)
        received += cell_get(&f->total[i]);
    /* Another process received some: this one has seen moments of this second only, in any of which a record can be on its way. The other one tells. */
    if (c->received != (int64_t)received && c->low > 0)
        c->low = 0;
    c->numbered = (int64_t)numbered;
    c->received = (int64_t)received;
    if (c->numbered - c->received < c->low)
        c->low = c->numbered - c->received;
}

static void lost_raise(struct counts_file *f, uint64_t lost)
{
    uint64_t before = cell_get(&f->lost);

    while (before < lost && !atomic_compare_exchange_weak_explicit(&f->lost, &before, lost, memory_order_relaxed, memory_order_relaxed))
        ;
}

void counts_tick(struct counts *c)
{
    const uint64_t now_us = clock_mono_us(c->clock), passed_ms = (now_us - c->ticked_us) / 1000;

    c->now_ms += passed_ms < tick_longest_ms ? passed_ms : tick_longest_ms;
    c->ticked_us = now_us;
    if (!counts_lock(c, false))
        return; /* the second goes on until the next tick */
    counts_estimate(c);
    counts_retire(c);
    counts_unlock(c);
    if (now_us < c->second_began_us + second_us)
        return;
    const int64_t low = c->low < c->low_before ? c->low : c->low_before;

    if (low > 0)
        lost_raise(c->file, (uint64_t)low);
    c->low_before = c->low;
    c->low = c->numbered - c->received;
    c->second_began_us = now_us;
}

uint64_t counts_lost(const struct counts *c)
{
    return cell_get(&c->file->lost);
}

uint64_t counts_others(const struct counts *c)
{
    return cell_get(&c->file->other);
}

uint64_t counts_matches_left_out(const struct counts *c)
{
    return cell_get(&c->file->matches_left_out);
}
