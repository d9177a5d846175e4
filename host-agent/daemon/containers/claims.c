/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/containers/claims.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>

#include "lib/bus.h"
#include "lib/host_root.h"
#include "host-agent/daemon/containers/claim_process.h"
#include "host-agent/model/slice.h"
#include "host-agent/store/tables.h"

#define CLAIM_MAX_CONTAINER 255

/* Interval of the checks if the kernel cannot report the end. */
#define PERIOD_S 5

typedef struct {
    Claim *claim;
    ClaimWatch *watch;
} Entry;

struct Claims {
    Host *host;
    const Slices *slices;
    char *boot;
    GHashTable *by_uuid; /* UUID to GPtrArray of Entry: one, or several if it has an owner */
    GHashTable *members; /* since the last look: a GPU's address to its members; NULL: not known */
    guint timer;
    ClaimEndFunc ended;
    void *ended_data;
    SlicesFunc changed;
    void *changed_data;
};

/* Without a scope the children of a program that use the GPU are known to the arbiter alone. */
static gboolean goes_by_members(const Claim *claim)
{
    return claim->user != CLAIM_NO_USER && !*claim->cgroup && !claim->past;
}

/* Of all slices of @gpu; NULL: not known. An arbiter is asked once for each claims_look(). */
static GHashTable *members_on(const Claims *claims, const char *gpu)
{
    void *members;

    if (!g_hash_table_lookup_extended(claims->members, gpu, NULL, &members)) {
        g_autoptr(GHashTable) told = slice_members_new();

        members = arbiters_read_members(host_arbiters(claims->host), gpu, told) == ARBITER_ANSWERS
                      ? g_steal_pointer(&told)
                      : NULL;
        g_hash_table_insert(claims->members, g_strdup(gpu), members);
    }
    return members;
}

/* The processes of a program whose first one has ended. */
static ClaimState state_by_members(const Claims *claims, const Claim *claim)
{
    const Slice *slice = slices_find(claims->slices, claim->uuid);
    const Gpu *gpu = slice ? host_gpu(claims->host, slice->gpu) : NULL;
    const SliceMembers *members;
    GHashTable *all;

    if (!gpu || gpu->mode != GPU_MODE_SHARED)
        return CLAIM_STATE_ENDED;
    all = members_on(claims, slice->gpu);
    members = all ? g_hash_table_lookup(all, claim->uuid) : NULL;
    if (members && members->pids->len)
        return CLAIM_STATE_ALIVE;
    return all ? CLAIM_STATE_ENDED : CLAIM_STATE_UNKNOWN;
}

static ClaimState state_of(const Claims *claims, const Claim *claim)
{
    ClaimState state = claim_process_state(host_root(claims->host), claim);

    return state == CLAIM_STATE_ENDED && goes_by_members(claim) ? state_by_members(claims, claim)
                                                                : state;
}

/* It is not known to have ended. */
static gboolean is_alive(const Claims *claims, const Claim *claim)
{
    return state_of(claims, claim) != CLAIM_STATE_ENDED;
}

static void free_entry(void *data)
{
    Entry *entry = data;

    claim_watch_free(entry->watch);
    claim_free(entry->claim);
    g_free(entry);
}

/* The next one of the slice whose processes have not ended, from number @i on; NULL: none. */
static const Claim *next_alive(const Claims *claims, const char *uuid, guint *i)
{
    const GPtrArray *entries = g_hash_table_lookup(claims->by_uuid, uuid);

    while (entries && *i < entries->len) {
        const Claim *claim = ((const Entry *)g_ptr_array_index(entries, (*i)++))->claim;

        if (is_alive(claims, claim))
            return claim;
    }
    return NULL;
}

/* The container that uses it now, if there is only one. */
static const Claim *only_alive(const Claims *claims, const char *uuid)
{
    guint i = 0;
    const Claim *claim = next_alive(claims, uuid, &i);

    return claim && !next_alive(claims, uuid, &i) ? claim : NULL;
}

/* The last one to claim it. */
static const Claim *last_of(const Claims *claims, const char *uuid)
{
    const GPtrArray *entries = g_hash_table_lookup(claims->by_uuid, uuid);

    return entries ? ((const Entry *)g_ptr_array_index(entries, entries->len - 1))->claim : NULL;
}

