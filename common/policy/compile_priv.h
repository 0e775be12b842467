/* The parts of policy_compile: one file a part of the document, all working on one struct compile. */
#ifndef COMMON_POLICY_COMPILE_PRIV_H
#define COMMON_POLICY_COMPILE_PRIV_H

#include "common/base/map.h"
#include "common/policy/members.h"
#include "common/policy/policy.h"

/* One compilation; its own memory (scratch) ends with it. */
struct compile {
    struct policy *policy;
    const struct policy_options *options;
    struct errlist *errors, *warnings;
    struct jx_doc doc;        /* strings go to the policy's arena */
    struct arena scratch;
    struct map templates;     /* name -> struct template; status 0 when it is faulty */
    struct map ids;           /* id of a rule of any phase -> its path as C string */
    struct map header_names;  /* name that header rules write -> size_t: its longest value */
    size_t header_add_bytes;  /* the longest additions that header rules can make together */
    bool uses_schema_4;       /* then `forbidden` must be mapped */
    bool in_force;            /* false while a rule is read that is switched off */
    struct map cors_policies; /* name -> struct cors_policy */
    bool has_locale;          /* global.locale is there, be it faulty */
    bool needs_default_accepted;
};

/* policy_only, and what the present members need is noted. j must be an object. */
void compile_members(struct compile *c, const struct jx *j, enum policy_object o);
/* jx_only with one name more, of a member that only schema 1 has, in a document of that schema. */
void compile_only_in_schema_1(const struct compile *c, const struct jx *j, const char *const *names, const char *gone);
/* The document uses something that this schema brought: for values, since compile_members sees to members. */
void compile_needs(struct compile *c, int64_t schema);
/* What stands at j is valid but this build does not enforce it: a fault when the policy is to be served, else a warning; nothing in a rule that is
 * switched off. what completes "this build does not enforce ...". */
void compile_unsupported(struct compile *c, const struct jx *j, const char *what);

/* Names are [A-Za-z0-9._-]{1,64}. Notes a fault at j otherwise. */
bool compile_check_name(const struct jx *j, struct str name);
/* Notes a fault when j is absent or no object. */
bool compile_need_object(const struct jx *j);
void compile_no_memory(const struct jx *j);

/* Member iteration in document order: start with *iter NULL. j must be an object. */
bool compile_next_member(const struct jx *j, void **iter, struct jx *member);

/* --- Lists of texts --- */

struct list_rules {
    size_t min, max;  /* entries; min is 0 or 1 */
    const char *what; /* an entry, for people */
    /* Holds an entry against its form and may change it to the one that is kept; false: faulty, and noted. */
    bool (*read)(struct compile *c, const struct jx *j, struct str *text);
};
/* Each entry once, in the document's order. Nothing when j is absent. True: all of it is right; *out has at most what is right. */
bool compile_list(struct compile *c, const struct jx *j, const struct list_rules *rules, struct str_list *out);
/* Absence is a fault. */
bool compile_need_list(struct compile *c, const struct jx *j, const struct list_rules *rules, struct str_list *out);
/* Makes a copy in lower case; false: no memory, noted. */
bool compile_lower(struct compile *c, const struct jx *j, struct str *text);
/* For list_rules: any header name, to lower case. */
bool compile_read_header_name(struct compile *c, const struct jx *j, struct str *name);

/* --- The document's parts. Each takes an absent value. --- */

/* A <config>: the envelope's and a bare one. */
void compile_config(struct compile *c, const struct jx *config);
/* The members of an envelope; what it wraps is compiled by the caller. */
void compile_envelope(struct compile *c, const struct jx *root);
/* The ranges of an envelope without faults, into the policy. */
void compile_verified_bots(struct compile *c, const struct jx *root);
void compile_global(struct compile *c, const struct jx *global);
void compile_cors_policies(struct compile *c, const struct jx *policies);
void compile_locale(struct compile *c, const struct jx *locale);
void compile_auth(struct compile *c, const struct jx *auth);
/* Once the config rules are read: whether auth names who is accepted where they do not. */
void compile_check_default_accepted(struct compile *c, const struct jx *auth);

/* Settings of a config rule. */
void compile_auth_setting(struct compile *c, const struct jx *auth, struct config_rule *out);
void compile_cors_choice(struct compile *c, const struct jx *j, struct config_rule *out);
void compile_locale_choice(struct compile *c, const struct jx *j, struct config_rule *out);
/* Settings that both defaults and rules have. False, and *out as it was, when j is absent or faulty. */
bool compile_body_limit(const struct jx *j, uint64_t *out);
bool compile_upstream_timeout(struct compile *c, const struct jx *j, uint64_t *out_ms);

/* "mode" and "names" of a filter; other members are the caller's to check. */
bool compile_forward(struct compile *c, const struct jx *filter, struct forward_filter *out);
/* An https URL as text; notes what is wrong with it. */
bool compile_https_url(const struct jx *j, struct str *out);

/* "responses" of global: the templates. */
void compile_templates(struct compile *c, const struct jx *responses);
/* "responses" of a rule or of the defaults: kind -> name of a template with that kind's status. Absent ones leave out[kind]. A choice for
 * `forbidden` needs schema 4. */
void compile_template_choice(struct compile *c, const struct jx *responses, const struct template *out[KIND_N]);
/* Faults for kinds that choice (read from responses) leaves open; `forbidden` becomes the built-in one where that may be. */
void compile_fill_defaults(struct compile *c, const struct jx *responses, const struct template *choice[KIND_N]);

/* What all rules have. */
struct rule_head {
    struct str id;
    const struct expr *x;
    size_t program;
};
/* The rule's place in its list, as far as it is at most POLICY_RULES_MAX long; a longer one is a fault. */
size_t compile_n_rules(const struct jx *rules);
/* False when the rule does not belong into the policy: disabled, or its expression is faulty. The rest is to be checked anyway, with in_force as
 * the rule says. */
bool compile_rule_head(struct compile *c, const struct jx *rule, enum expr_phase phase, struct expr_set *set, struct rule_head *out);

void compile_config_rules(struct compile *c, const struct jx *rules);
void compile_rate_rules(struct compile *c, const struct jx *rules);
void compile_header_rules(struct compile *c, const struct jx *rules);

/* A config rule as the warnings see it. */
struct config_note {
    const struct config_rule *rule;
    const struct expr *x;
    size_t index; /* in the document */
};
void compile_config_warnings(struct compile *c, const struct jx *rules, const struct config_note *notes, size_t n);

#endif
