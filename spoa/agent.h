/* The agent's process: `edge-spoa serve`. */
#ifndef SPOA_AGENT_H
#define SPOA_AGENT_H

/* Runs until SIGTERM or SIGINT; returns the exit code: 0, 1 when start-up failed, 2 for wrong settings. */
int agent_main(char *const envp[]);

#endif
