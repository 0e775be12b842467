/* edge-spoa doctor: asks a running edge for a proof that requests are decided, and says what is wrong when there is none. */
#include <curl/curl.h>
#include <jansson.h>

#include "common/base/clock.h"
#include "spoa/cli/doctor_ask.h"
#include "spoa/cli/options.h"
#include "spoa/settings.h"

enum { BODY_MAX = 64 * 1024, PAGE_TIMEOUT_MS = 3000, FRONT_MARGIN_MS = 3000, LOOKS_MAX = 5, LOOK_MS = 200 };

struct doctor {
    struct settings_edge settings;
    struct listen_addr internal, health, front;
    char nonce[CHALLENGE_HEX];
    char body[BODY_MAX];
    struct doctor_evidence evidence;
};

static struct listen_addr first_of(const char *list)
{
    const struct str whole = str_of(list);
    struct listen_addr at = {0};
    struct err e;
    err_clear(&e);
    /* settings_load has accepted it. */
    if (!parse_listen(str_trim(str_sub(whole, 0, str_find_byte(whole, ','))), &at, "", &e))
        at = (struct listen_addr){0};
    return at;
}

/* How far the agent's clock lies outside of the time between asking and hearing. */
static int64_t off_ms(uint64_t agent_ms, uint64_t asked_ms, uint64_t heard_ms)
{
    if (agent_ms > heard_ms)
        return (int64_t) (agent_ms - heard_ms);
    return agent_ms < asked_ms ? -(int64_t) (asked_ms - agent_ms) : 0;
}

static bool ask_agent(struct doctor *d, size_t i, struct doctor_page *page)
{
    struct doctor_agent *a = &d->evidence.agents[i];
    const struct doctor_question question = {
        .at = {.host = d->internal.host, .port = (uint16_t) (d->internal.port + i)},
        .path = "/doctor",
        .timeout_ms = PAGE_TIMEOUT_MS,
    };
    struct buf body;
    struct err e;
    err_clear(&e);
    buf_init(&body, d->body, sizeof d->body);
    const uint64_t asked_ms = clock_real_ms(&clock_system);
    doctor_ask(&question, &a->answer, &body);
    const uint64_t heard_ms = clock_real_ms(&clock_system);
    a->page_fault[0] = '\0';
    if (a->answer.reach != DOCTOR_ANSWERED)
        return false;
    if (a->answer.status != 200) {
        snprintf(a->page_fault, sizeof a->page_fault, "it answers %u to /doctor", a->answer.status);
        return false;
    }
    if (!doctor_page_read(buf_str(&body), page, &e)) {
        char text[DOCTOR_TEXT_MAX / 2];
        doctor_text(str_of(e.text), text, sizeof text);
        snprintf(a->page_fault, sizeof a->page_fault, "%.100s%s%s", e.path, e.path[0] != '\0' ? ": " : "", text);
        return false;
    }
    a->clock_off_ms = off_ms(page->clock_ms, asked_ms, heard_ms);
    return true;
}

/* "Edge-Doctor: nonce,name,name" */
static void put_header(const struct doctor *d, struct buf *header)
{
    buf_put_cstr(header, "Edge-Doctor: ");
    buf_put(header, (struct str){d->nonce, CHALLENGE_HEX});
    for (size_t i = 0; i < d->evidence.n_agents; i++)
        if (d->evidence.agents[i].has_page) {
            buf_put_byte(header, ',');
            buf_put(header, (struct str){d->evidence.agents[i].before.challenge.name, CHALLENGE_HEX});
        }
    buf_put_byte(header, '\0');
}

/* HAProxy may ask twice: the rescue. */
static void ask_front(struct doctor *d)
{
    struct doctor_evidence *e = &d->evidence;
    const struct challenge *challenges[DOCTOR_AGENTS_MAX] = {NULL};
    char storage[CHALLENGE_HEADER_MAX + 32];
    struct buf header, body;
    buf_init(&header, storage, sizeof storage);
    put_header(d, &header);
    const struct doctor_question question = {
        .at = d->front,
        .path = "/edge-doctor",
        .header = header.p,
        .timeout_ms = 2 * d->settings.agent_timeout_ms + FRONT_MARGIN_MS,
        .as_balancer = e->behind_balancers,
    };
    buf_init(&body, d->body, sizeof d->body);
    doctor_ask(&question, &e->front, &body);
    for (size_t i = 0; i < e->n_agents; i++)
        challenges[i] = e->agents[i].has_page ? &e->agents[i].before.challenge : NULL;
    e->proof = DOCTOR_PROOF_NONE;
    if (e->front.reach == DOCTOR_ANSWERED && !body.full)
        e->proof = doctor_proof_read(buf_str(&body), challenges, e->n_agents, d->nonce, &e->proven_by);
}

static void ask_health(struct doctor *d)
{
    const struct doctor_question question = {.at = d->health, .path = "/readyz", .timeout_ms = PAGE_TIMEOUT_MS};
    struct buf body;
    buf_init(&body, d->body, sizeof d->body);
    doctor_ask(&question, &d->evidence.health, &body);
}

