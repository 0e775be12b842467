/* Runs the CUnit suites that the files tests/unit/test_*.c register; arguments name the suites to run, none = all. */
#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Written by the Makefile from the names of the files: calls each test_<name>_register. */
void suites_register(void);

static bool is_wanted(const char *suite, char **names, int n_names)
{
    for (int i = 0; i < n_names; i++) {
        if (strcmp(suite, names[i]) == 0) {
            return true;
        }
    }
    return n_names == 0;
}

/* Leaves only the wanted suites active. Returns how many there are. */
static unsigned select_suites(char **names, int n_names)
{
    unsigned n_active = 0;
    for (CU_pSuite s = CU_get_registry()->pSuite; s != NULL; s = s->pNext) {
        bool wanted = is_wanted(s->pName, names, n_names);
        CU_set_suite_active(s, wanted ? CU_TRUE : CU_FALSE);
        n_active += wanted ? 1 : 0;
    }
    return n_active;
}

static void list_suites(void)
{
    for (CU_pSuite s = CU_get_registry()->pSuite; s != NULL; s = s->pNext) {
        fprintf(stderr, "  %s\n", s->pName);
    }
}

int main(int argc, char **argv)
{
    bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    int first = verbose ? 2 : 1;
    int status = 1;

    if (CU_initialize_registry() != CUE_SUCCESS) {
        fprintf(stderr, "unit: %s\n", CU_get_error_msg());
        return 1;
    }
    CU_set_error_action(CUEA_FAIL);
    suites_register();
    if (CU_get_error() != CUE_SUCCESS) {
        fprintf(stderr, "unit: a suite could not be registered: %s\n", CU_get_error_msg());
        goto out;
    }
    if (select_suites(argv + first, argc - first) == 0) {
        fprintf(stderr, "unit: no such suite; usage: unit [-v] [SUITE]...; suites:\n");
        list_suites();
        goto out;
    }
    CU_set_fail_on_inactive(CU_FALSE);
    CU_basic_set_mode(verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    if (CU_basic_run_tests() == CUE_SUCCESS && CU_get_number_of_failure_records() == 0 &&
        CU_get_number_of_tests_run() > 0) {
        status = 0;
    }
out:
    CU_cleanup_registry();
    return status;
}
