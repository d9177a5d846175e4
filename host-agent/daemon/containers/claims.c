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
#include "host-agent/model/request.h"
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
    char *boot;
    GHashTable *by_uuid; /* UUID, which is the claim's own, to Entry */
    guint timer;
    void (*ended)(const char *uuid, void *data);
    void *ended_data;
    SlicesFunc changed;
    void *changed_data;
};

/* Without a scope the children of a program that use the GPU are known to the arbiter alone. */
static gboolean goes_by_members(const Claims *claims, const Claim *claim)
{
    return claim->user != CLAIM_NO_USER && !*claim->cgroup &&
           !claim_process_is_alive(host_root(claims->host), claim);
}

/* As the arbiter has said last: callers may have something of the counters, so none are read here.
 */
static gboolean has_members(const Claims *claims, const Claim *claim)
{
    const SliceUse *use = goes_by_members(claims, claim)
                              ? counters_use(host_counters(claims->host), claim->uuid)
                              : NULL;

    return use && use->members;
}

static gboolean is_alive(const Claims *claims, const Claim *claim)
{
    return claim_process_is_alive(host_root(claims->host), claim) || has_members(claims, claim);
}

static void free_entry(void *data)
{
    Entry *entry = data;

    claim_watch_free(entry->watch);
    claim_free(entry->claim);
    g_free(entry);
}

static const Claim *find(const Claims *claims, const char *uuid)
{
    const Entry *entry = g_hash_table_lookup(claims->by_uuid, uuid);

    return entry ? entry->claim : NULL;
}

static gboolean look(void *data)
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
           !claim_process_is_alive(host_root(claims->host), entry->claim);
}

static void set_timer(Claims *claims)
{
    gboolean wanted = FALSE;
    GHashTableIter iter;
    void *entry;

    g_hash_table_iter_init(&iter, claims->by_uuid);
    while (!wanted && g_hash_table_iter_next(&iter, NULL, &entry))
        wanted = is_looked_for(claims, entry);
    if (!wanted)
        g_clear_handle_id(&claims->timer, g_source_remove);
    else if (!claims->timer)
        claims->timer = g_timeout_add_seconds(PERIOD_S, look, claims);
}

/* Takes @claim. */
static void put_in(Claims *claims, Claim *claim)
{
    Entry *entry = g_new0(Entry, 1);

    entry->claim = claim;
    entry->watch = claim_watch_new(host_root(claims->host), claim, look_now, claims);
    g_hash_table_replace(claims->by_uuid, claim->uuid, entry);
    set_timer(claims);
}

static char *boot_id(HostRoot *root)
{
    char *id = sysfs_read(root, "/proc/sys/kernel/random", "boot_id");

    return id ? id : g_strdup("");
}

Claims *claims_new(Host *host, GError **error)
{
    Claims *claims = g_new0(Claims, 1);
    g_autoptr(GPtrArray) stored = NULL;

    claims->host = host;
    claims->boot = boot_id(host_root(host));
    claims->by_uuid = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_entry);
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
    g_free(claims->boot);
    g_free(claims);
}

void claims_watch(Claims *claims, void (*ended)(const char *uuid, void *data), void *data)
{
    claims->ended = ended;
    claims->ended_data = data;
}

void claims_watch_changes(Claims *claims, SlicesFunc func, void *data)
{
    claims->changed = func;
    claims->changed_data = data;
}

static void tell(const Claims *claims, const char *uuid)
{
    if (claims->changed)
        claims->changed(uuid, claims->changed_data);
}

const char *claims_container(const Claims *claims, const char *uuid)
{
    const Claim *claim = find(claims, uuid);

    return claim && is_alive(claims, claim) ? claim->container : NULL;
}

const char *claims_claimed_by(const Claims *claims, const char *uuid)
{
    const Claim *claim = find(claims, uuid);

    return claim ? claim->container : NULL;
}

/* One container uses both now. */
static gboolean claims_are_of_one(const Claims *claims, const char *uuid, const char *other)
{
    const Claim *one = find(claims, uuid);
    const Claim *two = find(claims, other);

    /* Processes are checked last: most slices belong to other containers. */
    return one && two && g_str_equal(one->container, two->container) && is_alive(claims, one) &&
           is_alive(claims, two);
}