/* @claims: of all slices. */
typedef gboolean (*EntryFunc)(const Claims *claims, const Entry *entry);

static gboolean any_is(const Claims *claims, EntryFunc func)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, claims->by_uuid);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const GPtrArray *entries = value;

        for (guint i = 0; i < entries->len; i++)
            if (func(claims, g_ptr_array_index(entries, i)))
                return TRUE;
    }
    return FALSE;
}

static gboolean look_again(void *data)
{
    claims_look(data);
    return G_SOURCE_CONTINUE;
}

static void look_now(void *data)
{
    claims_look(data);
}

/* Polls for an end that is not reported, while there is such a claim. */
static gboolean is_looked_for(const Claims *claims, const Entry *entry)
{
    return !claim_watch_is_complete(entry->watch) ||
           claim_process_state(host_root(claims->host), entry->claim) != CLAIM_STATE_ALIVE;
}

static void set_timer(Claims *claims)
{
    gboolean wanted = any_is(claims, is_looked_for);

    if (!wanted)
        g_clear_handle_id(&claims->timer, g_source_remove);
    else if (!claims->timer)
        claims->timer = g_timeout_add_seconds(PERIOD_S, look_again, claims);
}

/* Takes @claim. */
static void put_in(Claims *claims, Claim *claim)
{
    GPtrArray *entries = g_hash_table_lookup(claims->by_uuid, claim->uuid);
    Entry *entry = g_new0(Entry, 1);

    entry->claim = claim;
    entry->watch = claim_watch_new(host_root(claims->host), claim, look_now, claims);
    if (!entries) {
        entries = g_ptr_array_new_with_free_func(free_entry);
        g_hash_table_insert(claims->by_uuid, g_strdup(claim->uuid), entries);
    }
    g_ptr_array_add(entries, entry);
    set_timer(claims);
}

/* FALSE: there was no such claim. */
static gboolean take_out(Claims *claims, const char *uuid, const char *container)
{
    GPtrArray *entries = g_hash_table_lookup(claims->by_uuid, uuid);
    g_autoptr(GError) error = NULL;
    guint i = 0;

    while (
        entries && i < entries->len &&
        !g_str_equal(((const Entry *)g_ptr_array_index(entries, i))->claim->container, container))
        i++;
    if (!entries || i == entries->len)
        return FALSE;
    if (!claim_table_remove(host_db(claims->host), uuid, container, &error))
        g_warning("slice %s: %s", uuid, error->message);
    g_ptr_array_remove_index(entries, i);
    if (!entries->len)
        g_hash_table_remove(claims->by_uuid, uuid);
    set_timer(claims);
    return TRUE;
}

static char *boot_id(HostRoot *root)
{
    char *id = sysfs_read(root, "/proc/sys/kernel/random", "boot_id");

    return id ? id : g_strdup("");
}

static void members_free(void *members)
{
    g_clear_pointer(&members, g_hash_table_unref);
}

Claims *claims_new(Host *host, const Slices *slices, GError **error)
{
    Claims *claims = g_new0(Claims, 1);
    g_autoptr(GPtrArray) stored = NULL;

    claims->host = host;
    claims->slices = slices;
    claims->boot = boot_id(host_root(host));
    claims->by_uuid =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    claims->members = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, members_free);
    stored = claim_table_read(host_db(host), claims->boot, error);
    if (!stored) {
        claims_free(claims);
        return NULL;
    }
    g_ptr_array_set_free_func(stored, NULL);
    for (guint i = 0; i < stored->len; i++)
        put_in(claims, g_ptr_array_index(stored, i));
    return claims;
}

void claims_free(Claims *claims)
{
    g_clear_handle_id(&claims->timer, g_source_remove);
    g_hash_table_unref(claims->by_uuid);
    g_hash_table_unref(claims->members);
    g_free(claims->boot);
    g_free(claims);
}

void claims_watch(Claims *claims, ClaimEndFunc ended, void *data)
{
    claims->ended = ended;
    claims->ended_data = data;
}

void claims_watch_changes(Claims *claims, SlicesFunc func, void *data)
{
    claims->changed = func;
    claims->changed_data = data;
}

static void tell_change(const Claims *claims, const char *uuid)
{
    if (claims->changed)
        claims->changed(uuid, claims->changed_data);
}

const char *claims_container(const Claims *claims, const char *uuid)
{
    guint i = 0;
    const Claim *claim = next_alive(claims, uuid, &i);

    return claim ? claim->container : NULL;
}

