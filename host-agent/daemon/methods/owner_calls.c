/* SPDX-License-Identifier: MIT */
/* ReleaseOwner, ListOwners: the end of what an engine has made for a job, and whose jobs there are.
 */
#include <string.h>

#include "lib/bus.h"
#include "host-agent/daemon/host/audit.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/model/request.h"

/* Keys of what a job has used, besides Slices. */
static const char *const totals[] = {"GpuTime", "Waited", "Throttled", "PeakVram"};

/**
 * Release - a call of ReleaseOwner
 * @left: removals that have not ended, and one for the call itself
 * @error: the first failure; NULL: none
 * @dry_run: removes nothing
 */
typedef struct {
    Vgpus *vgpus;
    GDBusMethodInvocation *invocation;
    char *owner;
    char *user;
    guint32 uid;
    guint left;
    guint removed;
    GError *error;
    gboolean dry_run;
} Release;

static void release_free(Release *release)
{
    g_free(release->owner);
    g_free(release->user);
    g_free(release);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Release, release_free)

/* The job ends, whether or not its use is known. */
static GVariant *unknown_totals(const Release *release)
{
    GVariantDict dict;

    g_variant_dict_init(&dict, NULL);
    g_variant_dict_insert(&dict, "Slices", "u", release->removed);
    for (guint i = 0; i < G_N_ELEMENTS(totals); i++)
        g_variant_dict_insert(&dict, totals[i], "t", (guint64)0);
    return g_variant_new("(@a{sv})", g_variant_dict_end(&dict));
}

static void answer_release(GVariant *known, const GError *error, void *data)
{
    g_autoptr(Release) release = data;

    if (error)
        g_warning("what %s has used is not known: %s", release->owner, error->message);
    call_answer(release->invocation, known ? known : unknown_totals(release));
}

static void end_release(Release *release)
{
    if (release->error) {
        call_take_error(release->invocation, release->error);
        release_free(release);
        return;
    }
    if (release->removed)
        host_event(release->vgpus->host, "owner-released", NULL, NULL,
                   "%u slices of %s were removed by %s", release->removed, release->owner,
                   release->user);
    meter_ask(release->vgpus->life->meter, "GetOwner", g_variant_new("(s)", release->owner),
              answer_release, release);
}

static void left_one(Release *release)
{
    if (!--release->left)
        end_release(release);
}

/* @before: its state in the audit, which sees no object in the call. */
typedef struct {
    Release *release;
    char *uuid;
    char *before;
} Removal;

static void write_audit(const Removal *removal, const GError *error)
{
    g_autofree char *after = audit_state_of(AUDIT_SLICE, removal->uuid);

    if (audit_is_on() && !g_str_equal(removal->before, after))
        audit_write(&(AuditEntry){.who = removal->release->user,
                                  .uid = &removal->release->uid,
                                  .what = "ReleaseOwner",
                                  .object = removal->uuid,
                                  .before = removal->before,
                                  .after = after,
                                  .error = error});
}

static void slice_removed(const GError *error, void *data)
{
    Removal *removal = data;
    Release *release = removal->release;

    write_audit(removal, error);
    if (error && !release->error)
        release->error = g_error_copy(error);
    if (!error)
        release->removed++;
    g_free(removal->uuid);
    g_free(removal->before);
    g_free(removal);
    left_one(release);
}

static Removal *removal_new(Release *release, const char *uuid)
{
    Removal *removal = g_new0(Removal, 1);

    removal->release = release;
    removal->uuid = g_strdup(uuid);
    removal->before = audit_state_of(AUDIT_SLICE, uuid);
    release->left++;
    return removal;
}

static GStrv slices_of(const Vgpus *vgpus, const char *owner)
{
    const GPtrArray *slices = slices_all(vgpus->slices);
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();

    for (guint i = 0; i < slices->len; i++) {
        const Slice *slice = g_ptr_array_index(slices, i);

        if (g_str_equal(slice->owner, owner))
            g_strv_builder_add(uuids, slice->uuid);
    }
    return g_strv_builder_end(uuids);
}

/* A removal comes after the operation that works on the slice. */
static void release_all(Release *release, const char *const *uuids)
{
    Operations *operations = release->vgpus->life->operations;

    release->left = 1;
    for (guint i = 0; uuids[i]; i++) {
        const OperationRequest request = {.kind = &removal_kind,
                                          .objects = (const char *[]){uuids[i], NULL},
                                          .caller = release->user,
                                          .waits = TRUE,
                                          .done = slice_removed,
                                          .data = removal_new(release, uuids[i])};
        g_autoptr(GError) error = NULL;

        if (!operations_start(operations, &request, &error))
            slice_removed(error, request.data);
    }
    left_one(release);
}

