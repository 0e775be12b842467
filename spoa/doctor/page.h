/* What an agent tells `edge-spoa doctor`, written by the one and read by the other: its page /doctor, and the proof with which it answers a
 * request. Both are JSON. The page holds a challenge and no more about the deployment than /metrics does. */
#ifndef SPOA_DOCTOR_PAGE_H
#define SPOA_DOCTOR_PAGE_H

#include "common/base/err.h"
#include "spoa/doctor/challenge.h"

enum { DOCTOR_PAGE_MAX = 16 * 1024, DOCTOR_PROOF_PAGE_MAX = 256, DOCTOR_TEXT_MAX = 256, DOCTOR_TROUBLE_MAX = ERR_PATH_MAX + ERR_TEXT_MAX + 128, DOCTOR_WORD_MAX = 24 };

/* Where an agent counts rate limits. trouble: why not connected, "" while it is; no secrets. clock_skew_ms: the store's clock less the
 * agent's. */
struct store_state {
    char kind[DOCTOR_WORD_MAX]; /* "embedded" or "standalone" */
    bool connected;             /* an embedded store always is */
    char trouble[DOCTOR_TEXT_MAX];
    int64_t clock_skew_ms;
};

/* Texts are terminated. */
struct doctor_page {
    uint64_t agent;                /* its index */
    char state[DOCTOR_WORD_MAX];   /* "ready", "no_policy", "stopping" ... */
    char reason[DOCTOR_TEXT_MAX];  /* why it is not ready; "" when it is */
    int64_t policy_version;        /* in force; 0 = none */
    char policy_trouble[DOCTOR_TROUBLE_MAX]; /* why the newest policy file was refused; "" when it was not */
    uint64_t n_healthchecks, n_notifies, n_contract_mismatches; /* since the agent's start, as /metrics counts them */
    uint64_t clock_ms;             /* the agent's wall clock */
    struct store_state store;
    struct challenge challenge;
};

void doctor_page_put(struct buf *out, const struct doctor_page *page);
/* body: any bytes. Members that it does not know are skipped, for an agent may be newer than the doctor. Texts come out as printable ASCII,
 * cut to their members. False with the first fault. */
MUSTUSE bool doctor_page_read(struct str body, struct doctor_page *out, struct err *e);

void doctor_proof_put(struct buf *out, const char proof[static CHALLENGE_PROOF_HEX], unsigned agent);
enum doctor_proof { DOCTOR_PROOF_NONE, DOCTOR_PROOF_FALSE, DOCTOR_PROOF_GOOD };
/* body: any bytes. challenges[i]: agent i's, NULL where it gave none. FALSE: the page of a proof, but not of these challenges and nonce.
 * *by: the agent, when GOOD. */
enum doctor_proof doctor_proof_read(struct str body, const struct challenge *const *challenges, size_t n, const char nonce[static CHALLENGE_HEX],
                                    unsigned *by);

/* Copies text as printable ASCII, terminated and cut to size; any other byte becomes '?'. */
void doctor_text(struct str text, char *out, size_t size);

#endif
