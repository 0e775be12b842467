/* The mask of a daemon's signals. */
#include "spoa/signals.h"

#include <signal.h>

void signals_hold(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void signals_let_in(int signum)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, signum);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
