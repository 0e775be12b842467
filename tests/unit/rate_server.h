/* A Valkey of the test's own: private folder, UNIX socket, no port, ends with the test. */
#ifndef TESTS_UNIT_RATE_SERVER_H
#define TESTS_UNIT_RATE_SERVER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rate_server {
    char folder[64], socket[80], log[80];
    pid_t pid;
    redisContext *link;
};

/* The binary is EDGE_VALKEY, or what `make deps` fetched. False: there is none; that has been said, and the test is to end as skipped. A server
 * that does not start fails the test. */
bool rate_server_start(struct rate_server *s);
void rate_server_stop(struct rate_server *s);
/* Another connection; NULL fails the test. The caller frees it. */
redisContext *rate_server_connect(struct rate_server *s);
/* The server's clock. */
uint64_t rate_server_time_ms(struct rate_server *s);

#endif
