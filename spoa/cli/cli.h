/* The commands of a person. The offline ones are pure functions of files: no socket, no lock, nothing written but standard output and error;
 * doctor also asks the edge over HTTP. */
#ifndef SPOA_CLI_CLI_H
#define SPOA_CLI_CLI_H

#include <stdio.h>

#include "common/base/err.h"

/* Exit codes. */
enum { CLI_OK = 0, CLI_FAULTS = 1, CLI_USAGE = 2 };

/* argv without the program and the command. */
int cli_check(int argc, char **argv);    /* POLICY [--json] */
int cli_simulate(int argc, char **argv); /* POLICY [--request FILE|-] */
int cli_doctor(int argc, char **argv, char *const envp[]); /* [--json]; envp: as for run */
int cli_help(void);
int cli_version(void);
const char *cli_version_text(void);

/* Runs a command with lists of its own and returns what it returns. */
int cli_with_lists(int (*run)(const void *call, struct errlist *errors, struct errlist *warnings), const void *call);
/* "file: /path: line 1, column 5: text" */
void cli_print_faults(FILE *f, const char *file, const char *severity, const struct errlist *list);
/* CLI_USAGE when a fault is about the file itself rather than what it says, else CLI_FAULTS. */
int cli_exit_code(const struct errlist *errors);

#endif
