/* Access records of a HAProxy that is stopping: its rings are closed, so they come at the end of its lines, and from here go to the agents. */
#ifndef SPOA_LAUNCHER_LATE_RECORDS_H
#define SPOA_LAUNCHER_LATE_RECORDS_H

#include "spoa/launcher/output.h"

enum { LATE_AGENTS_MAX = 2, LATE_RECORD_MAX = 16384 };

/* A line of HAProxy taken apart. Each ends in the member "edge.record", which is no part of what is printed:
 *   {...,"edge.record":"<1 while this process stops, else 0> <the record, schemas/record.def>"} */
struct late_line {
    bool stopping; /* the rings of this process are closed */
    bool decided;  /* an agent decided, and writes the line that counts */
    unsigned agent; /* which one; with decided */
    size_t len;    /* of what stands before the member */
};
/* False: a line of another kind, which stays as it is. Else record holds the record. */
bool late_line_parse(struct str line, struct late_line *out, struct buf *record);

/* Main thread only. */
struct late_records {
    struct output *output;
    struct late_agent {
        char socket[128];
        int fd;            /* -1: not connected */
        uint64_t retry_us; /* not before */
    } agents[LATE_AGENTS_MAX];
    unsigned n_agents;
};

/* Names of sockets: records-<index>.sock in run_dir. */
void late_records_init(struct late_records *l, const char *run_dir, unsigned n_agents, struct output *output);
/* Prints line, or what is to be printed of it. A record of a process that is stopping goes to every agent, as it would from a ring; where the agent
 * that decided does not take it, its line is made here. An agent that does not read holds the loop up for at most 50 ms, and then once in a second. */
void late_records_line(void *ctx, struct str line);
void late_records_release(struct late_records *l);

#endif
