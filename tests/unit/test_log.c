/* The daemons' own log. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <unistd.h>

#include "common/base/log.h"

enum { LINE_MAX_BYTES = 2048 };

static int saved_stderr = -1, log_pipe[2];

/* Standard error becomes a pipe whose reading end never blocks. */
static void capture(void)
{
    CU_ASSERT_FATAL(pipe2(log_pipe, O_CLOEXEC) == 0);
    CU_ASSERT_FATAL(fcntl(log_pipe[0], F_SETFL, O_NONBLOCK) == 0);
    saved_stderr = dup(STDERR_FILENO);
    CU_ASSERT_FATAL(saved_stderr >= 0 && dup2(log_pipe[1], STDERR_FILENO) >= 0);
}

static void restore(void)
{
    CU_ASSERT_FATAL(dup2(saved_stderr, STDERR_FILENO) >= 0);
    close(saved_stderr);
    close(log_pipe[0]);
    close(log_pipe[1]);
}

static ssize_t read_log(char *out, size_t cap)
{
    return read(log_pipe[0], out, cap);
}

/* What was written since the last call: exactly one line, valid JSON of text members in a fixed order. */
static json_t *read_line(void)
{
    char line[65536];
    ssize_t n = read_log(line, sizeof(line));
    json_t *object;

    CU_ASSERT_FATAL(n > 0 && n <= LINE_MAX_BYTES);
    CU_ASSERT(line[n - 1] == '\n' && memchr(line, '\n', (size_t)n - 1) == NULL);
    object = json_loadb(line, (size_t)n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    CU_ASSERT_FATAL(json_is_object(object));
    return object;
}

static const char *member(const json_t *line, const char *name)
{
    const char *text = json_string_value(json_object_get(line, name));

    return text == NULL ? "" : text;
}

static void an_event_is_one_json_line(void)
{
    json_t *line;

    log_init("agent-0", LOG_LEVEL_DEBUG);
    capture();
    errno = ERANGE;
    log_event(LOG_LEVEL_WARN, "policy_refused", "policy \"%s\" has %d faults\n", "p.json", 3);
    CU_ASSERT(errno == ERANGE);
    line = read_line();
    CU_ASSERT(json_object_size(line) == 5 && strlen(member(line, "time")) == 24);
    CU_ASSERT_STRING_EQUAL(member(line, "level"), "warn");
    CU_ASSERT_STRING_EQUAL(member(line, "component"), "agent-0");
    CU_ASSERT_STRING_EQUAL(member(line, "event"), "policy_refused");
    CU_ASSERT_STRING_EQUAL(member(line, "message"), "policy \"p.json\" has 3 faults\n");
    json_decref(line);
    restore();
}

static void a_log_that_takes_nothing_is_survived(void)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    log_init("agent-0", LOG_LEVEL_INFO);
    capture();
    CU_ASSERT_FATAL(full >= 0 && dup2(full, STDERR_FILENO) >= 0);
    errno = ERANGE;
    log_event(LOG_LEVEL_ERROR, "x", "%s", "lost");
    CU_ASSERT(errno == ERANGE);
    close(full);
    restore();
}

static void levels_below_the_minimum_are_silent(void)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    struct err e;
    char byte;

    err_clear(&e);
    capture();
    for (int min = LOG_LEVEL_DEBUG; min <= LOG_LEVEL_ERROR; min++) {
        log_init("c", (enum log_level)min);
        for (int level = LOG_LEVEL_DEBUG; level <= LOG_LEVEL_ERROR; level++) {
            log_event((enum log_level)level, "x", "%s", "");
            if (level >= min) {
                json_t *line = read_line();

                CU_ASSERT_STRING_EQUAL(member(line, "level"), names[level]);
                json_decref(line);
            }
            log_err((enum log_level)level, "x", &e);
            if (level >= min)
                json_decref(read_line());
            CU_ASSERT(read_log(&byte, 1) < 0 && errno == EAGAIN);
        }
    }
    restore();
}

