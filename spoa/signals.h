/* The signals of a daemon: held back from the first moment on, let in when its loop listens to them. */
#ifndef SPOA_SIGNALS_H
#define SPOA_SIGNALS_H

/* Blocks SIGHUP, SIGUSR1, SIGUSR2, SIGTERM and SIGINT, so that one that comes early waits instead of ending the process. First thing in
 * main; threads started from then on never see these signals, processes reset their mask (spawn.h). */
void signals_hold(void);
/* Lets signum in again; calling thread. Once its watcher runs. */
void signals_let_in(int signum);

#endif