char *claims_containers(const Claims *claims, const char *uuid)
{
    GString *text = g_string_new(NULL);
    const Claim *claim;
    guint i = 0;

    while ((claim = next_alive(claims, uuid, &i)))
        g_string_append_printf(text, "%s%s", text->len ? ", " : "", claim->container);
    return g_string_free(text, FALSE);
}

const char *claims_claimed_by(const Claims *claims, const char *uuid)
{
    const Claim *claim = last_of(claims, uuid);

    return claim ? claim->container : NULL;
}

gboolean claims_are_of_one(const Claims *claims, const char *uuid, const char *other)
{
    const Claim *last = last_of(claims, uuid);
    const Claim *one, *two;

    /* Processes are checked last: most slices belong to other containers. */
    if (!last || !claims_is_of(claims, other, last->container))
        return FALSE;
    one = only_alive(claims, uuid);
    two = only_alive(claims, other);
    return one && two && g_str_equal(one->container, two->container);
}

gboolean claims_is_of(const Claims *claims, const char *uuid, const char *container)
{
    const GPtrArray *entries = g_hash_table_lookup(claims->by_uuid, uuid);

    for (guint i = 0; entries && i < entries->len; i++)
        if (g_str_equal(((const Entry *)g_ptr_array_index(entries, i))->claim->container,
                        container))
            return TRUE;
    return FALSE;
}

gboolean claims_program_user(const Claims *claims, const char *uuid, guint32 *user)
{
    const Claim *claim = last_of(claims, uuid);

    if (!claim || claim->user == CLAIM_NO_USER)
        return FALSE;
    *user = (guint32)claim->user;
    return TRUE;
}

char *claims_user(const Claims *claims, GHashTable *members, const Slice *slice)
{
    const char *container = claims_container(claims, slice->uuid);
    const SliceMembers *of_slice;
    guint32 user;

    if (container)
        return g_strdup_printf(
            "%s %s", claims_program_user(claims, slice->uuid, &user) ? "program" : "container",
            container);
    /* Processes of a vGPU are its engine, which is no container. */
    if (slice_is_vgpu(slice))
        return NULL;
    if (!members)
        return g_strdup_printf("perhaps a program (vgpu-arbiter@%s does not answer now)",
                               slice->gpu);
    of_slice = g_hash_table_lookup(members, slice->uuid);
    if (!of_slice || !of_slice->pids->len)
        return NULL;
    /* Those of a guard are its own, and there are none while it has no client. */
    return slice->transport == SLICE_TRANSPORT_GUARDED
               ? g_strdup("a client of its guard")
               : g_strdup_printf("%u processes", of_slice->pids->len);
}

static gboolean refuse_use(GError **error, const Slice *slice, const char *format,
                           const char *other)
{
    g_autofree char *why = g_strdup_printf(format, other);

    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE, "cannot use slice %s of GPU %s: %s",
                slice->uuid, slice->gpu, why);
    return FALSE;
}

/*
 * The containers of a pod, or of a job's tasks: whoever made the slice has decided who gets it. A
 * VFIO group is opened once.
 */
static gboolean may_be_shared(const Slice *slice)
{
    return *slice->owner && !slice_is_vgpu(slice);
}

static gboolean check_container(const Claims *claims, const Slice *slice, const char *container,
                                GError **error)
{
    const char *holder = claims_container(claims, slice->uuid);

    if (!*container || strlen(container) > CLAIM_MAX_CONTAINER ||
        !g_utf8_validate(container, -1, NULL) || !slice_text_is_printable(container)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "the container's id must have 1 to %d characters, and no control characters",
                    CLAIM_MAX_CONTAINER);
        return FALSE;
    }
    if (holder && !g_str_equal(holder, container) && !may_be_shared(slice))
        return refuse_use(error, slice,
                          "container %s has it; end that first, or make another slice for this one",
                          holder);
    return TRUE;
}

/* The real user of a process; its directory in /proc is root's if it is not dumpable. */
static gboolean runs_as(HostRoot *root, guint pid, guint32 user)
{
    static const char key[] = "Uid:";
    g_autofree char *dir = g_strdup_printf("/proc/%u", pid);
    g_autofree char *text = sysfs_read(root, dir, "status");
    const char *line = text ? strstr(text, key) : NULL;

    return line && g_ascii_strtoull(line + strlen(key), NULL, 10) == user;
}

