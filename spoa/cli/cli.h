/* The commands of a person. The offline ones are pure functions of files and of the environment: no socket, no lock, nothing written but
 * standard output and error; doctor also asks the edge over HTTP. */
#ifndef SPOA_CLI_CLI_H
#define SPOA_CLI_CLI_H

#include <stdio.h>

#include "common/base/err.h"

/* Exit codes. */
enum { CLI_OK = 0, CLI_FAULTS = 1, CLI_USAGE = 2 };

/* argv without the program and the command; envp: the environment. */
#define COMMAND_ROW(name, function, arguments, meaning) int function(int argc, char **argv, char *const envp[]);
#include "spoa/cli/commands.def"
#undef COMMAND_ROW

struct cli_command {
    const char *name, *arguments, *meaning;
    int (*run)(int argc, char **argv, char *const envp[]);
};
/* NULL when there is none of this name. */
const struct cli_command *cli_command(const char *name);
/* Says on standard error that there is no such command, and which there are. */
int cli_no_command(const char *name);

int cli_help(void);
int cli_version(void);
const char *cli_version_text(void);

/* Runs a command with lists of its own and returns what it returns. */
int cli_with_lists(int (*run)(const void *call, struct errlist *errors, struct errlist *warnings), const void *call);
/* "file: error: /path: line 1, column 5: text [code]" */
void cli_print_faults(FILE *f, const char *file, const char *severity, const struct errlist *list);
/* The line of an expression's text, and a caret below the column (a byte, from 1); of a long line the part around it. Nothing where the text has
 * no such place. */
void cli_print_caret(FILE *f, struct str text, unsigned line, unsigned column);
/* CLI_USAGE when a fault is about the file itself rather than what it says, else CLI_FAULTS. */
int cli_exit_code(const struct errlist *errors);

#endif
