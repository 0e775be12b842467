/* edge-spoa --version. */
#include "spoa/cli/cli.h"

#ifndef EDGE_VERSION
#define EDGE_VERSION "unknown"
#endif

const char *cli_version_text(void)
{
    return EDGE_VERSION;
}

int cli_version(void)
{
    printf("edge-spoa %s\n", cli_version_text());
    return CLI_OK;
}
