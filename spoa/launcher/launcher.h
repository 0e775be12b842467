/* `edge-spoa run`: starts HAProxy and its agents, keeps them running, passes on what they write, and ends them in order. */
#ifndef SPOA_LAUNCHER_LAUNCHER_H
#define SPOA_LAUNCHER_LAUNCHER_H

/* Runs until it is told to end; to be called on the main thread of a process that has no other. Settings come from envp,
 * which must outlive the call. Returns the exit status: 0 after SIGTERM or SIGINT, 1 when the edge could not start, 2 when
 * the settings have faults (all of them are printed to standard error).
 *
 * SIGHUP: the agents read their policy again. SIGUSR1: the agents are replaced one after the other, also by a new binary.
 * SIGUSR2: HAProxy reads its configuration again, if that has no faults. SIGTERM, SIGINT: drain; a second one ends the
 * delay before it. */
int launcher_main(char *const envp[]);

#endif
