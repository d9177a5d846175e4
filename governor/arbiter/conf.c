// SPDX-License-Identifier: MIT
/*
 * The agent's files. A file that cannot be read or has an error leaves the previous settings in
 * force.
 */
#include "arbiter.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define SUFFIX   ".conf"
#define GPU_CONF "gpu.conf"

#define MASK (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)

static bool read_file(const char *path, char **text, gsize *length)
{
    g_autoptr(GError) error = NULL;

    if (g_file_get_contents(path, text, length, &error))
        return true;
    if (!g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
        g_message("%s; the previous settings stay", error->message);
    return false;
}

static void load_gpu(struct arbiter *arbiter)
{
    g_autofree char *path = g_build_filename(arbiter->conf_dir, GPU_CONF, NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    gsize length;

    if (!read_file(path, &text, &length))
        return;
    if (!gpu_settings_parse(&arbiter->settings, text, length, &error)) {
        g_message("%s: %s; the previous settings stay", path, error->message);
        return;
    }
    for (unsigned i = 0; i < GOVERNOR_CLASSES; i++)
        arbiter->schedulers[i].policy = arbiter->settings.policy;
}

/*
 * The socket is removed, too. When the arbiter ends it stays, to tell the next one that there were
 * members.
 */
static void remove_slice(struct arbiter *arbiter, const char *id)
{
    struct slice *slice = g_hash_table_lookup(arbiter->slices, id);

    if (!slice)
        return;
    unlink(slice->socket_path);
    g_hash_table_remove(arbiter->slices, id);
}

static void load_slice(struct arbiter *arbiter, const char *id)
{
    g_autofree char *path = g_strconcat(arbiter->conf_dir, "/slices/", id, SUFFIX, NULL);
    struct slice *slice = g_hash_table_lookup(arbiter->slices, id);
    struct slice_settings settings;
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    gsize length;

    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        remove_slice(arbiter, id);
        return;
    }
    if (!read_file(path, &text, &length))
        return;
    if (!slice_settings_parse(&settings, text, length, &error)) {
        g_message("%s: %s; %s", path, error->message,
                  slice ? "the previous settings stay" : "the slice does not exist until then");
        return;
    }
    if (slice) {
        slice_change(slice, &settings);
        return;
    }
    slice = slice_new(arbiter, id, &settings);
    if (slice)
        g_hash_table_insert(arbiter->slices, slice->id, slice);
}

static void load_name(struct arbiter *arbiter, const char *name)
{
    g_autofree char *id = NULL;

    if (!g_str_has_suffix(name, SUFFIX))
        return;
    id = g_strndup(name, strlen(name) - strlen(SUFFIX));
    if (slice_id_valid(id))
        load_slice(arbiter, id);
    else
        g_message("%s: not a valid name of a slice", name);
}

static void load_all(struct arbiter *arbiter)
{
    g_autofree char *path = g_build_filename(arbiter->conf_dir, "slices", NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    g_autoptr(GList) ids = NULL;
    const char *name;

    load_gpu(arbiter);
    while (dir && (name = g_dir_read_name(dir)))
        load_name(arbiter, name);
    ids = g_hash_table_get_keys(arbiter->slices);
    /* This ends slices whose file was removed unnoticed. */
    for (GList *id = ids; id; id = id->next)
        load_slice(arbiter, id->data);
}

static int on_gpu_change(sd_event_source *source, const struct inotify_event *event, void *data)
{
    struct arbiter *arbiter = data;

    (void)source;
    /* The arbiter's own files are there, too. */
    if (event->len && strcmp(event->name, GPU_CONF) != 0)
        return 0;
    load_gpu(arbiter);
    arbiter_schedule(arbiter);
    return 0;
}

static int on_slice_change(sd_event_source *source, const struct inotify_event *event, void *data)
{
    struct arbiter *arbiter = data;

    (void)source;
    if (event->mask & IN_Q_OVERFLOW)
        load_all(arbiter);
    else if (event->len)
        load_name(arbiter, event->name);
    status_changed(arbiter);
    arbiter_schedule(arbiter);
    return 0;
}

static bool watch(struct arbiter *arbiter, sd_event_source **source, const char *path,
                  sd_event_inotify_handler_t handler)
{
    int ret;

    if (g_mkdir_with_parents(path, 0755) < 0) {
        g_message("%s: cannot make the directory: %s", path, g_strerror(errno));
        return false;
    }
    ret = sd_event_add_inotify(arbiter->event, source, path, MASK, handler, arbiter);
    if (ret < 0)
        g_message("%s: cannot watch the directory: %s", path, g_strerror(-ret));
    return ret >= 0;
}

bool conf_watch(struct arbiter *arbiter)
{
    g_autofree char *slices = g_build_filename(arbiter->conf_dir, "slices", NULL);

    if (!watch(arbiter, &arbiter->gpu_inotify, arbiter->conf_dir, on_gpu_change) ||
        !watch(arbiter, &arbiter->slices_inotify, slices, on_slice_change))
        return false;
    load_all(arbiter);
    status_changed(arbiter);
    arbiter_schedule(arbiter);
    return true;
}
