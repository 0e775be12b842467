/* edge-spoa --help: commands, and the settings as their table has them. */
#include "spoa/cli/cli.h"
#include "spoa/settings.h"

int cli_help(void)
{
    printf("Usage: edge-spoa COMMAND\n"
           "\n"
           "  run                               an edge: HAProxy and its agents, supervised\n"
           "  serve                             one agent (run starts it)\n"
           "  check POLICY [--json]             every fault of a policy file with its place\n"
           "  simulate POLICY [--request FILE]  what the edge would do with a request (JSON; default: standard input)\n"
           "  doctor [--json]                   asks a running edge whether requests are decided, and says what is wrong when not\n"
           "  --version, --help\n"
           "\n"
           "Exit codes of check, simulate and doctor: 0 fine, 1 faults in what was read or seen, 2 usage, settings or unreadable file.\n"
           "Signals to run: HUP reloads the policy, USR1 exchanges the agents, USR2 reloads HAProxy, TERM drains and ends.\n"
           "\n"
           "run and serve are configured by the environment alone; doctor takes the addresses to ask from that of run:\n"
           "\n");
    settings_print(stdout);
    return CLI_OK;
}
