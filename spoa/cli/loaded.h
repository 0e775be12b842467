/* What simulate and test work on: a policy compiled for the deployment of the environment, kept together with its document; and requests. */
#ifndef SPOA_CLI_LOADED_H
#define SPOA_CLI_LOADED_H

#include "common/policy/policy.h"
#include "spoa/cli/document.h"

/* A document and the policy in it. */
struct cli_policy {
    struct cli_document document;
    const json_t *source; /* of the document: what the policy was compiled from */
    struct policy *policy;
};

/* False: the faults are on standard error, and in errors. */
MUSTUSE bool cli_policy_load(struct cli_policy *p, const char *file, const struct policy_options *options, struct errlist *errors, struct errlist *warnings);
/* Compiles p->source, which stands in the document at pointer, whose faults get that place. Nothing is printed. */
MUSTUSE bool cli_policy_compile(struct cli_policy *p, const char *pointer, const struct policy_options *options, struct errlist *errors,
                                struct errlist *warnings);
/* As often as wanted. */
void cli_policy_release(struct cli_policy *p);

/* As cli_document_load, but "-" is standard input, and at most 1 MiB are read. */
MUSTUSE bool cli_request_load(struct cli_document *d, const char *file, struct errlist *errors);

#endif