/* Asks an agent again; false: HAProxy has not checked its health since it was asked first. */
static bool look_at_agent(struct doctor *d, size_t i)
{
    struct doctor_agent *a = &d->evidence.agents[i];
    struct doctor_agent first = *a;
    struct doctor_page page;
    if (ask_agent(d, i, &page))
        first.after = page;
    *a = first;
    return a->after.n_healthchecks > a->before.n_healthchecks;
}

/* HAProxy checks each agent's health five times a second: whether it still does, and what it makes of that, shows within one. */
static void look_again(struct doctor *d)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    struct doctor_evidence *e = &d->evidence;
    bool settled = false;
    for (int look = 0; look < LOOKS_MAX && !settled; look++) {
        size_t n_pages = 0;
        nanosleep(&pause, NULL);
        settled = true;
        for (size_t i = 0; i < e->n_agents; i++)
            if (e->agents[i].has_page) {
                n_pages++;
                settled &= look_at_agent(d, i);
            }
        ask_health(d);
        settled &= n_pages > 0 || e->health.status != 200;
    }
}

static void examine(struct doctor *d)
{
    struct doctor_evidence *e = &d->evidence;
    e->n_agents = d->settings.agents < DOCTOR_AGENTS_MAX ? (size_t) d->settings.agents : DOCTOR_AGENTS_MAX;
    e->behind_balancers = d->settings.proxy_protocol[0] != '\0';
    e->fails_open = d->settings.on_agent_failure == SETTING_FAILURE_OPEN;
    for (size_t i = 0; i < e->n_agents; i++) {
        e->agents[i].has_page = ask_agent(d, i, &e->agents[i].before);
        e->agents[i].after = e->agents[i].before;
    }
    ask_health(d);
    ask_front(d);
    if (e->proof != DOCTOR_PROOF_GOOD)
        look_again(d);
}

static void print_text(const struct doctor_report *r, const struct doctor_evidence *e)
{
    for (size_t i = 0; i < r->n; i++)
        printf("%-5s  %-10s  %s\n", r->checks[i].ok ? "ok" : "WRONG", r->checks[i].name, r->checks[i].text);
    if (r->n_wrong == 0)
        printf("healthy: requests to %s are decided\n", e->front.at);
    else
        printf("%zu of %zu checks are wrong; %s %s\n", r->n_wrong, r->n,
               e->proof == DOCTOR_PROOF_GOOD ? "yet requests are decided on" : "it is not proven that requests are decided on", e->front.at);
}

static bool print_json(const struct doctor_report *r)
{
    json_t *checks = json_array();
    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(checks, json_pack("{s:s, s:b, s:s}", "name", r->checks[i].name, "ok", (int) r->checks[i].ok, "text", r->checks[i].text));
    json_t *report = json_pack("{s:b, s:o}", "ok", (int) (r->n_wrong == 0), "checks", checks);
    bool ok = report != NULL && json_dumpf(report, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) == 0;
    printf("\n");
    json_decref(report);
    return ok;
}

static int run(struct doctor *d, bool as_json)
{
    static struct doctor_report report;
    if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK || !challenge_random(d->nonce)) {
        fprintf(stderr, "edge-spoa doctor: libcurl or the kernel's random numbers are not there\n");
        return CLI_FAULTS;
    }
    d->internal = first_of(d->settings.internal_listen);
    d->health = first_of(d->settings.health_listen);
    d->front = first_of(d->settings.listen);
    examine(d);
    curl_global_cleanup();
    doctor_diagnose(&d->evidence, &report);
    if (as_json && !print_json(&report))
        return CLI_FAULTS;
    if (!as_json)
        print_text(&report, &d->evidence);
    return report.n_wrong == 0 ? CLI_OK : CLI_FAULTS;
}

int cli_doctor(int argc, char **argv, char *const envp[])
{
    static struct doctor d;
    struct errlist errors;
    bool as_json = false;
    const struct cli_option options[] = {{"--json", NULL, "{\"ok\", \"checks\": [...]} on standard output", &as_json, NULL}};
    const struct cli_syntax syntax = {
        .command = "doctor",
        .details = "The addresses to ask come from the environment, as run has it. Exit codes: 0 healthy, 1 something is wrong, 2 usage or settings.\n",
        .options = options,
        .n_options = 1,
    };
    int exit_code;
    if (!cli_parse(&syntax, argc, argv, &exit_code))
        return exit_code;
    if (!errlist_init(&errors, 0))
        return CLI_USAGE;
    const bool ok = settings_load(&d.settings, SETTINGS_DOCTOR, envp, &errors);
    for (size_t i = 0; i < errors.n; i++)
        fprintf(stderr, "edge-spoa doctor: %s\n", errors.items[i].text);
    errlist_release(&errors);
    return ok ? run(&d, as_json) : CLI_USAGE;
}
