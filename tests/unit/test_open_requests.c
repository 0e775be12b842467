/* What HAProxy's master says about its processes, and they about their requests. */
#include <CUnit/CUnit.h>

#include "spoa/launcher/open_requests.h"
#include "tests/unit/ctl_server.h"

static const char processes[] = "#<PID>          <type>          <reloads>       <uptime>        <version>      \n"
                                "28516           master          1 [failed: 0]   0d00h00m01s     3.2.26-1       \n"
                                "# workers\n"
                                "28530           worker          0               0d00h00m01s     3.2.26-1       \n"
                                "# old workers\n"
                                "28518           worker          1               0d00h00m01s     3.2.26-1       \n"
                                "# programs\n";

#define HEAD   "# pxname,svname,qcur,qmax,scur,smax,slim,stot,\n"
#define AGENTS "agents,BACKEND,0,0,7,9,250,99,\n"

static void processes_old_and_new(void)
{
    struct str rest = str_of(processes), pid = STR_NONE;

    CU_ASSERT(open_requests_next_pid(&rest, &pid));
    CU_ASSERT(str_eq(pid, STR("28530")));
    CU_ASSERT(open_requests_next_pid(&rest, &pid));
    CU_ASSERT(str_eq(pid, STR("28518")));
    CU_ASSERT(!open_requests_next_pid(&rest, &pid));
}

static void counted(void)
{
    uint64_t n = 0;
    struct err e;

    err_clear(&e);
    CU_ASSERT(open_requests_count(
        STR(HEAD "plain,BACKEND,0,0,1,5,100,9,\nbody,BACKEND,0,0,20,5,100,9,\n" AGENTS
                 "stream,BACKEND,0,0,300,5,100,9,\nstream_body,BACKEND,0,0,4000,,,\nplain,upstream,0,0,5000,1,,1,\n"),
        &n, &e));
    CU_ASSERT_EQUAL(n, 4321);
}

static void refused(void)
{
    static const char *const rows[] = {
        "",
        "Unknown command.\n",
        HEAD "plain,BACKEND,0,0,1,5,\nbody,BACKEND,0,0,20,5,\nstream,BACKEND,0,0,1,5,\n",
        HEAD "plain,BACKEND,0,0,1,5,\nbody,BACKEND,0,0,,5,\nstream,BACKEND,0,0,1,5,\nstream_body,BACKEND,0,0,1,5,\n",
        HEAD "plain,BACKEND,0,0,1,5,\nbody,BACKEND,0,0,-1,5,\nstream,BACKEND,0,0,1,5,\nstream_body,BACKEND,0,0,1,5,\n",
        HEAD "plain,BACKEND,0,0,1,5,\nbody,BACKEND,0,0,1,5,\nstream,BACKEND,0,0,1,5,\nstream_body,BACKEND,0,0",
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t n = 77;
        struct err e;

        err_clear(&e);
        CU_ASSERT(!open_requests_count(str_of(rows[i]), &n, &e));
        CU_ASSERT_EQUAL(n, 77);
    }
}

#define ALL(n) HEAD "plain,BACKEND,0,0," n ",5,\nbody,BACKEND,0,0,0,5,\nstream,BACKEND,0,0,0,5,\nstream_body,BACKEND,0,0,0,5,\n"

static void asked_of_all(void)
{
    const char *const answers[] = {processes, ALL("7"), ALL("30")};
    struct ctl_server s;
    uint64_t n = 0;
    struct err e;

    err_clear(&e);
    ctl_server_open(&s, answers, 3);
    CU_ASSERT(open_requests_ask(s.path, &n, &e));
    ctl_server_close(&s);
    CU_ASSERT_EQUAL(n, 37);
    CU_ASSERT_STRING_EQUAL(s.asked[0], "show proc\n");
    CU_ASSERT_STRING_EQUAL(s.asked[1], "@!28530 show stat -1 2 -1\n");
    CU_ASSERT_STRING_EQUAL(s.asked[2], "@!28518 show stat -1 2 -1\n");
}

static void unanswered(void)
{
    const char *const rows[][3] = {{processes, ALL("7"), "Can't connect to the target CLI!\n"}, {processes, "", NULL}, {NULL, NULL, NULL}};
    const size_t asked[] = {3, 2, 1};
    uint64_t n = 77;
    struct err e;

    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        struct ctl_server s;

        err_clear(&e);
        ctl_server_open(&s, rows[i], asked[i]);
        CU_ASSERT(!open_requests_ask(s.path, &n, &e) && e.text[0] != '\0');
        ctl_server_close(&s);
    }
    CU_ASSERT_EQUAL(n, 77);
}

void test_open_requests_register(void)
{
    CU_pSuite s = CU_add_suite("open_requests", NULL, NULL);

    CU_add_test(s, "the processes that a reload left behind are found beside the new one", processes_old_and_new);
    CU_add_test(s, "requests count in the backends of requests, not in those of agents", counted);
    CU_add_test(s, "an answer that lacks a backend or a number counts nothing", refused);
    CU_add_test(s, "open requests are those of every process, old ones too", asked_of_all);
    CU_add_test(s, "where one process does not say how many, nobody knows", unanswered);
}
