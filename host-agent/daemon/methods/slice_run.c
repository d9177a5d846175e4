/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/methods/slice_run.h"

#include "lib/bus.h"
#include "host-agent/daemon/containers/transport.h"
#include "host-agent/daemon/host/audit.h"
#include "host-agent/daemon/host/call.h"
#include "host-agent/daemon/methods/lists.h"
#include "host-agent/daemon/methods/vgpu_call.h"
#include "host-agent/daemon/slices/placing.h"
#include "host-agent/daemon/sync/door.h"
#include "host-agent/store/tables.h"

/* ClaimSlice, ReleaseSlice: a container begins and ends to use a slice. */

#define SWEEP_SECONDS 60

/* A slice that is being given back. */
typedef struct {
    Vgpus *vgpus;
    char *uuid;
} GivenBack;

static gboolean sweep_again(void *data)
{
    Vgpus *vgpus = data;

    slice_sweep(vgpus);
    return vgpus->sweep ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

static void given_back(const GError *error, void *data)
{
    GivenBack *back = data;
    Vgpus *vgpus = back->vgpus;
    g_autoptr(GError) failed = NULL;

    /* On a full disk the claim's row is still there as well. */
    if (error && !slice_table_set_unreturned(host_db(vgpus->host), back->uuid, &failed))
        g_message("slice %s: %s", back->uuid, failed->message);
    if (!error) {
        g_hash_table_remove(vgpus->unreturned, back->uuid);
    } else if (g_hash_table_add(vgpus->unreturned, g_strdup(back->uuid))) {
        g_warning("cannot remove slice %s, whose container has ended: %s; vgpud tries again each "
                  "minute, and \"vgpuctl slice remove %s\" at once",
                  back->uuid, error->message, back->uuid);
        if (!vgpus->sweep)
            vgpus->sweep = g_timeout_add_seconds(SWEEP_SECONDS, sweep_again, vgpus);
    }
    g_free(back->uuid);
    g_free(back);
}

/* After the operation on it, if there is one. */
static void give_back(Vgpus *vgpus, const char *uuid, const char *source)
{
    GivenBack *back = g_new0(GivenBack, 1);
    OperationRequest request = {.kind = &removal_kind,
                                .objects = (const char *[]){uuid, NULL},
                                .source = source,
                                .waits = TRUE,
                                .background = TRUE,
                                .done = given_back,
                                .data = back};
    g_autoptr(GError) error = NULL;

    back->vgpus = vgpus;
    back->uuid = g_strdup(uuid);
    if (!operations_start(vgpus->life->operations, &request, &error))
        given_back(error, back);
}

/* Nobody uses it again meanwhile: then its end removes it. */
static gboolean is_to_be_returned(const Vgpus *vgpus, const char *uuid)
{
    const Slice *slice = slices_find(vgpus->slices, uuid);

    return slice && slice->ephemeral && !claims_container(vgpus->claims, uuid);
}

void slice_sweep(Vgpus *vgpus)
{
    g_autoptr(GPtrArray) uuids = g_hash_table_get_keys_as_ptr_array(vgpus->unreturned);

    for (guint i = 0; i < uuids->len; i++) {
        g_autofree char *uuid = g_strdup(g_ptr_array_index(uuids, i));

        if (!is_to_be_returned(vgpus, uuid))
            g_hash_table_remove(vgpus->unreturned, uuid);
        else if (!slices_find(vgpus->slices, uuid)->leaving)
            give_back(vgpus, uuid, AUDIT_BY_RECOVERY);
    }
    if (!g_hash_table_size(vgpus->unreturned))
        g_clear_handle_id(&vgpus->sweep, g_source_remove);
}

void slice_sweep_start(Vgpus *vgpus)
{
    g_auto(GStrv) uuids = slice_table_unreturned(host_db(vgpus->host));

    for (guint i = 0; uuids[i]; i++)
        g_hash_table_add(vgpus->unreturned, g_strdup(uuids[i]));
    if (uuids[0])
        vgpus->sweep = g_timeout_add_seconds(SWEEP_SECONDS, sweep_again, vgpus);
    slice_sweep(vgpus);
}

static const char *ended_by(const Claims *claims, const char *uuid)
{
    guint32 user;

    if (claims_are_past(claims, uuid))
        return AUDIT_BY_RECOVERY;
    return claims_program_user(claims, uuid, &user) ? AUDIT_BY_SYSTEMD : AUDIT_BY_CONTAINER;
}

void slice_claim_end(Vgpus *vgpus, const char *uuid, const char *container)
{
    const Slice *slice = slices_find(vgpus->slices, uuid);
    const char *source = ended_by(vgpus->claims, uuid);
    g_autofree char *before = audit_state_of(AUDIT_SLICE, uuid);

    if (slice && slice->ephemeral && !slice->leaving)
        give_back(vgpus, uuid, source);
    if (container)
        claims_end(vgpus->claims, uuid, container);
    else
        claims_forget(vgpus->claims, uuid);
    /* If it was removed, the operation is in the audit. */
    if (slices_find(vgpus->slices, uuid))
        audit_write_change(source, AUDIT_DO_RELEASE, AUDIT_SLICE, uuid, before, NULL);
}

static gboolean is_running(const Slice *slice, GError **error)
{
    if (slice->suspended)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE,
                    "slice %s is suspended; resume it first (\"vgpuctl slice resume %s\")",
                    slice->uuid, slice->uuid);
    return !slice->suspended;
}

