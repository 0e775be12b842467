/* The internal HTTP listener, over real sockets. */
#include <CUnit/CUnit.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/httpd.h"

/* Longer than anything here takes: only ends a test that would hang. */
enum { PATIENCE_S = 30, N_IDLE = 40 };

struct page {
    atomic_int n_calls;
    atomic_bool signals_blocked;
};

static void handle_page(void *ctx, struct httpd_reply *reply)
{
    struct page *page = ctx;
    sigset_t mask;

    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    atomic_store(&page->signals_blocked, sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGHUP) == 1);
    atomic_fetch_add(&page->n_calls, 1);
    *reply =
        (struct httpd_reply){.status = 200, .content_type = "text/x-page", .body = strdup("the page\n"), .body_len = 9};
}

static void handle_nothing(void *ctx, struct httpd_reply *reply)
{
    (void)ctx, (void)reply;
}

static const struct httpd_route routes[] = {{"/page", handle_page}, {"/nothing", handle_nothing}, {NULL, NULL}};

static struct httpd *start(struct str host, struct page *page)
{
    struct httpd *h = NULL;
    struct err e;

    err_clear(&e);
    *page = (struct page){.n_calls = 0};
    CU_ASSERT(httpd_new(&h, (struct listen_addr){host, 0}, routes, page, &e));
    CU_ASSERT_FATAL(h != NULL && httpd_port(h) != 0);
    return h;
}

/* A connection to a loopback address, or -1. */
static int dial(const char *host, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    bool is_v4 = inet_pton(AF_INET, host, &v4.sin_addr) == 1;
    int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = PATIENCE_S};

    if (!is_v4)
        CU_ASSERT(inet_pton(AF_INET6, host, &v6.sin6_addr) == 1);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, is_v4 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6,
                is_v4 ? sizeof(v4) : sizeof(v6)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Everything the peer sends until it closes. */
static const char *read_answer(int fd, char *out, size_t cap)
{
    size_t len = 0;
    ssize_t n;

    while (len + 1 < cap && (n = recv(fd, out + len, cap - len - 1, 0)) > 0)
        len += (size_t)n;
    out[len] = '\0';
    return out;
}

static const char *ask(const char *host, uint16_t port, const char *request, char *out, size_t cap)
{
    int fd = dial(host, port);

    out[0] = '\0';
    if (fd < 0)
        return out;
    CU_ASSERT(send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request));
    read_answer(fd, out, cap);
    close(fd);
    return out;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static bool ends(const char *text, const char *end)
{
    return str_ends(str_of(text), str_of(end));
}

static unsigned n_answers(const char *text)
{
    unsigned n = 0;

    while ((text = strstr(text, "HTTP/1.1 ")) != NULL) {
        text++;
        n++;
    }
    return n;
}

static void get_and_head(void)
{
    struct page page;
    struct httpd *h = start(STR("127.0.0.1"), &page);
    char text[4096];

    ask("127.0.0.1", httpd_port(h), "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    CU_ASSERT(has(text, "HTTP/1.1 200 ") && ends(text, "\r\n\r\nthe page\n"));
    CU_ASSERT(has(text, "Content-Type: text/x-page\r\n") && has(text, "Cache-Control: no-store\r\n"));
    CU_ASSERT(has(text, "Content-Length: 9\r\n") && has(text, "X-Content-Type-Options: nosniff\r\n"));
    ask("127.0.0.1", httpd_port(h), "GET /page?x=1 HTTP/1.0\r\n\r\n", text, sizeof(text));
    CU_ASSERT(has(text, " 200 ") && ends(text, "the page\n"));
    ask("127.0.0.1", httpd_port(h), "HEAD /page HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    CU_ASSERT(has(text, " 200 ") && has(text, "Content-Length: 9\r\n") && ends(text, "\r\n\r\n"));
    CU_ASSERT(atomic_load(&page.n_calls) == 3);
    httpd_free(&h);
    CU_ASSERT(h == NULL);
    httpd_free(&h);
}

static void other_paths_and_methods(void)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get", "BREW"};
    static const char *const paths[] = {"/", "/pag", "/page/", "/page/x", "/PAGE", "//page", "/../page"};
    struct page page;
    struct httpd *h = start(STR("127.0.0.1"), &page);
    char text[4096], request[256];

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        snprintf(request, sizeof(request), "%s /page HTTP/1.1\r\nHost: x\r\n\r\n", methods[i]);
        ask("127.0.0.1", httpd_port(h), request, text, sizeof(text));
        CU_ASSERT(has(text, " 405 ") && has(text, "Allow: GET, HEAD\r\n") && has(text, "no-store"));
        CU_ASSERT(has(text, "text/plain") && ends(text, "only GET and HEAD are served here\n"));
    }
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", paths[i]);
        ask("127.0.0.1", httpd_port(h), request, text, sizeof(text));
        CU_ASSERT(has(text, " 404 ") && has(text, "no-store") && ends(text, "there is no such page here\n"));
    }
    CU_ASSERT(atomic_load(&page.n_calls) == 0);
    ask("127.0.0.1", httpd_port(h), "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    CU_ASSERT(has(text, " 500 ") && has(text, "Content-Length: 0\r\n"));
    httpd_free(&h);
}

