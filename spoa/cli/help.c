/* edge-spoa --help: the commands, and the settings as their tables have them. */
#include "spoa/cli/cli.h"
#include "spoa/settings.h"

static const struct cli_command commands[] = {
#define COMMAND_ROW(name, function, arguments, meaning) {name, arguments, meaning, function},
#include "spoa/cli/commands.def"
#undef COMMAND_ROW
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static const char *const names[] = {
    "run", "serve",
#define COMMAND_ROW(name, function, arguments, meaning) name,
#include "spoa/cli/commands.def"
#undef COMMAND_ROW
    "help", "--version", "--help", NULL};

const struct cli_command *cli_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

int cli_no_command(const char *name)
{
    const char *nearest = str_nearest(str_of(name), names);
    if (name[0] == '\0')
        fprintf(stderr, "edge-spoa: name a command: ");
    else if (nearest != NULL)
        fprintf(stderr, "edge-spoa: there is no command \"%s\"; did you mean %s? The commands are ", name, nearest);
    else
        fprintf(stderr, "edge-spoa: there is no command \"%s\"; it is one of ", name);
    for (size_t i = 0; names[i] != NULL; i++)
        fprintf(stderr, "%s%s", names[i], names[i + 1] != NULL ? ", " : "\n");
    return CLI_USAGE;
}

static void print_command(const char *name, const char *arguments, const char *meaning)
{
    char left[64];
    snprintf(left, sizeof left, "%s %s", name, arguments);
    /* A meaning that does not fit beside it stands below. */
    if (strlen(left) > 36 || 40 + strlen(meaning) > 100)
        printf("  %s\n      %s\n", left, meaning);
    else
        printf("  %-36s  %s\n", left, meaning);
}

int cli_help(void)
{
    printf("Usage: edge-spoa COMMAND\n\n");
    print_command("run", "", "an edge: HAProxy and its agents, supervised");
    print_command("serve", "", "one agent (run starts it)");
    for (size_t i = 0; i < N_COMMANDS; i++)
        print_command(commands[i].name, commands[i].arguments, commands[i].meaning);
    printf("  help COMMAND, --help, --version\n"
           "\n"
           "Exit codes of all but run and serve: 0 fine, 1 faults in what was read or seen, 2 usage, settings or\n"
           "unreadable file; help COMMAND, or --help behind it, says more about a command.\n"
           "Signals to run: HUP reloads the policy, USR1 exchanges the agents, USR2 reloads HAProxy, TERM drains\n"
           "and ends.\n"
           "\n"
           "run and serve are configured by the environment alone. READ BY says who takes which variable: the\n"
           "agents, HAProxy, run itself; check stands for check, expr, simulate and test, which read the same\n"
           "environment to know what a policy may use. doctor takes the addresses to ask from that of run.\n"
           "\n");
    settings_print(stdout);
    return CLI_OK;
}