static void claim_slice(GDBusMethodInvocation *invocation, const Caller *caller, Vgpus *vgpus,
                        const guint32 *user)
{
    const char *name;
    const char *container;
    guint pid;
    g_autoptr(GError) error = NULL;
    const Slice *slice;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s&su)", &name, &container,
                  &pid);
    slice = vgpu_call_container_slice(vgpus, name, caller, &error);
    if (!slice || !is_running(slice, &error) ||
        !placing_admit(vgpus->host, vgpus->slices, vgpus->tenants, ADMISSION_CLAIM, slice, slice,
                       &error) ||
        !claims_take(vgpus->claims, slice, container, pid, user, &error)) {
        call_fail(invocation, error);
        return;
    }
    g_message("container %s of %s uses slice %s", container, caller->user, slice->uuid);
    call_answer(invocation, NULL);
}

void slice_claim(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    claim_slice(invocation, caller, data, NULL);
}

void slice_claim_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    claim_slice(invocation, caller, data, &caller->uid);
}

/* A slice that is gone, or used by another by now, is already released. */
static void release_slice(GDBusMethodInvocation *invocation, const Caller *caller, Vgpus *vgpus,
                          const guint32 *user)
{
    const char *name;
    const char *container;
    g_autoptr(GError) error = NULL;
    const Slice *slice;

    g_variant_get(g_dbus_method_invocation_get_parameters(invocation), "(&s&s)", &name, &container);
    slice = tenants_find_slice(vgpus->tenants, name, caller->user);
    if (slice && claims_is_of(vgpus->claims, slice->uuid, container)) {
        g_autofree char *uuid = g_strdup(slice->uuid);

        if (user && !claims_may_release(vgpus->claims, uuid, container, *user, &error)) {
            call_fail(invocation, error);
            return;
        }
        slice_claim_end(vgpus, uuid, container);
    }
    call_answer(invocation, NULL);
}

void slice_release(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    release_slice(invocation, caller, data, NULL);
}

/* A member of the slice's tenant: of a container that has ended, or is its own. */
void slice_release_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    release_slice(invocation, caller, data, &caller->uid);
}

/* RunSlice: a program of the host gets its own slice, which is removed when the program ends. */

/**
 * Run - a call while the bus is asked for its process
 * @member: the caller may request what a member of its tenant may
 */
typedef struct {
    Vgpus *vgpus;
    GDBusMethodInvocation *invocation;
    guint32 uid;
    char *user;
    gboolean member;
} Run;

static void run_free(Run *run)
{
    g_free(run->user);
    g_free(run);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Run, run_free)

