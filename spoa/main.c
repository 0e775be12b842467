/* edge-spoa: one binary, one sub-command each for the edge's processes and for policy as code. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "spoa/agent.h"
#include "spoa/cli/cli.h"
#include "spoa/launcher/launcher.h"
#include "spoa/signals.h"

extern char **environ;

static bool is_daemon_name(const char *command)
{
    return strcmp(command, "run") == 0 || strcmp(command, "serve") == 0;
}

/* `edge-spoa help check` is `edge-spoa check --help`. */
static int help_of(const char *name)
{
    char option[] = "--help", *argv[] = {option, NULL};
    const struct cli_command *command = cli_command(name);
    if (command != NULL)
        return command->run(1, argv, environ);
    return is_daemon_name(name) ? cli_help() : cli_no_command(name);
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    const bool is_daemon = argc == 2 && is_daemon_name(command);
    if (is_daemon)
        signals_hold();
    if (strcmp(command, "run") == 0 && is_daemon)
        return launcher_main(environ);
    if (strcmp(command, "serve") == 0 && is_daemon)
        return agent_main(environ);
    const struct cli_command *of_a_person = cli_command(command);
    if (of_a_person != NULL)
        return of_a_person->run(argc - 2, argv + 2, environ);
    if (strcmp(command, "--version") == 0)
        return cli_version();
    const bool names_daemon = is_daemon_name(command);
    if (strcmp(command, "--help") == 0 || strcmp(command, "help") == 0)
        return argc > 2 ? help_of(argv[2]) : cli_help();
    if (names_daemon && argc == 3 && strcmp(argv[2], "--help") == 0)
        return cli_help();
    if (names_daemon)
        fprintf(stderr, "edge-spoa %s takes no arguments: its settings come from the environment, see edge-spoa --help\n", command);
    else
        return cli_no_command(command);
    return CLI_USAGE;
}