static void a_body_is_never_a_request(void)
{
    static const char *const requests[] = {
        "POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 35\r\n\r\nGET /page HTTP/1.1\r\nHost: x\r\n\r\n1234",
        "GET /page HTTP/1.1\r\nHost: x\r\nContent-Length: 35\r\n\r\nGET /page HTTP/1.1\r\nHost: x\r\n\r\n1234",
        ("GET /page HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
         "17\r\nGET /page HTTP/1.1\r\n\r\n.\r\n0\r\n\r\n"),
        "GET /page HTTP/1.1\r\nHost: x\r\n\r\nGET /page HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\nabc",
    };
    struct page page;
    struct httpd *h = start(STR("127.0.0.1"), &page);
    char text[8192];

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        CU_ASSERT(n_answers(ask("127.0.0.1", httpd_port(h), requests[i], text, sizeof(text))) <= 1);
    /* Still alive, and nothing of the bodies was served. */
    CU_ASSERT(atomic_load(&page.n_calls) <= 3);
    ask("127.0.0.1", httpd_port(h), "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    CU_ASSERT(n_answers(text) == 1 && has(text, " 200 "));
    httpd_free(&h);
}

static void connections_over_the_limit_wait_their_turn(void)
{
    struct page page;
    struct httpd *h = start(STR("127.0.0.1"), &page);
    int idle[N_IDLE], last;
    const char *request = "GET /page HTTP/1.1\r\nHost: x\r\n\r\n";
    char text[4096];

    for (int i = 0; i < N_IDLE; i++) {
        idle[i] = dial("127.0.0.1", httpd_port(h));
        CU_ASSERT(idle[i] >= 0);
    }
    last = dial("127.0.0.1", httpd_port(h));
    CU_ASSERT_FATAL(last >= 0);
    CU_ASSERT(send(last, request, strlen(request), MSG_NOSIGNAL) > 0);
    for (int i = 0; i < N_IDLE; i++)
        close(idle[i]);
    CU_ASSERT(has(read_answer(last, text, sizeof(text)), " 200 "));
    close(last);
    for (int i = 0; i < N_IDLE; i++)
        idle[i] = dial("127.0.0.1", httpd_port(h));
    /* A stop does not wait for idle ones. */
    httpd_free(&h);
    for (int i = 0; i < N_IDLE; i++)
        CU_ASSERT(idle[i] >= 0 && close(idle[i]) == 0);
}

static void an_empty_host_means_all_addresses(void)
{
    struct page page;
    struct httpd *h = start(STR_NONE, &page);
    const char *request = "GET /page HTTP/1.1\r\nHost: x\r\n\r\n";
    char text[4096];
    struct err e;
    struct httpd *v6 = NULL;

    CU_ASSERT(has(ask("127.0.0.1", httpd_port(h), request, text, sizeof(text)), " 200 "));
    err_clear(&e);
    if (httpd_new(&v6, (struct listen_addr){STR("::1"), 0}, routes, &page, &e)) {
        CU_ASSERT(has(ask("::1", httpd_port(v6), request, text, sizeof(text)), " 200 "));
        CU_ASSERT(has(ask("::1", httpd_port(h), request, text, sizeof(text)), " 200 "));
        CU_ASSERT(dial("127.0.0.1", httpd_port(v6)) < 0);
        httpd_free(&v6);
    } else {
        printf("\n    skipped for IPv6: %s\n", e.text);
        CU_ASSERT(e.code == ERR_IO);
    }
    httpd_free(&h);
}

static void a_port_is_shared_with_the_daemon_that_takes_over(void)
{
    struct page page;
    struct httpd *old = start(STR("127.0.0.1"), &page), *new = NULL;
    struct listen_addr at = {STR("127.0.0.1"), httpd_port(old)};
    struct err e;

    err_clear(&e);
    CU_ASSERT(httpd_new(&new, at, routes, &page, &e));
    CU_ASSERT_EQUAL(httpd_port(new), httpd_port(old));
    httpd_free(&old);
    int fd = dial("127.0.0.1", at.port);
    CU_ASSERT(fd >= 0);
    close(fd);
    httpd_free(&new);
}

/* A listener of another kind of program: it shares its port with nobody. Returns the port, or 0. */
static uint16_t occupy(int *fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(*fd, (struct sockaddr *)&at, len) != 0 || listen(*fd, 1) != 0 ||
        getsockname(*fd, (struct sockaddr *)&at, &len) != 0)
        return 0;
    return ntohs(at.sin_port);
}

