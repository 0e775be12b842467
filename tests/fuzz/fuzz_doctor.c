/* What the doctor and its agents read from the network: an agent's page, a front door's answer, the header of a request. The first byte picks. */
#include <string.h>

#include "spoa/doctor/diagnose.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/guarantee.h"

static const char nonce[] = "0123456789abcdef0123456789abcdef";

static void check_text(const char *text, size_t size)
{
    const size_t len = strnlen(text, size);
    GUARANTEE(len < size);
    for (size_t i = 0; i < len; i++)
        GUARANTEE(text[i] >= ' ' && text[i] <= '~');
}

/* A page that was read gives printable words, and reads as the same when it is written again. */
static void on_page(struct str body)
{
    static struct doctor_evidence evidence;
    static struct doctor_report report;
    static char storage[DOCTOR_PAGE_MAX];
    struct doctor_page again;
    struct buf written;
    struct err e;
    struct doctor_agent *agent = &evidence.agents[0];
    err_clear(&e);
    if (!doctor_page_read(body, &agent->before, &e)) {
        GUARANTEE(e.code != ERR_NONE);
        return;
    }
    evidence.n_agents = 1;
    agent->has_page = true;
    agent->after = agent->before;
    doctor_diagnose(&evidence, &report);
    for (size_t i = 0; i < report.n; i++)
        check_text(report.checks[i].text, sizeof report.checks[i].text);
    buf_init(&written, storage, sizeof storage);
    doctor_page_put(&written, &agent->before);
    GUARANTEE(!written.full && doctor_page_read(buf_str(&written), &again, &e));
    GUARANTEE(again.n_notifies == agent->before.n_notifies && strcmp(again.policy_trouble, agent->before.policy_trouble) == 0);
}

/* Nobody who has not got the key proves anything. */
static void on_proof(struct str body)
{
    struct challenge fresh;
    const struct challenge *all[] = {&fresh, NULL};
    unsigned by = 0;
    GUARANTEE(challenge_random(fresh.name) && challenge_random(fresh.key));
    GUARANTEE(doctor_proof_read(body, all, 2, nonce, &by) != DOCTOR_PROOF_GOOD);
}

/* Only the name of the one challenge redeems it. */
static void on_header(struct str header)
{
    struct challenges challenges;
    struct challenge fresh;
    char proof[CHALLENGE_PROOF_HEX];
    challenges_init(&challenges);
    GUARANTEE(challenges_issue(&challenges, 1, &fresh));
    GUARANTEE(!challenges_redeem(&challenges, header, 1, proof));
    GUARANTEE(challenges_outstanding(&challenges));
    GUARANTEE(!challenges_redeem(&challenges, header, 1 + CHALLENGE_VALID_MS, proof));
    GUARANTEE(!challenges_outstanding(&challenges));
    challenges_release(&challenges);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct str rest = {(const char *) data + 1, size - 1};
    if (data[0] == 'a')
        on_page(rest);
    else if (data[0] == 'f')
        on_proof(rest);
    else
        on_header(rest);
    return 0;
}
