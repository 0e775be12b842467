/* The page /metrics of an agent's internal listener: its families in the order of schemas/metrics.def. */
#include "spoa/agent_priv.h"
#include "spoa/metrics_priv.h"

static const struct {
    const char *name, *label, *label2, *help;
    enum metric_type type;
} families[] = {
#define METRIC_FAMILY(id, name, type, label, label2, when, stability, help) {name, label, label2, help, METRIC_##type},
#include "schemas/metrics.def"
};

void family_begin(struct metrics *m, enum family f)
{
    metrics_family(m, families[f].name, families[f].type, families[f].help);
}

void family_put(struct metrics *m, enum family f, const char *value, const char *value2, double number)
{
    const char *const labels[] = {value != NULL ? families[f].label : NULL, value, value2 != NULL ? families[f].label2 : NULL, value2, NULL};
    metrics_sample(m, number, labels);
}

void family_put_one(struct metrics *m, enum family f, double number)
{
    family_begin(m, f);
    family_put(m, f, NULL, NULL, number);
}

static void put_records(struct metrics *m, const struct agent *a)
{
    family_put_one(m, FAMILY_RECORDS, (double) counter_get(&a->records.n_own));
    family_put_one(m, FAMILY_RECORDS_WITHOUT_VERDICT, (double) counter_get(&a->records.n_without_verdict));
    family_put_one(m, FAMILY_RECORDS_OTHER, (double) counts_others(a->counts));
    family_put_one(m, FAMILY_RECORDS_MALFORMED, (double) (counter_get(&a->records.n_malformed) + atomic_load(&a->intake.n_malformed)));
    family_put_one(m, FAMILY_RECORDS_LOST, (double) counts_lost(a->counts));
    family_put_one(m, FAMILY_RECORDS_REFUSED, (double) atomic_load(&a->intake.n_refused));
    family_put_one(m, FAMILY_LOG_LINES, (double) atomic_load(&a->writer.n_lines));
    family_put_one(m, FAMILY_LOG_SAMPLED_OUT, (double) counter_get(&a->records.n_sampled_out));
    family_put_one(m, FAMILY_LOG_DROPPED, (double) atomic_load(&a->writer.n_dropped));
}

static void put_policy(struct metrics *m, struct agent *a)
{
    char trouble[POLICY_TROUBLE_MAX];
    policy_file_trouble(&a->policy_file, trouble);
    family_put_one(m, FAMILY_POLICY_VERSION, (double) atomic_load(&a->policy_file.version));
    family_begin(m, FAMILY_POLICY_LOADS);
    family_put(m, FAMILY_POLICY_LOADS, "loaded", NULL, (double) atomic_load(&a->policy_file.n_loaded));
    family_put(m, FAMILY_POLICY_LOADS, "refused", NULL, (double) atomic_load(&a->policy_file.n_refused));
    family_put_one(m, FAMILY_POLICY_REFUSED, trouble[0] != '\0' ? 1 : 0);
    family_put_one(m, FAMILY_POLICIES_IN_MEMORY, (double) atomic_load(&a->policy_file.n_in_memory));
}

static void put_backstop(struct metrics *m, const struct agent *a)
{
    family_put_one(m, FAMILY_BACKSTOP_CLIENTS, (double) atomic_load(&a->backstop_clients));
    family_put_one(m, FAMILY_BACKSTOP_CLIENTS_MAX, (double) atomic_load(&a->backstop_clients_max));
}

void agent_metrics(void *ctx, struct httpd_reply *reply)
{
    struct agent *a = ctx;
    struct metrics m;
    metrics_init(&m, METRICS_MAX_BYTES);
    metrics_put_counts(&m, a->counts);
    put_records(&m, a);
    put_policy(&m, a);
    metrics_put_workers(&m, a);
    put_backstop(&m, a);
    metrics_put_store(&m, a);
    metrics_put_spop(&m, a);
    char *text = metrics_take(&m, &reply->body_len);
    if (text == NULL) {
        agent_reply_text(reply, 503, "no memory for the metrics page\n");
        return;
    }
    reply->status = 200;
    reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
    reply->body = text;
}
