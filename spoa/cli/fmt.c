/* edge-spoa fmt: the one way to write a policy. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/policy/format.h"
#include "spoa/cli/document.h"
#include "spoa/cli/options.h"
#include "spoa/cli/unified.h"

struct fmt_call {
    struct policy_options options;
    const char *file;
    bool show_diff, check, rewrite;
};

static bool write_all(int fd, struct str text)
{
    while (text.len > 0) {
        const ssize_t n = write(fd, text.p, text.len);
        if (n >= 0)
            str_skip(&text, (size_t) n);
        else if (errno != EINTR)
            return false;
    }
    return fsync(fd) == 0;
}

/* Readers see the old file or the new one; a link stays one. */
static bool replace(const char *file, struct str text, struct err *e)
{
    char path[PATH_MAX], temporary[PATH_MAX + 8];
    struct stat st;
    if (realpath(file, path) == NULL || stat(path, &st) != 0)
        return err_set(e, ERR_UNREADABLE, "", "%s", strerror(errno));
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    const int fd = mkstemp(temporary);
    if (fd < 0)
        return err_set(e, ERR_IO, "", "no file can be made beside it: %s", strerror(errno));
    bool ok = write_all(fd, text);
    /* Who runs this may not give files away; then the new one is theirs. */
    if (ok && fchown(fd, st.st_uid, st.st_gid) != 0 && errno != EPERM)
        ok = false;
    ok = ok && fchmod(fd, st.st_mode & 07777) == 0;
    ok = close(fd) == 0 && ok;
    ok = ok && rename(temporary, path) == 0;
    if (!ok) {
        err_set(e, ERR_IO, "", "it can't be rewritten: %s", strerror(errno));
        unlink(temporary);
    }
    return ok;
}

static char *formatted(const json_t *document, size_t *len)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    json_t *canonical = policy_canonical(document, FORMAT_AS_WRITTEN);
    bool ok = f != NULL && canonical != NULL && policy_format(canonical, f);
    ok = f != NULL && fclose(f) == 0 && ok;
    json_decref(canonical);
    if (ok)
        return text;
    free(text);
    return NULL;
}

/* What was asked for; exit code. */
static int act(const struct fmt_call *call, struct str old, struct str new)
{
    const bool is_canonical = str_eq(old, new);
    char name[PATH_MAX];
    struct err e;
    err_clear(&e);
    if (!call->show_diff && !call->check && !call->rewrite)
        return fwrite(new.p, 1, new.len, stdout) == new.len ? CLI_OK : CLI_USAGE;
    snprintf(name, sizeof name, "%s (canonical)", call->file);
    if (call->show_diff && !unified_print(stdout, call->file, name, old, new)) {
        fprintf(stderr, "edge-spoa fmt: no memory to compare\n");
        return CLI_USAGE;
    }
    if (call->check && !is_canonical)
        printf("%s\n", call->file);
    if (call->rewrite && !is_canonical && !replace(call->file, new, &e)) {
        fprintf(stderr, "%s: %s\n", call->file, e.text);
        return CLI_USAGE;
    }
    return call->check && !is_canonical ? CLI_FAULTS : CLI_OK;
}

static int fmt(const void *arg, struct errlist *errors, struct errlist *warnings)
{
    const struct fmt_call *call = arg;
    struct cli_document d;
    struct policy *policy = NULL;
    int exit_code;
    if (cli_document_load(&d, call->file, errors) && policy_compile(d.json, &call->options, &policy, errors, warnings)) {
        size_t len = 0;
        char *text = formatted(d.json, &len);
        if (text == NULL)
            fprintf(stderr, "edge-spoa fmt: no memory to write it\n");
        exit_code = text == NULL ? CLI_USAGE : act(call, (struct str){d.text, d.len}, (struct str){text, len});
        free(text);
    } else {
        cli_document_print(stderr, &d, errors, NULL);
        exit_code = cli_exit_code(errors);
    }
    policy_free(&policy);
    cli_document_release(&d);
    return exit_code;
}

int cli_fmt(int argc, char **argv, char *const envp[])
{
    struct fmt_call call = {0};
    const struct cli_option options[] = {
        {"-d", NULL, "show what differs, as a unified diff", &call.show_diff, NULL},
        {"--check", NULL, "print the file's name and exit with 1 when it is not canonical", &call.check, NULL},
        {"-w", NULL, "rewrite the file, in one step; its mode stays", &call.rewrite, NULL},
    };
    const struct cli_syntax syntax = {
        .command = "fmt",
        .details = "Without an option the canonical policy goes to standard output: members in the order of the reference, two blanks a level,\n"
                   "expressions in canonical form, as text where they are text. Nothing is added or left out.\n"
                   "Exit codes: 0 done, 1 not a valid policy (or not canonical, with --check), 2 the file can't be read or written.\n",
        .options = options,
        .n_options = sizeof options / sizeof options[0],
        .operands = &call.file,
        .n_required = 1,
        .n_operands = 1,
    };
    int exit_code;
    if (!cli_parse(&syntax, argc, argv, &exit_code))
        return exit_code;
    if (!cli_policy_options(&syntax, envp, &call.options, NULL))
        return CLI_USAGE;
    return cli_with_lists(fmt, &call);
}