/* Or not: without a meter the slices go as well. */
static void use_sampled(GVariant *nothing, const GError *error, void *data)
{
    Release *release = data;
    g_auto(GStrv) uuids = slices_of(release->vgpus, release->owner);

    (void)nothing;
    (void)error;
    if (release->dry_run)
        end_release(release);
    else
        release_all(release, (const char *const *)uuids);
}

static gboolean read_arguments(GDBusMethodInvocation *invocation, const char **owner,
                               gboolean *dry_run, GError **error)
{
    const DictKey keys[] = {{"DryRun", 'b', dry_run, NULL, 0, 0}};
    g_autoptr(GVariant) options = NULL;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s@a{sv})", owner,
                  &options);
    if (!slice_owner_valid(*owner)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID, "\"%s\" cannot be an owner", *owner);
        return FALSE;
    }
    return dict_read(options, keys, G_N_ELEMENTS(keys), error);
}

void owner_release(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    Vgpus *vgpus = data;
    g_autoptr(GError) error = NULL;
    gboolean dry_run = FALSE;
    const char *owner;
    Release *release;

    if (!read_arguments(invocation, &owner, &dry_run, &error)) {
        call_fail(invocation, error);
        return;
    }
    release = g_new0(Release, 1);
    release->vgpus = vgpus;
    release->invocation = invocation;
    release->owner = g_strdup(owner);
    release->user = g_strdup(caller->user);
    release->uid = caller->uid;
    release->dry_run = dry_run;
    /* While the slices exist: the arbiter forgets them with their files. */
    meter_ask(vgpus->life->meter, "SampleOwners", g_variant_new("()"), use_sampled, release);
}

static int by_owner(const void *a, const void *b)
{
    const Slice *one = *(const Slice *const *)a;
    const Slice *two = *(const Slice *const *)b;
    int order = strcmp(one->owner, two->owner);

    return order ? order : strcmp(one->part, two->part);
}

/* All slices with an owner, by owner and part. */
static GPtrArray *slices_owned(const Slices *slices)
{
    const GPtrArray *all = slices_all(slices);
    GPtrArray *some = g_ptr_array_new();

    for (guint i = 0; i < all->len; i++)
        if (*((const Slice *)g_ptr_array_index(all, i))->owner)
            g_ptr_array_add(some, all->pdata[i]);
    g_ptr_array_sort(some, by_owner);
    return some;
}

/* Of those slices, all of one owner. */
static GVariant *dict_of_owner(Slice *const *slices, guint count)
{
    GVariantBuilder uuids;
    GVariantDict dict;
    gint64 since = slices[0]->since;

    g_variant_builder_init(&uuids, G_VARIANT_TYPE_STRING_ARRAY);
    g_variant_dict_init(&dict, NULL);
    g_variant_dict_insert(&dict, "Owner", "s", slices[0]->owner);
    for (guint i = 0; i < count; i++) {
        g_variant_builder_add(&uuids, "s", slices[i]->uuid);
        since = MIN(since, slices[i]->since);
        if (slices[i]->uid != SLICE_NO_UID)
            g_variant_dict_insert(&dict, "Uid", "u", (guint)slices[i]->uid);
    }
    g_variant_dict_insert_value(&dict, "Slices", g_variant_builder_end(&uuids));
    g_variant_dict_insert(&dict, "Since", "x", since);
    return g_variant_dict_end(&dict);
}

void owner_list(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    const Vgpus *vgpus = data;
    g_autoptr(GPtrArray) slices = slices_owned(vgpus->slices);
    GVariantBuilder owners;

    (void)caller;
    g_variant_builder_init(&owners, G_VARIANT_TYPE("aa{sv}"));
    for (guint first = 0, next; first < slices->len; first = next) {
        const char *owner = ((const Slice *)slices->pdata[first])->owner;

        for (next = first + 1; next < slices->len; next++)
            if (!g_str_equal(((const Slice *)slices->pdata[next])->owner, owner))
                break;
        g_variant_builder_add_value(
            &owners, dict_of_owner((Slice *const *)&slices->pdata[first], next - first));
    }
    call_answer_value(invocation, g_variant_builder_end(&owners));
}
