/* edge-spoa: one binary, one sub-command each for the edge's processes and for policy as code. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "spoa/agent.h"
#include "spoa/cli/cli.h"
#include "spoa/launcher/launcher.h"
#include "spoa/signals.h"

extern char **environ;

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    const bool is_daemon = argc == 2 && (strcmp(command, "run") == 0 || strcmp(command, "serve") == 0);
    if (is_daemon)
        signals_hold();
    if (strcmp(command, "run") == 0 && is_daemon)
        return launcher_main(environ);
    if (strcmp(command, "serve") == 0 && is_daemon)
        return agent_main(environ);
    if (strcmp(command, "check") == 0)
        return cli_check(argc - 2, argv + 2);
    if (strcmp(command, "simulate") == 0)
        return cli_simulate(argc - 2, argv + 2);
    if (strcmp(command, "doctor") == 0)
        return cli_doctor(argc - 2, argv + 2, environ);
    if (strcmp(command, "--version") == 0)
        return cli_version();
    if (strcmp(command, "--help") == 0 || strcmp(command, "help") == 0)
        return cli_help();
    if (strcmp(command, "run") == 0 || strcmp(command, "serve") == 0)
        fprintf(stderr, "edge-spoa %s takes no arguments: its settings come from the environment, see edge-spoa --help\n", command);
    else if (argc > 1)
        fprintf(stderr, "edge-spoa: there is no command \"%s\"; it is one of run, serve, check, simulate, doctor, --help, --version\n", command);
    else
        fprintf(stderr, "edge-spoa: name a command: run, serve, check, simulate, doctor, --help or --version\n");
    return CLI_USAGE;
}