static void what_can_not_be_bound_is_said(void)
{
    char long_host[300];
    struct page page;
    struct httpd *h = start(STR("127.0.0.1"), &page), *second = NULL;
    int other;
    struct listen_addr taken = {STR("127.0.0.1"), occupy(&other)};
    struct err e;

    err_clear(&e);
    CU_ASSERT(taken.port != 0);
    CU_ASSERT(!httpd_new(&second, taken, routes, &page, &e) && second == NULL);
    CU_ASSERT(e.code == ERR_IO && has(e.text, "cannot listen on 127.0.0.1:") && has(e.text, "in use"));
    err_clear(&e);
    CU_ASSERT(!httpd_new(&second, (struct listen_addr){STR("192.0.2.1"), 0}, routes, &page, &e));
    CU_ASSERT(e.code == ERR_IO && has(e.text, "192.0.2.1"));
    err_clear(&e);
    CU_ASSERT(!httpd_new(&second, (struct listen_addr){STR("a..b"), 0}, routes, &page, &e));
    CU_ASSERT(e.code == ERR_IO && has(e.text, "cannot listen on a..b:0: "));
    memset(long_host, 'a', sizeof(long_host));
    err_clear(&e);
    CU_ASSERT(!httpd_new(&second, (struct listen_addr){{long_host, sizeof(long_host)}, 0}, routes, &page, &e));
    CU_ASSERT(e.code == ERR_SETTING && second == NULL);
    close(other);
    httpd_free(&h);
}

/* Leaves room for n more descriptors; returns the limit before. */
static struct rlimit limit_descriptors(rlim_t n)
{
    int lowest_free = dup(STDERR_FILENO);
    struct rlimit before, now;

    CU_ASSERT_FATAL(lowest_free >= 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    close(lowest_free);
    now = (struct rlimit){.rlim_cur = (rlim_t)lowest_free + n, .rlim_max = before.rlim_max};
    CU_ASSERT_FATAL(setrlimit(RLIMIT_NOFILE, &now) == 0);
    return before;
}

static void a_lack_of_descriptors_is_an_error(void)
{
    struct httpd *h = NULL;
    struct page page;

    /* None for the socket; too few for libmicrohttpd behind it. */
    for (rlim_t n = 0; n < 3; n++) {
        struct rlimit before = limit_descriptors(n);
        struct err e;

        err_clear(&e);
        CU_ASSERT(!httpd_new(&h, (struct listen_addr){STR("127.0.0.1"), 0}, routes, &page, &e) && h == NULL);
        CU_ASSERT(e.code == ERR_IO && has(e.text, "Too many open files"));
        CU_ASSERT(setrlimit(RLIMIT_NOFILE, &before) == 0);
    }
    h = start(STR("127.0.0.1"), &page);
    httpd_free(&h);
}

static void signals_are_left_to_the_main_thread(void)
{
    struct page page;
    struct httpd *h = start(STR("127.0.0.1"), &page);
    sigset_t mine;
    char text[4096];

    CU_ASSERT(pthread_sigmask(SIG_SETMASK, NULL, &mine) == 0 && sigismember(&mine, SIGTERM) == 0);
    ask("127.0.0.1", httpd_port(h), "GET /page HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    CU_ASSERT(atomic_load(&page.n_calls) == 1 && atomic_load(&page.signals_blocked));
    httpd_free(&h);
}

void test_httpd_register(void)
{
    CU_pSuite s = CU_add_suite("httpd", NULL, NULL);

    CU_add_test(s, "GET and HEAD answer a page that no cache keeps", get_and_head);
    CU_add_test(s, "other paths get 404, other methods 405, an idle handler 500", other_paths_and_methods);
    CU_add_test(s, "security: a body is never read as a request", a_body_is_never_a_request);
    CU_add_test(s, "connections over the limit wait their turn", connections_over_the_limit_wait_their_turn);
    CU_add_test(s, "an empty host means all addresses of both families", an_empty_host_means_all_addresses);
    CU_add_test(s, "what can not be bound is said with its address", what_can_not_be_bound_is_said);
    CU_add_test(s, "a port is shared with the daemon that takes over", a_port_is_shared_with_the_daemon_that_takes_over);
    CU_add_test(s, "a lack of file descriptors is an error, not a crash", a_lack_of_descriptors_is_an_error);
    CU_add_test(s, "signals are left to the main thread", signals_are_left_to_the_main_thread);
}
