/* client.signals: what requests of real and pretended clients hint. */
#include <CUnit/CUnit.h>

#include "tests/unit/cases.h"
#include "tests/unit/expr_facts.h"
#include "tests/unit/expr_rows.h"

static const struct {
    const char *name, *source;
} signals[] = {
#define SIGNAL_ROW(id, name, source, meaning) {name, #source},
#include "schemas/signals.def"
#undef SIGNAL_ROW
};

enum { N_SIGNALS = sizeof(signals) / sizeof(signals[0]) };

static uint32_t wanted(const json_t *row)
{
    const json_t *names = json_object_get(row, "signals"), *name;
    uint32_t bits = 0;
    size_t i;

    json_array_foreach(names, i, name)
    {
        uint32_t bit = 0;

        for (size_t s = 0; s < N_SIGNALS; s++)
            if (strcmp(json_string_value(name), signals[s].name) == 0)
                bit = UINT32_C(1) << s;
        CU_ASSERT_FATAL(bit != 0);
        bits |= bit;
    }
    return bits;
}

static void check_signals(const json_t *row)
{
    struct expr_facts facts;
    char got[1024];
    struct buf b;

    buf_init(&b, got, sizeof(got));
    expr_row_facts(json_object_get(row, "facts"), &expr_arena, &facts);
    for (size_t s = 0; s < expr_n_signals(); s++)
        if ((expr_facts_signals(&facts) >> s & 1) != 0)
            buf_printf(&b, "%s ", expr_signal_name(s));
    CASE_CHECK_GOT(row, expr_facts_signals(&facts) == wanted(row), buf_str(&b));
}

static void hints(void)
{
    expr_each_row("tests/cases/expr/signals.json", check_signals);
}

static void every_signal_has_rows(void)
{
    json_t *rows = cases_load("tests/cases/expr/signals.json"), *row;
    uint32_t seen = 0, unseen = 0;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        seen |= wanted(row);
        unseen |= ~wanted(row);
    }
    CU_ASSERT_EQUAL(expr_n_signals(), N_SIGNALS);
    for (size_t s = 0; s < N_SIGNALS; s++) {
        json_t *name = json_string(signals[s].name);

        CASE_CHECK(name, (seen >> s & 1) != 0 && (unseen >> s & 1) != 0);
        json_decref(name);
    }
    json_decref(rows);
}

/* The request hints everything that a source could tell; the deployment has none. */
static void unobserved(void)
{
    static const struct expr_deployment bare = {.sources = 0};
    struct expr_facts facts;

    CU_ASSERT_FATAL(expr_facts_begin(&facts, &expr_arena));
    facts.deployment = &bare;
    facts.viewer.http_version = STR("1.0");
    facts.viewer.ja4 = STR("t10i151600_8daaf6152771_02713d6af862");
    for (size_t s = 0; s < N_SIGNALS; s++)
        if (strcmp(signals[s].source, "REQUEST") != 0)
            CU_ASSERT((expr_facts_signals(&facts) >> s & 1) == 0);
    CU_ASSERT(expr_facts_signals(&facts) != 0);
    expr_forget();
}

static void without_memory(void)
{
    struct expr_facts facts = {.viewer = {.http_version = STR("1.0")}}, kept;

    CU_ASSERT_FATAL(expr_facts_begin(&kept, &expr_arena));
    kept.viewer.http_version = STR("1.0");
    CU_ASSERT_EQUAL(expr_facts_signals(&facts), expr_facts_signals(&kept));
    /* Computed once: what changes later does not count. */
    kept.viewer.http_version = STR("2.0");
    CU_ASSERT_EQUAL(expr_facts_signals(&facts), expr_facts_signals(&kept));
    expr_forget();
}

void test_signals_of_clients_register(void)
{
    CU_pSuite s = CU_add_suite("signals_of_clients", expr_set_up, expr_tear_down);

    CU_add_test(s, "requests of browsers, tools, crawlers and pretenders hint what their rows say", hints);
    CU_add_test(s, "every signal has a row that has it and one that has it not", every_signal_has_rows);
    CU_add_test(s, "a signal whose source the deployment does not have never holds", unobserved);
    CU_add_test(s, "signals are computed once a request", without_memory);
}
