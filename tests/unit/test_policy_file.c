/* The policy feed: a policy that finds no memory for what is kept of its clients is refused, and the one in force stays as it is. */
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <unistd.h>

#include "spoa/live/policy_file.h"
#include "tests/unit/policy_cases.h"
#include "tests/unit/refuse_memory.h"

struct rig {
    char path[64];
    struct policy_file file;
    struct lease_slot slot, *slots[1];
    size_t n_published;
    bool refuses;         /* the next guard's first request for memory */
    bool refuses_publish; /* the first one after the next guard is there */
};

static bool before(void *ctx, const struct policy *policy, struct guard **guard, struct err *e)
{
    struct rig *r = ctx;
    if (r->refuses)
        refuse_memory(0);
    const bool ok = guard_new(guard, policy, lease_newest_guard(&r->file.source), e);
    if (r->refuses)
        CU_ASSERT(refuse_memory_end());
    r->refuses = false;
    if (r->refuses_publish)
        refuse_memory(0);
    return ok;
}

static void published(void *ctx)
{
    struct rig *r = ctx;
    r->n_published++;
    CU_ASSERT(lease_refresh(&r->slot));
}

static void rig_write(const struct rig *r, json_int_t version, json_int_t limit)
{
    json_t *row = json_pack("{s:s, s:{s:I, s:{s:I, s:s}}}", "base", "minimal", "set", "/version", version, "/global/backstop", "limit", limit, "period", "1h"),
           *document = policy_case_document(row);
    CU_ASSERT_FATAL(json_dump_file(document, r->path, 0) == 0);
    json_decref(document);
    json_decref(row);
}

static void rig_begin(struct rig *r)
{
    struct err e;
    err_clear(&e);
    memset(r, 0, sizeof *r);
    snprintf(r->path, sizeof r->path, "/tmp/edge-policy-XXXXXX");
    const int fd = mkstemp(r->path);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    lease_slot_init(&r->slot);
    r->slots[0] = &r->slot;
    CU_ASSERT_FATAL(policy_file_init(&r->file, r->path, &policy_options_any, r->slots, 1, before, published, r, &e));
}

static void rig_end(struct rig *r)
{
    lease_slot_release(&r->slot);
    policy_file_release(&r->file);
    unlink(r->path);
}

static void a_policy_without_memory_for_its_guard_is_refused(void)
{
    static struct rig r;
    char trouble[POLICY_TROUBLE_MAX];
    rig_begin(&r);
    rig_write(&r, 1, 10);
    CU_ASSERT(policy_file_load(&r.file));
    const struct guard *in_force = lease_newest_guard(&r.file.source);

    rig_write(&r, 2, 20);
    r.refuses = true;
    CU_ASSERT(!policy_file_load(&r.file));
    CU_ASSERT_PTR_EQUAL(lease_newest_guard(&r.file.source), in_force);
    CU_ASSERT(atomic_load(&r.file.version) == 1 && atomic_load(&r.file.n_refused) == 1 && atomic_load(&r.file.n_in_memory) == 1);
    CU_ASSERT(r.n_published == 1 && r.slot.current->guard == in_force && r.slot.current->policy->version == 1);
    policy_file_trouble(&r.file, trouble);
    CU_ASSERT_STRING_EQUAL(trouble, "fault 1 of 1: no memory for what is kept of clients");

    CU_ASSERT(policy_file_load(&r.file));
    policy_file_trouble(&r.file, trouble);
    CU_ASSERT(trouble[0] == '\0' && atomic_load(&r.file.version) == 2 && r.slot.current->policy->version == 2);
    rig_end(&r);
}

/* The new guard shares the backstop of the one in force, so giving it back must leave that one its own. */
static void a_policy_without_memory_to_publish_it_is_refused(void)
{
    static const struct addr client = {{0}};
    static struct rig r;
    struct rate_verdict v;
    rig_begin(&r);
    rig_write(&r, 1, 1);
    CU_ASSERT(policy_file_load(&r.file));
    const struct guard *in_force = lease_newest_guard(&r.file.source);

    rig_write(&r, 2, 1);
    r.refuses_publish = true;
    CU_ASSERT(!policy_file_load(&r.file));
    CU_ASSERT(refuse_memory_end());
    CU_ASSERT_PTR_EQUAL(lease_newest_guard(&r.file.source), in_force);
    CU_ASSERT(r.n_published == 1 && r.slot.current->policy->version == 1 && atomic_load(&r.file.n_in_memory) == 1);
    CU_ASSERT_EQUAL(backstop_check(in_force->backstop, &client, 1, &v), RATE_COUNTED);

    r.refuses_publish = false;
    CU_ASSERT(policy_file_load(&r.file));
    CU_ASSERT_EQUAL(r.slot.current->policy->version, 2);
    rig_end(&r);
}

static void what_is_kept_of_clients_goes_on_from_file_to_file(void)
{
    static struct rig r;
    rig_begin(&r);
    rig_write(&r, 1, 10);
    CU_ASSERT(policy_file_load(&r.file));
    const struct backstop *first = r.slot.current->guard->backstop;
    rig_write(&r, 2, 10);
    CU_ASSERT(policy_file_load(&r.file));
    CU_ASSERT(first != NULL && r.slot.current->guard->backstop == first);
    CU_ASSERT_EQUAL(atomic_load(&r.file.version), 2);
    rig_end(&r);
}

void test_policy_file_register(void)
{
    CU_pSuite s = CU_add_suite("policy_file", NULL, NULL);
    CU_add_test(s, "a policy without memory for its guard is refused, and the one in force stays", a_policy_without_memory_for_its_guard_is_refused);
    CU_add_test(s, "a policy without memory to publish it is refused, and the one in force stays", a_policy_without_memory_to_publish_it_is_refused);
    CU_add_test(s, "what is kept of clients goes on from file to file", what_is_kept_of_clients_goes_on_from_file_to_file);
}
