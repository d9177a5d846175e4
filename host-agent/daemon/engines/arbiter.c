/* SPDX-License-Identifier: MIT */
#include "host-agent/daemon/engines/arbiter.h"

#include <errno.h>
#include <json-glib/json-glib.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "host-agent/model/slice.h"
#include "lib/host_root.h"

#define SUFFIX          ".conf"
#define UNGOVERNED      ".ungoverned"
#define WARM            ".warm"
#define PPM_PER_PERCENT 10000
#define NO_CAP          100
/* 0 would be no limit. */
#define NO_VRAM ((guint64)1)

char *shares_gpu_dir(const char *gpu)
{
    return g_build_filename(GOVERNOR_DIR, gpu, NULL);
}

char *shares_dir(const char *gpu)
{
    return g_build_filename(GOVERNOR_DIR, gpu, "slices", NULL);
}

static char *slice_path(const char *gpu, const char *uuid, const char *suffix)
{
    g_autofree char *dir = shares_dir(gpu);

    return g_strdup_printf("%s/%s%s", dir, uuid, suffix);
}

static gboolean put_text(HostRoot *root, const char *path, const char *text, GError **error)
{
    g_autofree char *before = root_read(root, path, NULL);

    return g_strcmp0(before, text) == 0 || root_write(root, path, text, 0644, error);
}

/* Of a slice whose memory moves. */
static char *resident_text(const Slice *slice)
{
    if (slice->suspended || !slice_lent(slice))
        return g_strdup("");
    return g_strdup_printf("resident=%" G_GUINT64_FORMAT "\n%s", slice_resident(slice),
                           slice->class == SLICE_BEST_EFFORT ? "best-effort=true\n" : "");
}

/* Programs of an owner may wait for each other across GPUs. */
char *shares_slice_text(const Slice *slice)
{
    gboolean capped = slice->cap > 0 && slice->cap < NO_CAP;
    g_autofree char *partners =
        *slice->owner ? g_strdup_printf("partners=%s\n", slice->owner) : g_strdup("");
    g_autofree char *names = slice->engines ? engines_format(slice->engines) : NULL;
    g_autofree char *engines = names ? g_strdup_printf("engines=%s\n", names) : g_strdup("");
    const char *guaranteed = slice->class == SLICE_GUARANTEED ? "" : "guaranteed=false\n";
    g_autofree char *resident = resident_text(slice);

    return g_strdup_printf(
        "[slice]\n"
        "weight=%u\n"
        "cap=%u\n"
        "hard=%s\n"
        "priority=%u\n"
        "vram=%" G_GUINT64_FORMAT "\n"
        "spill=%" G_GUINT64_FORMAT "\n"
        "share=%u\n"
        "%s%s%s%s",
        slice->weight, capped ? slice->cap : 0, capped ? "true" : "false", slice->priority,
        slice->suspended ? NO_VRAM : slice->vram, slice->suspended ? 0 : slice->oversubscribe,
        slice->compute * PPM_PER_PERCENT, guaranteed, resident, engines, partners);
}

char *shares_gpu_text(guint64 vram, GpuPolicy policy, guint64 capacity, guint64 displaced)
{
    g_autofree char *moves = capacity ? g_strdup_printf("capacity=%" G_GUINT64_FORMAT
                                                        "\ndisplaced=%" G_GUINT64_FORMAT "\n",
                                                        capacity, displaced)
                                      : g_strdup("");

    return g_strdup_printf("[gpu]\nvram=%" G_GUINT64_FORMAT "\npolicy=%s\n%s", vram,
                           gpu_policy_name(policy), moves);
}

char *shares_slice_path(const char *gpu, const char *uuid)
{
    return slice_path(gpu, uuid, SUFFIX);
}

char *shares_ungoverned_path(const char *gpu, const char *uuid)
{
    return slice_path(gpu, uuid, UNGOVERNED);
}

char *shares_gpu_path(const char *gpu)
{
    return g_build_filename(GOVERNOR_DIR, gpu, "gpu" SUFFIX, NULL);
}

gboolean shares_put_ungoverned(HostRoot *root, const Slice *slice, guint64 memory, guint64 gpu_ns,
                               GError **error)
{
    g_autofree char *path = slice_path(slice->gpu, slice->uuid, UNGOVERNED);
    g_autofree char *text = NULL;

    if (!memory && !gpu_ns) {
        root_remove(root, path);
        return TRUE;
    }
    text = g_strdup_printf("[ungoverned]\nmemory=%" G_GUINT64_FORMAT "\ngpu_ns=%" G_GUINT64_FORMAT
                           "\n",
                           memory, gpu_ns);
    return put_text(root, path, text, error);
}

gboolean shares_warm(HostRoot *root, const Slice *slice, GError **error)
{
    g_autofree char *path = slice_path(slice->gpu, slice->uuid, WARM);

    return root_write(root, path, "", 0644, error);
}