static Request *read_request(GVariant *asked, GError **error)
{
    g_auto(GVariantDict) dict = G_VARIANT_DICT_INIT(asked);
    static const char *const not_here[] = {"Door",  "Name", "Ephemeral", "DryRun",
                                           "Owner", "Part", "Uid",       "Pool"};
    g_autoptr(GVariant) whole = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(not_here); i++) {
        if (!g_variant_dict_contains(&dict, not_here[i]))
            continue;
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "RunSlice has no %s: a program's slice has door native and is removed with "
                    "the program",
                    not_here[i]);
        return NULL;
    }
    g_variant_dict_insert(&dict, "Door", "s", slice_transport_name(SLICE_TRANSPORT_NATIVE));
    g_variant_dict_insert(&dict, "Ephemeral", "b", TRUE);
    whole = g_variant_ref_sink(g_variant_dict_end(&dict));
    return request_parse(whole, error);
}

/* Without the layer the program could use all of the GPU. */
static gboolean check_layer(HostRoot *root, GError **error)
{
    g_autoptr(CdiLayer) layer = cdi_layer_find(root);

    if (layer)
        return TRUE;
    g_set_error(
        error, AGENT_ERROR, AGENT_ERROR_FAILED,
        "the governor's Vulkan layer is not installed, so the program's limits would not be "
        "enforced; install the package vgpu-governor");
    return FALSE;
}

/* One slice, placed; not stored. */
static GPtrArray *place_slice(const Run *run, const Request *request, GError **error)
{
    const Vgpus *vgpus = run->vgpus;
    g_autoptr(GPtrArray) slices = placing_find(vgpus->host, vgpus->offers, vgpus->slices,
                                               vgpus->tenants, request, NULL, error);

    if (!slices ||
        (run->member &&
         !vgpu_call_is_entitled(vgpus, run->user, g_ptr_array_index(slices, 0), NULL, error)))
        return NULL;
    return g_steal_pointer(&slices);
}

/* NULL: the program has no CUDA on that GPU. */
static CudaDoor *cuda_of(HostRoot *root, const char *gpu)
{
    g_auto(GStrv) nodes = cuda_door_nodes(root, gpu);

    return nodes[0] ? cuda_door_find(root) : NULL;
}

/* The driver may have changed since the last program. */
static gboolean link_driver(HostRoot *root, const char *gpu, GError **error)
{
    g_autoptr(CudaDoor) cuda = cuda_of(root, gpu);

    return !cuda || cuda_door_link(root, cuda, error);
}

/*
 * The claim goes first: it ends with its process even without a slice, while a slice without a
 * claim would stay if vgpud were killed in between.
 */
static gboolean store_claimed(const Run *run, const GPtrArray *slices, const char *program,
                              guint pid, GError **error)
{
    Vgpus *vgpus = run->vgpus;
    const Slice *slice = g_ptr_array_index(slices, 0);

    if (!claims_take_program(vgpus->claims, slice, program, pid, run->uid, error))
        return FALSE;
    if (slices_put_all(vgpus->slices, slices, error))
        return TRUE;
    claims_forget(vgpus->claims, slice->uuid);
    return FALSE;
}

/* All else that a program needs to use a stored slice. */
static gboolean give_access(const Vgpus *vgpus, const Slice *slice, GError **error)
{
    HostRoot *root = host_root(vgpus->host);

    return slice_dirs_link(root, slice->uuid, slice->gpu, error) &&
           link_driver(root, slice->gpu, error);
}

#define PROGRAM_MAX 128

/* It is a user's text, in root's events and journal. */
static gboolean check_program(const char *program, GError **error)
{
    if (slice_text_is_printable(program) && strlen(program) <= PROGRAM_MAX)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                "the program's name can't have control characters or more than %d bytes",
                PROGRAM_MAX);
    return FALSE;
}

static const Slice *make_slice(const Run *run, const Request *request, const char *program,
                               guint pid, GError **error)
{
    Vgpus *vgpus = run->vgpus;
    g_autoptr(GPtrArray) slices = place_slice(run, request, error);
    const char *uuid = request->uuids[0];
    const Slice *slice;

    if (!slices || !store_claimed(run, slices, program, pid, error))
        return NULL;
    call_creates(run->invocation, uuid);
    slice = slices_find(vgpus->slices, uuid);
    host_event(vgpus->host, "slice-created", slice->gpu, uuid,
               "slice %s of GPU %s was made for program %s of %s", uuid, slice->gpu, program,
               run->user);
    if (give_access(vgpus, slice, error))
        return slices_find(vgpus->slices, uuid);
    slice_claim_end(vgpus, uuid, NULL);
    return NULL;
}

