/* The doctor's questions over HTTP: to one address each, bounded in time and size, without proxies or redirects. */
#ifndef SPOA_CLI_DOCTOR_ASK_H
#define SPOA_CLI_DOCTOR_ASK_H

#include "common/base/parse.h"
#include "spoa/doctor/diagnose.h"

struct doctor_question {
    struct listen_addr at; /* a wildcard is asked on the loopback */
    const char *path;
    const char *header;    /* "Name: value", or NULL */
    uint64_t timeout_ms;   /* for all of it */
    bool as_balancer;      /* a PROXY protocol header that names this machine comes first */
};

/* GET. out: how far it came; body: as much of the answer's body as fits (body->full when there was more). */
void doctor_ask(const struct doctor_question *q, struct doctor_answer *out, struct buf *body);

#endif
