/* SPDX-License-Identifier: MIT */
/*
 * The files that vgpud and the registrar read: types, GPUs, mdevctl's definitions, the schedule,
 * vgpud's own. The first byte chooses which.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/vgpud_conf.h"
#include "lib/vgpu.h"
#include "lib/gpus.h"
#include "lib/schedule_conf.h"
#include "lib/types.h"
#include "lib/conf.h"

#define UUID       "c0ffee00-0000-4000-8000-000000000001"
#define DEFINITION "/etc/mdevctl.d/0000:01:00.0/" UUID

static const char *const files[] = {
    "/etc/vgpu/types.d/10-fuzz.conf",
    "/etc/vgpu/gpus.conf",
    "/var/lib/vgpu/gpus.conf",
    DEFINITION,
    SCHEDULE_CONF,
    VGPUD_CONF,
};

static char tree[] = "/tmp/agent-files-XXXXXX";
static HostRoot *root;

static void remove_root(void)
{
    g_autofree char *command = g_strconcat("rm -rf ", tree, NULL);

    g_clear_pointer(&root, host_root_unref);
    if (system(command))
        abort();
}

static void make_root(void)
{
    if (!mkdtemp(tree))
        abort();
    root = host_root_new(tree, NULL);
    atexit(remove_root);
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = root_path(root, files[i], NULL);
        g_autofree char *dir = g_path_get_dirname(path);

        g_mkdir_with_parents(dir, 0700);
    }
}

static void write_file(const char *file, const uint8_t *data, size_t size)
{
    g_autofree char *path = root_path(root, file, NULL);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
}

/* What is taken is within its bounds, and what is not comes with a sentence. */
static void check_types(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) types = types_load(root, &error);

    if (!types != !!error || (error && !*error->message))
        abort();
    for (guint i = 0; types && i < types->len; i++) {
        const GpuType *type = g_ptr_array_index(types, i);

        if (type->cap < 1 || type->cap > 100 || type->weight < 1 || type->compute > 100)
            abort();
        if (type->cpu > 100000 || (type->memory && type->memory < MIB))
            abort();
    }
}

static void check_gpus(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) gpus = gpus_load(root, &error);

    if (!gpus != !!error || (error && !*error->message))
        abort();
    for (guint i = 0; gpus && i < gpus->len; i++) {
        const GpuEntry *entry = g_ptr_array_index(gpus, i);

        if (!gpu_name_valid(entry->name) || entry->overcommit < 1)
            abort();
    }
}

/* Its expression may be given to systemd as an argument and as a property. */
static void check_entry(const ScheduleEntry *entry)
{
    if (!*entry->calendar || strlen(entry->calendar) > 200)
        abort();
    for (const char *at = entry->calendar; *at; at++)
        if (!g_ascii_isprint(*at))
            abort();
    if (!gpu_name_valid(entry->gpu) || entry->warn > 7 * 24 * 60 * 60 ||
        entry->timeout > 7 * 24 * 60 * 60)
        abort();
}

static void check_schedule(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries = schedule_conf_load(root, &error);

    if (!entries != !!error || (error && !*error->message))
        abort();
    for (guint i = 0; entries && i < entries->len; i++)
        check_entry(g_ptr_array_index(entries, i));
}

static void check_conf(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VgpudConf) conf = vgpud_conf_load(root, &error);

    if (!conf != !!error || (error && !*error->message) || (conf && !conf->pressure_grace))
        abort();
}

static void check_definition(void)
{
    g_autoptr(Definition) definition = definition_find(root, UUID);

    if (definition)
        json_object_unref(definition_json(root, definition));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *file;

    if (!size)
        return 0;
    if (!root)
        make_root();
    file = files[data[0] % G_N_ELEMENTS(files)];
    write_file(file, data + 1, size - 1);
    check_types();
    check_gpus();
    check_schedule();
    check_conf();
    check_definition();
    write_file(file, NULL, 0);
    return 0;
}