/*
 * Root of a rootless container may be any of the user's subordinate ids; the user made the
 * namespace.
 */
static gboolean is_in_namespace_of(HostRoot *root, guint pid, guint32 user)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/ns/user", pid);
    int fd = root_open(root, path, O_RDONLY, 0);
    uid_t owner;
    gboolean own = fd >= 0 && ioctl(fd, NS_GET_OWNER_UID, &owner) == 0 && owner == user;

    if (fd >= 0)
        close(fd);
    return own;
}

gboolean claims_may_release(const Claims *claims, const char *uuid, const char *container,
                            guint32 user, GError **error)
{
    HostRoot *root = host_root(claims->host);
    const GPtrArray *entries = g_hash_table_lookup(claims->by_uuid, uuid);

    for (guint i = 0; entries && i < entries->len; i++) {
        const Claim *claim = ((const Entry *)g_ptr_array_index(entries, i))->claim;

        if (!g_str_equal(claim->container, container) || !is_alive(claims, claim) ||
            claim->user == user || claim->member == user || runs_as(root, claim->pid, user) ||
            is_in_namespace_of(root, claim->pid, user))
            continue;
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_NOT_AUTHORIZED,
                    "container %s runs, and is another user's: end it, or let an administrator "
                    "take slice %s from it",
                    container, uuid);
        return FALSE;
    }
    return TRUE;
}

/* A claim ends with its process: with another process it would outlive its container. */
static gboolean check_process(const Claims *claims, const Claim *claim, const guint32 *user,
                              GError **error)
{
    HostRoot *root = host_root(claims->host);
    gboolean own =
        !user || runs_as(root, claim->pid, *user) || is_in_namespace_of(root, claim->pid, *user);

    /* The checked process is still the same one. */
    if (!claim->started || !is_alive(claims, claim))
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "container %s has no process %u on this host", claim->container, claim->pid);
    else if (!own)
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "process %u does not belong to user %u, so it cannot be container %s's; run "
                    "the container as that user, or with root's runtime",
                    claim->pid, *user, claim->container);
    else
        return TRUE;
    return FALSE;
}

static Claim *claim_new(const Claims *claims, const Slice *slice, char *container, guint pid)
{
    Claim *claim = g_new0(Claim, 1);

    claim->uuid = g_strdup(slice->uuid);
    claim->container = container;
    claim->pid = pid;
    claim->started = claim_process_started(host_root(claims->host), pid);
    claim->user = CLAIM_NO_USER;
    claim->member = CLAIM_NO_USER;
    claim->cgroup = g_strdup("");
    return claim;
}

/* Those whose end was not seen yet, and an earlier one of @container. */
static void drop_former(Claims *claims, const char *uuid, const char *container)
{
    const GPtrArray *entries;
    guint i = 0;

    while ((entries = g_hash_table_lookup(claims->by_uuid, uuid)) && i < entries->len) {
        const Claim *claim = ((const Entry *)g_ptr_array_index(entries, i))->claim;
        g_autofree char *former = g_strdup(claim->container);

        if (is_alive(claims, claim) && !g_str_equal(former, container))
            i++;
        else
            take_out(claims, uuid, former);
    }
}

/* Takes @claim, even on failure. */
static gboolean keep_claim(Claims *claims, Claim *claim, GError **error)
{
    g_autofree char *uuid = g_strdup(claim->uuid);

    drop_former(claims, uuid, claim->container);
    if (!claim_table_put(host_db(claims->host), claims->boot, claim, error)) {
        claim_free(claim);
        return FALSE;
    }
    put_in(claims, claim);
    tell_change(claims, uuid);
    return TRUE;
}

static gboolean is_of_user(const Claim *claim, guint32 user)
{
    return claim->user == user || claim->member == user;
}

static guint count_of_user(const Claims *claims, guint32 user)
{
    GHashTableIter iter;
    void *value;
    guint count = 0;

    g_hash_table_iter_init(&iter, claims->by_uuid);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const GPtrArray *entries = value;

        for (guint i = 0; i < entries->len; i++)
            count += is_of_user(((const Entry *)g_ptr_array_index(entries, i))->claim, user);
    }
    return count;
}

