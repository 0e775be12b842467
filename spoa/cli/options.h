/* What all commands have in common: their arguments, and the deployment that a policy is judged for. */
#ifndef SPOA_CLI_OPTIONS_H
#define SPOA_CLI_OPTIONS_H

#include "common/policy/policy.h"
#include "spoa/cli/cli.h"

struct cli_option {
    const char *name;    /* "--json", "-w" */
    const char *value;   /* what its value is called, as in "FILE"; NULL: it takes none */
    const char *meaning; /* for --help */
    bool *flag;          /* of one without a value: set to true */
    const char **text;   /* of one with a value: the argument behind it, or what follows "=" */
};

struct cli_syntax {
    const char *command; /* a row of commands.def */
    const char *details; /* for --help: what the command reads, prints and returns; lines. NULL: nothing more to say */
    const struct cli_option *options;
    size_t n_options; /* at most 16 */
    const char **operands; /* n_operands of them, filled in order */
    size_t n_required, n_operands;
};

/* Options may stand before, between and behind operands; an option stands there once. "-" is an operand or a
 * value, and behind "--" everything is an operand. True: run the
 * command. False: return *exit_code, since everything is said: CLI_OK after --help, CLI_USAGE after a mistake. */
MUSTUSE bool cli_parse(const struct cli_syntax *s, int argc, char **argv, int *exit_code);

/* What surrounds a policy that is looked at: the deployment by the environment (settings marked BY_OFFLINE). Without CLIENT_IP_SOURCE and VIEWER_HEADERS every
 * field is available, and *deployment_known (NULL: not asked) is false; with it the viewer sources are those that the deployment has. Regular expressions are
 * always ALLOW_REGEX's, and connect_timeout_ms is EDGE_UPSTREAM_CONNECT_TIMEOUT's. now_ms is 0, to_serve is false. False: return CLI_USAGE; which
 * setting is wrong is said. */
MUSTUSE bool cli_policy_options(const struct cli_syntax *s, char *const envp[], struct policy_options *out, bool *deployment_known);

#endif