/* As in CDI for containers, but without mounts: the loader is told where the CUDA door is. */
static GVariant *environment_of(HostRoot *root, const Slice *slice)
{
    g_autofree char *slices = slice_dirs_of_program(root, slice->uuid);
    g_autoptr(CudaDoor) cuda = cuda_of(root, slice->gpu);
    GVariantBuilder builder;

    g_variant_builder_init(&builder, G_VARIANT_TYPE("a{ss}"));
    g_variant_builder_add(&builder, "{ss}", "VGPU_GOVERNOR", "1");
    g_variant_builder_add(&builder, "{ss}", "VGPU_GOVERNOR_REQUIRED", "1");
    g_variant_builder_add(&builder, "{ss}", "VGPU_GOVERNOR_SLICES", slices);
    if (cuda) {
        g_autofree char *libraries = cuda_door_libraries(cuda);

        g_variant_builder_add(&builder, "{ss}", "LD_LIBRARY_PATH", libraries);
        /* Julia's CUDA brings a driver of its own otherwise, past the door. */
        g_variant_builder_add(&builder, "{ss}", "JULIA_CUDA_USE_COMPAT", "false");
    }
    return g_variant_builder_end(&builder);
}

static void answer_run(const Run *run, const Slice *slice)
{
    const Vgpus *vgpus = run->vgpus;
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    g_autoptr(GVariant) described = NULL;
    g_autoptr(GVariant) first = NULL;

    g_ptr_array_add(list, (void *)slice);
    described = g_variant_ref_sink(list_slices(list));
    first = g_variant_get_child_value(described, 0);
    call_answer(run->invocation, g_variant_new("(@a{sv}@a{ss})", first,
                                               environment_of(host_root(vgpus->host), slice)));
}

static void run_as(const Run *run, guint pid)
{
    g_autoptr(GVariant) asked = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(Request) request = NULL;
    const Slice *slice = NULL;
    const char *program;

    /* The previous program's slice is free, whichever event the kernel has reported first. */
    claims_look(run->vgpus->claims);
    g_variant_get(g_dbus_method_invocation_get_parameters(run->invocation), "(@a{sv}&s)", &asked,
                  &program);
    request = read_request(asked, &error);
    if (request && check_program(program, &error) &&
        check_layer(host_root(run->vgpus->host), &error))
        slice = make_slice(run, request, program, pid, &error);
    if (slice)
        answer_run(run, slice);
    else
        call_fail(run->invocation, error);
}

static void got_pid(GObject *bus, GAsyncResult *result, void *data)
{
    g_autoptr(Run) run = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GVariant) answered =
        g_dbus_connection_call_finish(G_DBUS_CONNECTION(bus), result, &error);
    guint pid;

    if (!answered) {
        call_fail(run->invocation, error);
        return;
    }
    g_variant_get(answered, "(u)", &pid);
    run_as(run, pid);
}

/* The bus says which process it is: a claim ends with its process, and with another's it would not.
 */
static void ask_pid(GDBusMethodInvocation *invocation, const Caller *caller, Vgpus *vgpus,
                    gboolean member)
{
    Run *run = g_new0(Run, 1);

    run->vgpus = vgpus;
    run->invocation = invocation;
    run->uid = caller->uid;
    run->user = g_strdup(caller->user);
    run->member = member;
    g_dbus_connection_call(g_dbus_method_invocation_get_connection(invocation),
                           "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                           "GetConnectionUnixProcessID",
                           g_variant_new("(s)", g_dbus_method_invocation_get_sender(invocation)),
                           G_VARIANT_TYPE("(u)"), G_DBUS_CALL_FLAGS_NONE, -1, NULL, got_pid, run);
}

void slice_run(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    ask_pid(invocation, caller, data, FALSE);
}

void slice_run_own(GDBusMethodInvocation *invocation, const Caller *caller, void *data)
{
    ask_pid(invocation, caller, data, TRUE);
}