/* A user who takes all of vgpud's descriptors would stop it for all others. */
static gboolean check_count(const Claims *claims, const Claim *claim, guint32 user, GError **error)
{
    if (claims_is_of(claims, claim->uuid, claim->container) ||
        count_of_user(claims, user) < CLAIMS_MAX_OF_USER)
        return TRUE;
    g_set_error(error, AGENT_ERROR, AGENT_ERROR_QUOTA,
                "user %u has %d programs and containers that use slices, and may not have more; "
                "end one of them first",
                user, CLAIMS_MAX_OF_USER);
    return FALSE;
}

gboolean claims_take(Claims *claims, const Slice *slice, const char *container, guint pid,
                     const guint32 *user, GError **error)
{
    g_autoptr(Claim) claim = claim_new(claims, slice, g_strdup(container), pid);

    if (user)
        claim->member = *user;
    return check_container(claims, slice, container, error) &&
           check_process(claims, claim, user, error) &&
           (!user || (check_count(claims, claim, *user, error) &&
                      /* It would replace the claim of that name. */
                      claims_may_release(claims, slice->uuid, container, *user, error))) &&
           keep_claim(claims, g_steal_pointer(&claim), error);
}

gboolean claims_take_program(Claims *claims, const Slice *slice, const char *program, guint pid,
                             guint32 user, GError **error)
{
    g_autofree char *name = g_path_get_basename(program);
    g_autoptr(Claim) claim = claim_new(claims, slice, g_strdup_printf("%s[%u]", name, pid), pid);

    if (!check_container(claims, slice, claim->container, error) ||
        !check_process(claims, claim, &user, error) || !check_count(claims, claim, user, error))
        return FALSE;
    claim->user = user;
    g_free(claim->cgroup);
    claim->cgroup = claim_process_scope(host_root(claims->host), pid, slice->uuid);
    return keep_claim(claims, g_steal_pointer(&claim), error);
}

char *claims_cgroup(const Claims *claims, const char *uuid)
{
    const Claim *claim = only_alive(claims, uuid);
    g_autofree char *own = claim ? claim_process_own_cgroup(host_root(claims->host), claim) : NULL;

    return own ? g_build_filename("/sys/fs/cgroup", own, NULL) : NULL;
}

gboolean claims_are_past(const Claims *claims, const char *uuid)
{
    const Claim *claim = last_of(claims, uuid);

    return claim && claim->past;
}

void claims_end(Claims *claims, const char *uuid, const char *container)
{
    if (take_out(claims, uuid, container))
        tell_change(claims, uuid);
}

void claims_forget(Claims *claims, const char *uuid)
{
    const Claim *claim;
    gboolean changed = FALSE;

    while ((claim = last_of(claims, uuid))) {
        g_autofree char *container = g_strdup(claim->container);

        changed = take_out(claims, uuid, container);
    }
    if (changed)
        tell_change(claims, uuid);
}

static gboolean is_over(const Claims *claims, const Claim *claim)
{
    return !is_alive(claims, claim);
}

static gboolean is_past(const Claims *claims, const Claim *claim)
{
    (void)claims;
    return claim->past;
}

typedef gboolean (*ClaimFunc)(const Claims *claims, const Claim *claim);

/* UUID and container in turn. To be freed. */
static GStrv list_those(const Claims *claims, ClaimFunc func)
{
    g_autoptr(GStrvBuilder) those = g_strv_builder_new();
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, claims->by_uuid);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const GPtrArray *entries = value;

        for (guint i = 0; i < entries->len; i++) {
            const Claim *claim = ((const Entry *)g_ptr_array_index(entries, i))->claim;

            if (func(claims, claim))
                g_strv_builder_add_many(those, claim->uuid, claim->container, NULL);
        }
    }
    return g_strv_builder_end(those);
}

static void end_those(Claims *claims, ClaimFunc func)
{
    g_auto(GStrv) those = list_those(claims, func);

    for (guint i = 0; those[i]; i += 2) {
        if (claims->ended)
            claims->ended(those[i], those[i + 1], claims->ended_data);
        claims_end(claims, those[i], those[i + 1]);
    }
}

void claims_look(Claims *claims)
{
    g_hash_table_remove_all(claims->members);
    end_those(claims, is_over);
    set_timer(claims);
}

void claims_recover(Claims *claims)
{
    end_those(claims, is_past);
}
