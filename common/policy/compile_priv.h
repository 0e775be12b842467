/* The parts of policy_compile: one file a part of the document, all working on one struct compile. */
#ifndef COMMON_POLICY_COMPILE_PRIV_H
#define COMMON_POLICY_COMPILE_PRIV_H

#include "common/base/map.h"
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
};

/* Names are [A-Za-z0-9._-]{1,64}. Notes a fault at j otherwise. */
bool compile_check_name(const struct jx *j, struct str name);
/* Members outside both lists are unknown, those of unsupported are faults of their own. */
void compile_only(const struct jx *j, const char *const *names, const char *const *unsupported);
/* Notes a fault when j is absent or no object. */
bool compile_need_object(const struct jx *j);
void compile_no_memory(const struct jx *j);

/* Member iteration in document order: start with *iter NULL. j must be an object. */
bool compile_next_member(const struct jx *j, void **iter, struct jx *member);

/* "responses" of global: the templates. */
void compile_templates(struct compile *c, const struct jx *responses);
/* "responses" of a rule or of the defaults: kind -> name of a template with that kind's status. Absent ones leave out[kind]. */
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
/* False when the rule does not belong into the policy: disabled, or its expression is faulty. The rest is to be checked anyway. */
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
