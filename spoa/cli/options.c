/* Arguments of the commands, and the deployment that the environment describes. */
#include "spoa/cli/options.h"

#include <stdarg.h>

#include "spoa/settings_deployment.h"

enum { OPTIONS_MAX = 16 };

static void print_usage(FILE *f, const struct cli_syntax *s)
{
    const struct cli_command *command = cli_command(s->command);
    fprintf(f, "Usage: edge-spoa %s %s\n", command->name, command->arguments);
}

static void print_help(const struct cli_syntax *s)
{
    print_usage(stdout, s);
    printf("\n  %s\n", cli_command(s->command)->meaning);
    if (s->n_options > 0)
        printf("\n");
    for (size_t i = 0; i < s->n_options; i++) {
        const struct cli_option *o = &s->options[i];
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", o->name, o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
        printf("  %-20s %s\n", left, o->meaning);
    }
    if (s->details != NULL)
        printf("\n%s", s->details);
}

static bool PRINTF_LIKE(2, 3) mistake(const struct cli_syntax *s, const char *fmt, ...)
{
    va_list args;
    fprintf(stderr, "edge-spoa %s: ", s->command);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\n");
    print_usage(stderr, s);
    return false;
}

static bool unknown_option(const struct cli_syntax *s, struct str name)
{
    const char *names[OPTIONS_MAX + 2];
    size_t n = 0;
    for (; n < s->n_options && n < OPTIONS_MAX; n++)
        names[n] = s->options[n].name;
    names[n++] = "--help";
    names[n] = NULL;
    const char *nearest = name.len > 2 ? str_nearest(name, names) : NULL;
    const struct str shown = str_cut_utf8(name, 64);
    if (nearest != NULL)
        return mistake(s, "there is no option %.*s; did you mean %s?", STR_ARG(shown), nearest);
    return mistake(s, "there is no option %.*s", STR_ARG(shown));
}

/* Takes the option at argv[*i], and its value where it has one. given: options that were there already, one bit each. */
static bool take_option(const struct cli_syntax *s, int argc, char **argv, int *i, unsigned *given)
{
    const struct str whole = str_of(argv[*i]);
    const size_t equals = str_starts(whole, STR("--")) ? str_find_byte(whole, '=') : SIZE_MAX;
    const struct str name = str_sub(whole, 0, equals);
    const struct cli_option *o = NULL;
    for (size_t k = 0; k < s->n_options; k++)
        if (str_eq(str_of(s->options[k].name), name))
            o = &s->options[k];
    if (o == NULL)
        return unknown_option(s, name);
    const unsigned bit = 1u << (o - s->options);
    if ((*given & bit) != 0)
        return mistake(s, "%s is given twice", o->name);
    *given |= bit;
    if (o->value == NULL) {
        if (equals != SIZE_MAX)
            return mistake(s, "%s takes no value", o->name);
        *o->flag = true;
        return true;
    }
    if (equals != SIZE_MAX) {
        *o->text = argv[*i] + equals + 1;
        return true;
    }
    if (*i + 1 == argc)
        return mistake(s, "%s needs a value: %s", o->name, o->value);
    *o->text = argv[++*i];
    return true;
}

static bool parse(const struct cli_syntax *s, int argc, char **argv, bool *help)
{
    bool only_operands = false;
    unsigned given = 0;
    size_t n = 0;
    for (int i = 0; i < argc; i++) {
        if (only_operands || argv[i][0] != '-' || argv[i][1] == '\0') {
            if (n == s->n_operands)
                return mistake(s, "one argument too many: %s", argv[i]);
            s->operands[n++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            only_operands = true;
        } else if (strcmp(argv[i], "--help") == 0) {
            *help = true;
            return true;
        } else if (!take_option(s, argc, argv, &i, &given)) {
            return false;
        }
    }
    if (n < s->n_required)
        return mistake(s, "%s", n == 0 ? "what to work on is missing" : "an argument is missing");
    return true;
}

bool cli_parse(const struct cli_syntax *s, int argc, char **argv, int *exit_code)
{
    bool help = false;
    *exit_code = CLI_USAGE;
    if (!parse(s, argc, argv, &help))
        return false;
    if (!help)
        return true;
    print_help(s);
    *exit_code = CLI_OK;
    return false;
}

/* What is assumed where nothing is configured: every source, by ALLOW_REGEX. */
static const struct expr_deployment anywhere[] = {{.sources = UINT32_MAX}, {.sources = UINT32_MAX, .allow_regex = true}};

static void say_settings(const struct cli_syntax *s, const char *before, const struct errlist *list)
{
    for (size_t i = 0; i < list->n; i++)
        fprintf(stderr, "edge-spoa %s: %s%s\n", s->command, before, list->items[i].text);
    if (list->n_dropped > 0)
        fprintf(stderr, "edge-spoa %s: %sand %zu more\n", s->command, before, list->n_dropped);
}

bool cli_policy_options(const struct cli_syntax *s, char *const envp[], struct policy_options *out, bool *deployment_known)
{
    struct settings_edge settings;
    struct errlist errors, warnings;
    if (!errlist_init(&errors, 0)) {
        fprintf(stderr, "edge-spoa %s: no memory to read the settings\n", s->command);
        return false;
    }
    if (!errlist_init(&warnings, 0)) {
        errlist_release(&errors);
        fprintf(stderr, "edge-spoa %s: no memory to read the settings\n", s->command);
        return false;
    }
    bool ok = settings_load(&settings, SETTINGS_OFFLINE, envp, &errors);
    const struct ingress *ingress = ok ? settings_ingress(&settings, SETTINGS_OFFLINE, &warnings) : NULL;
    if (ok && ingress == NULL) {
        errlist_add(&errors, ERR_NO_MEMORY, "", "no memory to read the settings");
        ok = false;
    }
    if (ok) {
        const bool known = settings.client_ip_source[0] != '\0' || settings.viewer_headers[0] != '\0';
        *out = (struct policy_options){
            .deployment = known ? &ingress->deployment : &anywhere[settings.allow_regex == SETTING_SWITCH_TRUE],
            .connect_timeout_ms = settings.connect_timeout_ms,
        };
        if (deployment_known != NULL)
            *deployment_known = known;
        /* Who asks about the deployment wants to know what can't be meant by it. */
        if (deployment_known != NULL)
            say_settings(s, "warning: ", &warnings);
    } else {
        say_settings(s, "", &errors);
    }
    errlist_release(&warnings);
    errlist_release(&errors);
    return ok;
}