static void an_error_brings_its_place(void)
{
    struct err e;
    json_t *line;

    log_init("cli", LOG_LEVEL_INFO);
    capture();
    err_clear(&e);
    err_set(&e, ERR_MISSING, "/rules/0/id", "is required");
    log_err(LOG_LEVEL_ERROR, "policy_refused", &e);
    line = read_line();
    CU_ASSERT(json_object_size(line) == 7);
    CU_ASSERT_STRING_EQUAL(member(line, "code"), "missing");
    CU_ASSERT_STRING_EQUAL(member(line, "path"), "/rules/0/id");
    CU_ASSERT_STRING_EQUAL(member(line, "message"), "is required");
    json_decref(line);

    e.line = 3;
    e.column = 14;
    log_err(LOG_LEVEL_ERROR, "policy_refused", &e);
    line = read_line();
    CU_ASSERT(json_object_size(line) == 9);
    CU_ASSERT(json_integer_value(json_object_get(line, "line")) == 3);
    CU_ASSERT(json_integer_value(json_object_get(line, "column")) == 14);
    json_decref(line);
    restore();
}

static void any_text_gives_a_bounded_valid_line(void)
{
    /* Bytes that need one, two, three and six bytes in JSON, and characters of three bytes. */
    static const char *const fillings[] = {"x", "\"", "\xff", "\x01", "\xe2\x82\xac"};
    static char text[5000];

    capture();
    for (size_t i = 0; i < sizeof(fillings) / sizeof(fillings[0]); i++) {
        size_t n = strlen(fillings[i]);
        struct err e;
        json_t *line;

        for (size_t at = 0; at < sizeof(text) - 1; at++)
            text[at] = fillings[i][at % n];
        log_init(text, LOG_LEVEL_INFO);
        log_event(LOG_LEVEL_INFO, text, "%s", text);
        line = read_line();
        /* Cut, but most of the room is used. */
        CU_ASSERT(strlen(member(line, "message")) * 6 / n > 1200);
        json_decref(line);

        err_clear(&e);
        e.code = ERR_BAD_VALUE;
        memcpy(e.path, text, sizeof(e.path) - 1);
        memcpy(e.text, text, sizeof(e.text) - 1);
        e.path[sizeof(e.path) - 1] = e.text[sizeof(e.text) - 1] = '\0';
        log_err(LOG_LEVEL_ERROR, text, &e);
        line = read_line();
        CU_ASSERT(strlen(member(line, "message")) > 0 && strlen(member(line, "path")) > 0);
        json_decref(line);
    }
    restore();
}

enum { N_THREADS = 4, N_LINES = 5 };

static void *write_lines(void *arg)
{
    char text[1500];

    memset(text, *(const char *)arg, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < N_LINES; i++)
        log_event(LOG_LEVEL_INFO, "x", "%s", text);
    return NULL;
}

static void lines_of_threads_do_not_mix(void)
{
    static char names[N_THREADS] = {'a', 'b', 'c', 'd'}, all[N_THREADS * N_LINES * LINE_MAX_BYTES];
    pthread_t threads[N_THREADS];
    struct str rest;
    ssize_t n;
    int n_lines = 0;

    log_init("c", LOG_LEVEL_INFO);
    capture();
    /* All lines fit into the pipe: no writer waits for the reader. */
    for (int i = 0; i < N_THREADS; i++)
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, write_lines, &names[i]) == 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    n = read_log(all, sizeof(all));
    restore();
    CU_ASSERT_FATAL(n > 0);
    for (rest = (struct str){all, (size_t)n}; rest.len > 0; n_lines++) {
        size_t end = str_find_byte(rest, '\n');
        json_t *line = json_loadb(rest.p, end == SIZE_MAX ? rest.len : end, 0, NULL);
        const char *message = member(line, "message");
        char first[2] = {message[0], '\0'};

        CU_ASSERT(strlen(message) == 1499 && strspn(message, first) == 1499);
        json_decref(line);
        rest = str_sub(rest, end == SIZE_MAX ? end : end + 1, rest.len);
    }
    CU_ASSERT(n_lines == N_THREADS * N_LINES);
}

void test_log_register(void)
{
    CU_pSuite s = CU_add_suite("log", NULL, NULL);

    CU_add_test(s, "an event is one JSON line", an_event_is_one_json_line);
    CU_add_test(s, "a log that takes nothing is survived, errno included", a_log_that_takes_nothing_is_survived);
    CU_add_test(s, "levels below the minimum are silent", levels_below_the_minimum_are_silent);
    CU_add_test(s, "an error brings its code, path, line and column", an_error_brings_its_place);
    CU_add_test(s, "security: any text gives one valid line of at most 2,048 bytes",
                any_text_gives_a_bounded_valid_line);
    CU_add_test(s, "lines of several threads do not mix", lines_of_threads_do_not_mix);
}