void shares_forget_ungoverned(HostRoot *root, const char *gpu, const char *uuid)
{
    g_autofree char *path = slice_path(gpu, uuid, UNGOVERNED);

    root_remove(root, path);
}

/* Of "UUID.conf", a slice's; files with other names are not vgpud's. To be freed. */
static char *uuid_of(const char *name, const char *suffix)
{
    g_autofree char *uuid =
        g_str_has_suffix(name, suffix) ? g_strndup(name, strlen(name) - strlen(suffix)) : NULL;

    return uuid && g_uuid_string_is_valid(uuid) ? g_steal_pointer(&uuid) : NULL;
}

GStrv shares_list(HostRoot *root, const char *gpu)
{
    g_autofree char *dir = shares_dir(gpu);
    g_auto(GStrv) names = sysfs_list(root, dir);
    g_autoptr(GStrvBuilder) uuids = g_strv_builder_new();

    for (guint i = 0; names[i]; i++) {
        char *uuid = uuid_of(names[i], SUFFIX);

        if (!uuid)
            uuid = uuid_of(names[i], UNGOVERNED);
        if (uuid)
            g_strv_builder_take(uuids, uuid);
    }
    return g_strv_builder_end(uuids);
}

void shares_forget_all_ungoverned(HostRoot *root)
{
    g_auto(GStrv) gpus = sysfs_list(root, GOVERNOR_DIR);

    for (guint i = 0; gpus[i]; i++) {
        g_auto(GStrv) uuids = shares_list(root, gpus[i]);

        for (guint k = 0; uuids[k]; k++)
            shares_forget_ungoverned(root, gpus[i], uuids[k]);
    }
}

#define MOST_TEXT (4 * 1024 * 1024)

_Atomic gint64 arbiter_wait_us = ARBITER_WAIT_US;

/* -1 with errno. */
static int connect_to(HostRoot *root, const char *gpu)
{
    const struct timeval limit = {.tv_sec = arbiter_wait_us / G_USEC_PER_SEC,
                                  .tv_usec = arbiter_wait_us % G_USEC_PER_SEC};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *path = root_path(root, GOVERNOR_DIR, gpu, "status.sock", NULL);
    int fd, code;

    if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
        sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    code = errno;
    close(fd);
    errno = code;
    return -1;
}

/* -1: nothing has come by @end, or it failed. */
static ssize_t read_before(int fd, void *buf, size_t size, gint64 end)
{
    struct pollfd incoming = {.fd = fd, .events = POLLIN};
    gint64 left = MAX(end - g_get_monotonic_time(), 0);

    return poll(&incoming, 1, (int)(left / 1000)) > 0 ? read(fd, buf, size) : -1;
}

/* The whole answer; NULL if it has not come by @end. */
static GString *read_all(int fd, gint64 end)
{
    g_autoptr(GString) text = g_string_new(NULL);
    char buf[4096];
    ssize_t n;

    while ((n = read_before(fd, buf, sizeof(buf), end)) > 0) {
        g_string_append_len(text, buf, n);
        if (text->len > MOST_TEXT)
            return NULL;
    }
    return n == 0 ? g_steal_pointer(&text) : NULL;
}

static guint64 read_number(JsonObject *object, const char *name)
{
    gint64 value = json_object_get_int_member_with_default(object, name, 0);

    return value > 0 ? (guint64)value : 0;
}

/* One slice of the answer, @object. */
typedef void (*SliceFunc)(const char *id, JsonObject *object, void *data);

typedef struct {
    SliceUseFunc func;
    void *data;
} UseReader;

/* Adds the slice's processes to @pids, of guint. */
static void read_pids(JsonObject *object, GArray *pids)
{
    JsonNode *node = json_object_get_member(object, "pids");
    JsonArray *list = node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;

    for (guint i = 0; list && i < json_array_get_length(list); i++) {
        gint64 pid = json_array_get_int_element(list, i);
        guint value = (guint)pid;

        if (pid > 0 && pid <= G_MAXINT)
            g_array_append_val(pids, value);
    }
}

static gboolean is_alone(JsonObject *object)
{
    return g_str_equal(json_object_get_string_member_with_default(object, "mode", ""), "free");
}

