// SPDX-License-Identifier: MIT
/*
 * The agent's files. A file that cannot be read or has an error leaves the previous settings in
 * force.
 */
#include "arbiter.h"
#include "moves.h"
#include "slice.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define SUFFIX     ".conf"
#define UNGOVERNED ".ungoverned"
/* What of the slice is displaced is to come back: the agent makes it, and the arbiter removes it.
 */
#define WARM     ".warm"
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
    moves_set_capacity(arbiter);
}

static void remove_slice(struct arbiter *arbiter, const char *id)
{
    struct slice *slice = g_hash_table_lookup(arbiter->slices, id);

    if (!slice)
        return;
    slice_remove_files(slice);
    g_hash_table_remove(arbiter->slices, id);
}

static char *slice_file(const struct arbiter *arbiter, const char *id, const char *suffix)
{
    return g_strconcat(arbiter->conf_dir, "/slices/", id, suffix, NULL);
}

/* Zeroes, if there is no such file. */
static bool read_ungoverned(const struct arbiter *arbiter, const char *id,
                            struct slice_ungoverned *ungoverned)
{
    g_autofree char *path = slice_file(arbiter, id, UNGOVERNED);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    gsize length;

    *ungoverned = (struct slice_ungoverned){0};
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return true;
    if (!read_file(path, &text, &length))
        return false;
    if (slice_ungoverned_parse(ungoverned, text, length, &error))
        return true;
    g_message("%s: %s; what was known before stays", path, error->message);
    return false;
}

static void load_ungoverned(struct arbiter *arbiter, const char *id)
{
    struct slice *slice = g_hash_table_lookup(arbiter->slices, id);
    struct slice_ungoverned ungoverned;

    if (slice && read_ungoverned(arbiter, id, &ungoverned) &&
        !slice_set_ungoverned(slice, &ungoverned))
        g_message("slice %s: no GPU has so much memory: %" G_GUINT64_FORMAT
                  "; what was known before stays",
                  id, ungoverned.memory);
}

/* Time that the counter had before was charged by the last arbiter. */
static void add_slice(struct arbiter *arbiter, const char *id,
                      const struct slice_settings *settings)
{
    struct slice *slice = slice_new(arbiter, id, settings);
    struct slice_ungoverned ungoverned;

    if (!slice)
        return;
    g_hash_table_insert(arbiter->slices, slice->id, slice);
    if (read_ungoverned(arbiter, id, &ungoverned))
        slice->ungoverned.gpu_ns = ungoverned.gpu_ns;
}

static void load_warm(struct arbiter *arbiter, const char *id)
{
    g_autofree char *path = slice_file(arbiter, id, WARM);
    struct slice *slice = g_hash_table_lookup(arbiter->slices, id);

    if (unlink(path) == 0 && slice)
        moves_warm(slice);
}

static void load_slice(struct arbiter *arbiter, const char *id)
{
    g_autofree char *path = slice_file(arbiter, id, SUFFIX);
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
    if (slice)
        slice_change(slice, &settings);
    else
        add_slice(arbiter, id, &settings);
    load_ungoverned(arbiter, id);
}

static bool load_by(struct arbiter *arbiter, const char *name, const char *suffix,
                    void (*load)(struct arbiter *arbiter, const char *id))
{
    g_autofree char *id = NULL;

    if (!g_str_has_suffix(name, suffix))
        return false;
    id = g_strndup(name, strlen(name) - strlen(suffix));
    if (slice_id_valid(id))
        load(arbiter, id);
    else
        g_message("%s: not a valid name of a slice", name);
    return true;
}

static void load_name(struct arbiter *arbiter, const char *name)
{
    if (!load_by(arbiter, name, SUFFIX, load_slice))
        load_by(arbiter, name, UNGOVERNED, load_ungoverned);
    load_by(arbiter, name, WARM, load_warm);
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
    turn_run(arbiter);
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
    turn_run(arbiter);
    return 0;
}

static bool watch_path(struct arbiter *arbiter, sd_event_source **source, const char *path,
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

    if (!watch_path(arbiter, &arbiter->gpu_inotify, arbiter->conf_dir, on_gpu_change) ||
        !watch_path(arbiter, &arbiter->slices_inotify, slices, on_slice_change))
        return false;
    load_all(arbiter);
    status_changed(arbiter);
    turn_run(arbiter);
    return true;
}
