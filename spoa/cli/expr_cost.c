/* The cost of one expression, found by asking the same set that rules are put into. */
#include "spoa/cli/expr_cost.h"

/* Asked of a set that has nothing else: of a request whose host, path and method no rule can name, an expression that depends on one of them is
 * no candidate. */
bool expr_cost_measure(const struct expr *x, size_t n_bytes, struct arena *a, struct expr_cost *out)
{
    struct expr_set *set;
    struct expr_facts facts;
    struct expr_run run;
    struct expr_candidates candidates;
    size_t program;
    if (!expr_set_new(a, &set) || !expr_set_add(set, x, &program) || !expr_set_finish(set) || !expr_facts_begin(&facts, a))
        return false;
    facts.host = facts.method = STR("\x01");
    facts.path = facts.uri = STR("/\x01");
    if (!expr_run_init(&run, set, &facts, a))
        return false;
    expr_run_candidates(&run, &candidates);
    *out = (struct expr_cost){
        .n_conditions = expr_n_conditions(x),
        .n_predicates = expr_set_n_predicates(set),
        .n_bytes = n_bytes,
        .skipped = !expr_is_candidate(&candidates, program),
    };
    return true;
}

void expr_cost_print(FILE *f, const struct expr_cost *c)
{
    fprintf(f,
           "conditions  %zu of %d\n"
           "predicates  %zu different; each is evaluated at most once a request, however many rules have it\n"
           "text        %zu of %d bytes\n"
           "index       %s\n",
           c->n_conditions, EXPR_CONDITIONS_MAX, c->n_predicates, c->n_bytes, EXPR_TEXT_MAX,
           c->skipped ? "yes: requests of another host, path or method pass it by" : "no: it is looked at for every request");
}

json_t *expr_cost_json(const struct expr_cost *c)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:b}", "conditions", (json_int_t) c->n_conditions, "conditions_max", (json_int_t) EXPR_CONDITIONS_MAX,
                     "predicates", (json_int_t) c->n_predicates, "text_bytes", (json_int_t) c->n_bytes, "text_bytes_max",
                     (json_int_t) EXPR_TEXT_MAX, "indexed", (int) c->skipped);
}