gboolean claims_is_of(const Claims *claims, const char *uuid, const char *container)
{
    const Claim *claim = find(claims, uuid);

    return claim && g_str_equal(claim->container, container);
}

gboolean claims_program_user(const Claims *claims, const char *uuid, guint32 *user)
{
    const Claim *claim = find(claims, uuid);

    if (!claim || claim->user == CLAIM_NO_USER)
        return FALSE;
    *user = (guint32)claim->user;
    return TRUE;
}

char *claims_user(const Claims *claims, Counters *counters, const Slice *slice)
{
    const char *container = claims_container(claims, slice->uuid);
    const SliceUse *use;
    guint32 user;

    if (container)
        return g_strdup_printf(
            "%s %s", claims_program_user(claims, slice->uuid, &user) ? "program" : "container",
            container);
    /* Processes of a vGPU are its engine, which is no container; those of a guard are its own. */
    if (slice->transport != SLICE_TRANSPORT_NATIVE)
        return NULL;
    counters_read(counters);
    use = counters_use(counters, slice->uuid);
    return use && use->members ? g_strdup_printf("%u processes", use->members) : NULL;
}

static gboolean refuse(GError **error, const Slice *slice, const char *format, const char *other)
{
    g_autofree char *why = g_strdup_printf(format, other);

    g_set_error(error, AGENT_ERROR, AGENT_ERROR_IN_USE, "cannot use slice %s of GPU %s: %s",
                slice->uuid, slice->gpu, why);
    return FALSE;
}