static void read_use(const char *id, JsonObject *object, void *data)
{
    const UseReader *reader = data;
    g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(guint));
    const SliceUse use = {
        .members = (guint)read_number(object, "members"),
        .vram_used = read_number(object, "vram_used"),
        .vram_ungoverned = read_number(object, "vram_ungoverned"),
        .vram_peak = MAX(read_number(object, "vram_used"), read_number(object, "vram_peak")),
        .spilled = read_number(object, "spill_used"),
        .spill_kind = g_intern_string(
            json_object_get_string_member_with_default(object, "spill_kind", "none")),
        .submissions = read_number(object, "submissions"),
        .gpu_ns = read_number(object, "gpu_ns"),
        .ungoverned_ns = read_number(object, "ungoverned_ns"),
        .alone = is_alone(object),
        .waited_ns = read_number(object, "waited_ns"),
        .throttled_ns = read_number(object, "throttled_ns"),
        .resident = read_number(object, "resident"),
        .unmovable = read_number(object, "floor"),
        .displaced = read_number(object, "displaced"),
        .missing = read_number(object, "missing"),
        .moved = read_number(object, "moved_out") + read_number(object, "moved_in"),
        .memory_waited_ns = read_number(object, "memory_waited_ns"),
    };

    read_pids(object, pids);
    reader->func(id, &use, pids, reader->data);
}

static void tell_one(JsonNode *node, SliceFunc func, void *data)
{
    JsonObject *object = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
    const char *id = object ? json_object_get_string_member_with_default(object, "id", NULL) : NULL;

    if (id)
        func(id, object, data);
}

#define NS_PER_S G_GUINT64_CONSTANT(1000000000)
/* A member joins a new arbiter within 0.1 s; on a busy host later. */
#define JOIN_NS (5 * NS_PER_S)

static gboolean was_restarted_now(JsonObject *status)
{
    guint64 restarted = read_number(status, "restarted_ns");
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return restarted && restarted + JOIN_NS > (guint64)now.tv_sec * NS_PER_S + (guint64)now.tv_nsec;
}

static ArbiterAnswer tell_all(const GString *text, SliceFunc func, void *data)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    JsonNode *root;
    JsonNode *list;

    if (!json_parser_load_from_data(parser, text->str, (gssize)text->len, NULL))
        return ARBITER_SILENT;
    root = json_parser_get_root(parser);
    list = root && JSON_NODE_HOLDS_OBJECT(root)
               ? json_object_get_member(json_node_get_object(root), "slices")
               : NULL;
    if (!list || !JSON_NODE_HOLDS_ARRAY(list))
        return ARBITER_SILENT;
    for (guint i = 0; i < json_array_get_length(json_node_get_array(list)); i++)
        tell_one(json_array_get_element(json_node_get_array(list), i), func, data);
    return was_restarted_now(json_node_get_object(root)) ? ARBITER_RESTARTED : ARBITER_ANSWERS;
}

static ArbiterAnswer read_status(HostRoot *root, const char *gpu, SliceFunc func, void *data)
{
    gint64 end = g_get_monotonic_time() + arbiter_wait_us;
    int fd = connect_to(root, gpu);
    g_autoptr(GString) text = NULL;

    /* Its queue of those who want to ask stays full. */
    if (fd < 0)
        return errno == EAGAIN ? ARBITER_SILENT : ARBITER_AWAY;
    text = read_all(fd, end);
    close(fd);
    return text ? tell_all(text, func, data) : ARBITER_SILENT;
}

gboolean slice_use_gpu_ns(const SliceUse *use, guint64 *ns)
{
    *ns = use->gpu_ns + use->alone_ns;
    return !use->alone || use->alone_known;
}

ArbiterAnswer arbiter_read_status(HostRoot *root, const char *gpu, SliceUseFunc func, void *data)
{
    UseReader reader = {func, data};

    return read_status(root, gpu, read_use, &reader);
}

char *arbiter_rest_read(HostRoot *root, const char *gpu)
{
    g_autofree char *path = g_build_filename(GOVERNOR_DIR, gpu, "rest", NULL);
    g_autofree char *text = root_read(root, path, NULL);

    /* Empty while it is being written. */
    return text && *text ? g_steal_pointer(&text) : NULL;
}

GFile *arbiter_rest_file(HostRoot *root, const char *gpu)
{
    g_autofree char *path = root_path(root, GOVERNOR_DIR, gpu, "rest", NULL);

    return g_file_new_for_path(path);
}

static void slice_members_free(void *data)
{
    SliceMembers *members = data;

    g_array_unref(members->pids);
    g_free(members);
}

GHashTable *slice_members_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, slice_members_free);
}

static void add_members(const char *id, JsonObject *object, void *all)
{
    guint64 used = read_number(object, "vram_used");
    SliceMembers *members;

    if (!json_object_has_member(object, "pids"))
        return;
    members = g_new(SliceMembers, 1);
    members->pids = g_array_new(FALSE, FALSE, sizeof(guint));
    members->used = used;
    members->requested = used - MIN(used, read_number(object, "vram_ungoverned"));
    members->since_ns = read_number(object, "since_ns");
    read_pids(object, members->pids);
    g_hash_table_insert(all, g_strdup(id), members);
}

ArbiterAnswer arbiter_read_members(HostRoot *root, const char *gpu, GHashTable *members)
{
    return read_status(root, gpu, add_members, members);
}
