/* The settings for --help, as their table has them: groups, then for each setting a line of facts and its meaning. */
#include <inttypes.h>

#include "common/base/parse.h"
#include "spoa/settings.h"

enum { HELP_WIDTH = 100, VALUE_MAX = 96, READERS_MAX = 64 };

/* A group's title, or a setting. */
static const struct item {
    const char *group, *name, *type, *dflt, *meaning;
    uint64_t min, max;
    unsigned readers;
} items[] = {
#define SETTING_GROUP(title) {title, NULL, NULL, NULL, NULL, 0, 0, 0},
#define SETTING_ROW(member, name, type, dflt, min, max, readers, meaning) {NULL, name, #type, dflt, meaning, min, max, readers},
#include "schemas/settings.def"
};

static const struct {
    const char *type, *words;
} sets[] = {
#define SETTING_ENUM(set, words) {"ENUM_" #set, words},
#include "schemas/settings.def"
};

static const struct {
    unsigned reader;
    const char *name;
} readers[] = {{BY_AGENT, "agent"}, {BY_HAPROXY, "haproxy"}, {BY_LAUNCHER, "run"}, {BY_OFFLINE, "check"}};

static const struct {
    const char *name, *text;
} refused[] = {
#define SETTING_REFUSED(name, readers, reason) {name, reason},
#include "schemas/settings.def"
}, passed[] = {
#define SETTING_PASSED(name, readers, meaning) {name, meaning},
#include "schemas/settings.def"
};

static void value_of_duration(const struct item *i, char *out)
{
    char min[32], max[32];
    const size_t min_len = parse_render_duration(i->min, min, sizeof(min)), max_len = parse_render_duration(i->max, max, sizeof(max));

    snprintf(out, VALUE_MAX, "duration, %.*s to %.*s", (int)min_len, min, (int)max_len, max);
}

/* In the largest unit that leaves no rest. */
static void render_size(uint64_t bytes, char out[static 32])
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    size_t unit = 0;

    while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, 32, "%" PRIu64 "%s", bytes, units[unit]);
}

static void value_of_size(const struct item *i, char *out)
{
    char min[32], max[32];

    render_size(i->min, min);
    render_size(i->max, max);
    snprintf(out, VALUE_MAX, "size, %s to %s", min, max);
}

/* What a value of it looks like, with its unit. */
static void value_of(const struct item *i, char *out)
{
    for (size_t k = 0; k < sizeof(sets) / sizeof(sets[0]); k++)
        if (strcmp(i->type, sets[k].type) == 0) {
            snprintf(out, VALUE_MAX, "%s", sets[k].words);
            return;
        }
    if (strcmp(i->type, "DURATION") == 0)
        value_of_duration(i, out);
    else if (strcmp(i->type, "SIZE") == 0)
        value_of_size(i, out);
    else if (strcmp(i->type, "COUNT") == 0)
        snprintf(out, VALUE_MAX, "number, %" PRIu64 " to %" PRIu64, i->min, i->max);
    else if (strcmp(i->type, "RATE") == 0)
        snprintf(out, VALUE_MAX, "rate, 0 to 1, at most four decimals");
    else if (strcmp(i->type, "LIST") == 0)
        snprintf(out, VALUE_MAX, "comma list, may be empty");
    else
        snprintf(out, VALUE_MAX, "%s", strcmp(i->type, "SECRET") == 0 ? "secret" : "text");
}

static void readers_of(unsigned bits, char *out)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t k = 0; k < sizeof(readers) / sizeof(readers[0]) && len < READERS_MAX; k++)
        if ((bits & readers[k].reader) != 0)
            len += (size_t)snprintf(out + len, READERS_MAX - len, "%s%s", len > 0 ? "," : "", readers[k].name);
}

/* Words of text from column `column` on; every further line is indented by 6. */
static void print_wrapped(FILE *f, size_t column, const char *text)
{
    struct str rest = str_of(text);
    bool first = true;

    while (rest.len > 0) {
        const struct str word = str_sub(rest, 0, str_find_byte(rest, ' '));

        if (!first && column + 1 + word.len > HELP_WIDTH) {
            fprintf(f, "\n      ");
            column = 6;
            first = true;
        }
        fprintf(f, "%s%.*s", first ? "" : " ", STR_ARG(word));
        column += word.len + (first ? 0 : 1);
        first = false;
        rest = str_sub(rest, word.len + 1, rest.len);
    }
    fputc('\n', f);
}

static void print_item(FILE *f, const struct item *i)
{
    /* What a secret is by default, and whether it has one, is nobody's business. */
    const bool shown = i->dflt[0] != '\0' && strcmp(i->type, "SECRET") != 0;
    char value[VALUE_MAX], by[READERS_MAX];

    value_of(i, value);
    readers_of(i->readers, by);
    fprintf(f, "  %-29s  %-14s  %-25s  %s\n      ", i->name, shown ? i->dflt : "-", value, by);
    print_wrapped(f, 6, i->meaning);
}

static void print_others(FILE *f)
{
    fprintf(f, "\nRefused: settings of the product that this build can't honour\n");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        fprintf(f, "  %-34s  %s\n", refused[i].name, refused[i].text);
    fprintf(f, "\nHanded on to HAProxy and agents, with nothing else of the environment\n");
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
        fprintf(f, "  %-13s  ", passed[i].name);
        print_wrapped(f, 17, passed[i].text);
    }
}

void settings_print(FILE *f)
{
    fprintf(f, "  %-29s  %-14s  %-25s  %s\n", "NAME", "DEFAULT", "VALUE", "READ BY");
    for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++)
        if (items[i].group != NULL)
            fprintf(f, "\n%s\n", items[i].group);
        else if ((items[i].readers & FROM_LAUNCHER) == 0)
            print_item(f, &items[i]);
    print_others(f);
}