static gboolean check(const Claims *claims, const Slice *slice, const char *container,
                      GError **error)
{
    const char *holder = claims_container(claims, slice->uuid);

    if (!*container || strlen(container) > CLAIM_MAX_CONTAINER ||
        !g_utf8_validate(container, -1, NULL) || !request_is_printable(container)) {
        g_set_error(error, AGENT_ERROR, AGENT_ERROR_INVALID,
                    "the container's id must have 1 to %d characters, and no control characters",
                    CLAIM_MAX_CONTAINER);
        return FALSE;
    }
    if (holder && !g_str_equal(holder, container))
        return refuse(error, slice,
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
    claim->cgroup = g_strdup("");
    return claim;
}

/* Takes @claim, even on failure. */
static gboolean keep(Claims *claims, Claim *claim, GError **error)
{
    g_autofree char *uuid = g_strdup(claim->uuid);

    if (!claim_table_put(host_db(claims->host), claims->boot, claim, error)) {
        claim_free(claim);
        return FALSE;
    }
    put_in(claims, claim);
    tell(claims, uuid);
    return TRUE;
}

gboolean claims_take(Claims *claims, const Slice *slice, const char *container, guint pid,
                     const guint32 *user, GError **error)
{
    g_autoptr(Claim) claim = claim_new(claims, slice, g_strdup(container), pid);

    return check(claims, slice, container, error) && check_process(claims, claim, user, error) &&
           keep(claims, g_steal_pointer(&claim), error);
}

gboolean claims_take_program(Claims *claims, const Slice *slice, const char *program, guint pid,
                             guint32 user, GError **error)
{
    g_autofree char *name = g_path_get_basename(program);
    g_autoptr(Claim) claim = claim_new(claims, slice, g_strdup_printf("%s[%u]", name, pid), pid);

    if (!check(claims, slice, claim->container, error) ||
        !check_process(claims, claim, &user, error))
        return FALSE;
    claim->user = user;
    g_free(claim->cgroup);
    claim->cgroup = claim_process_scope(host_root(claims->host), pid, slice->uuid);
    return keep(claims, g_steal_pointer(&claim), error);
}

char *claims_cgroup(const Claims *claims, const char *uuid)
{
    const Claim *claim = find(claims, uuid);
    g_autofree char *own = claim ? claim_process_own_cgroup(host_root(claims->host), claim) : NULL;

    return own ? g_build_filename("/sys/fs/cgroup", own, NULL) : NULL;
}

void claims_forget(Claims *claims, const char *uuid)
{
    g_autoptr(GError) error = NULL;

    if (!g_hash_table_remove(claims->by_uuid, uuid))
        return;
    if (!claim_table_remove(host_db(claims->host), uuid, &error))
        g_warning("slice %s: %s", uuid, error->message);
    set_timer(claims);
    tell(claims, uuid);
}

/* From the main loop only: what anybody has of the counters is not valid afterwards. */
static void read_members(const Claims *claims)
{
    gboolean wanted = FALSE;
    GHashTableIter iter;
    void *entry;

    g_hash_table_iter_init(&iter, claims->by_uuid);
    while (!wanted && g_hash_table_iter_next(&iter, NULL, &entry))
        wanted = goes_by_members(claims, ((Entry *)entry)->claim);
    if (wanted)
        counters_read(host_counters(claims->host));
}

void claims_look(Claims *claims)
{
    g_autoptr(GStrvBuilder) over = g_strv_builder_new();
    g_auto(GStrv) uuids = NULL;
    GHashTableIter iter;
    void *entry;

    read_members(claims);
    g_hash_table_iter_init(&iter, claims->by_uuid);
    while (g_hash_table_iter_next(&iter, NULL, &entry))
        if (!is_alive(claims, ((Entry *)entry)->claim))
            g_strv_builder_add(over, ((Entry *)entry)->claim->uuid);
    uuids = g_strv_builder_end(over);
    for (guint i = 0; uuids[i]; i++) {
        if (claims->ended)
            claims->ended(uuids[i], claims->ended_data);
        claims_forget(claims, uuids[i]);
    }
    set_timer(claims);
}

#define MOST_WEIGHT   10000u
#define MOST_PER_CENT 100u

/*
 * One container uses both with the transport that exposes the GPU itself, and both have one tenant:
 * a claim by another tenant's user changes nothing for the container.
 */
static gboolean are_together(const Claims *claims, const Slice *a, const Slice *b)
{
    return a->transport == SLICE_TRANSPORT_NATIVE && b->transport == SLICE_TRANSPORT_NATIVE &&
           g_str_equal(a->gpu, b->gpu) && g_str_equal(a->tenant, b->tenant) &&
           claims_are_of_one(claims, a->uuid, b->uuid);
}

const char *share_group_first(const Slices *slices, const Claims *claims, const Slice *slice)
{
    const GPtrArray *all = slices_all(slices);
    const char *first = slice->uuid;

    if (slice->transport != SLICE_TRANSPORT_NATIVE)
        return first;
    for (guint i = 0; i < all->len; i++) {
        const Slice *other = g_ptr_array_index(all, i);

        if (strcmp(other->uuid, first) < 0 && are_together(claims, slice, other))
            first = other->uuid;
    }
    return first;
}

/* 0 and 100 are no cap. */
static guint cap_of_both(const Slice *a, const Slice *b)
{
    return a->cap && b->cap ? MIN(a->cap + b->cap, MOST_PER_CENT) : MOST_PER_CENT;
}

/*
 * A second slice must not give more than either was promised: the lower priority applies to both.
 */
static void add(Slice *sum, const Slice *other)
{
    sum->vram += other->vram;
    sum->oversubscribe += other->oversubscribe;
    sum->weight = MIN(sum->weight + other->weight, MOST_WEIGHT);
    sum->cap = cap_of_both(sum, other);
    sum->compute = MIN(sum->compute + other->compute, MOST_PER_CENT);
    sum->priority = MIN(sum->priority, other->priority);
    sum->engines = engines_join(sum->engines, other->engines);
}

Slice *share_group_share(const Slices *slices, const Claims *claims, const Slice *slice)
{
    const GPtrArray *all = slices_all(slices);
    Slice *sum;

    if (share_group_first(slices, claims, slice) != slice->uuid)
        return NULL;
    sum = slice_copy(slice);
    for (guint i = 0; slice->transport == SLICE_TRANSPORT_NATIVE && i < all->len; i++) {
        const Slice *other = g_ptr_array_index(all, i);

        if (other != slice && are_together(claims, slice, other))
            add(sum, other);
    }
    return sum;
}
