/* From what the doctor saw to what is wrong, in words: a pure function, one check after the other. */
#ifndef SPOA_DOCTOR_DIAGNOSE_H
#define SPOA_DOCTOR_DIAGNOSE_H

#include "spoa/doctor/page.h"

enum { DOCTOR_AGENTS_MAX = 2, DOCTOR_CHECKS_MAX = 3 + 4 * DOCTOR_AGENTS_MAX, DOCTOR_CHECK_TEXT_MAX = 2048, DOCTOR_AT_MAX = 280 };

/* How far one HTTP request came. */
enum doctor_reach {
    DOCTOR_ANSWERED, /* with HTTP */
    DOCTOR_REFUSED,  /* nothing listens */
    DOCTOR_SILENT,   /* connected, no answer in time */
    DOCTOR_CLOSED,   /* connected, closed without an answer */
    DOCTOR_NO_HTTP,  /* answered with something else */
    DOCTOR_FAILED,   /* not even that; trouble says why */
};

struct doctor_answer {
    char at[DOCTOR_AT_MAX]; /* "127.0.0.1:8080" */
    enum doctor_reach reach;
    unsigned status;           /* when ANSWERED */
    char text[64];             /* the body's beginning, printable, without blanks at its ends */
    char trouble[160];         /* when FAILED */
};

struct doctor_agent {
    struct doctor_answer answer;      /* of its internal listener */
    bool has_page;                    /* before is what it said */
    char page_fault[DOCTOR_TEXT_MAX]; /* why it was no agent's page; "" otherwise */
    struct doctor_page before, after; /* after: asked again when there was no proof, else equal to before */
    int64_t clock_off_ms;             /* its wall clock less the doctor's, 0 within what the question took */
};

/* What was seen. health: asked again when there was no proof, as HAProxy may not have noticed at once what is wrong. */
struct doctor_evidence {
    struct doctor_agent agents[DOCTOR_AGENTS_MAX];
    size_t n_agents;
    struct doctor_answer health, front;
    enum doctor_proof proof;
    unsigned proven_by; /* agent, when the proof is GOOD */
    bool fails_open;       /* EDGE_ON_AGENT_FAILURE=open, as the doctor's environment has it */
    bool behind_balancers; /* EDGE_PROXY_PROTOCOL has somebody, likewise */
};

struct doctor_check {
    char name[DOCTOR_WORD_MAX]; /* "agent-0", "policy-0", "store-0", "clock-0", "health", "front-door", "proof" */
    bool ok;
    char text[DOCTOR_CHECK_TEXT_MAX]; /* what is found; when not ok also where and what to do */
};

struct doctor_report {
    struct doctor_check checks[DOCTOR_CHECKS_MAX];
    size_t n, n_wrong;
};

void doctor_diagnose(const struct doctor_evidence *e, struct doctor_report *out);

#endif
