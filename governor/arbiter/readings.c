// SPDX-License-Identifier: MIT
#include "readings.h"

#include "clock.h"

#include <fcntl.h>
#include <unistd.h>

#define DIRECTORY "/run/vgpu/readings"
#define PROCESSES "process_memory"

void readings_init(struct readings *readings, const char *tree, const char *gpu)
{
    *readings = (struct readings){
        .path = g_build_filename(tree, DIRECTORY, gpu, NULL),
        .wanted = g_build_filename(tree, DIRECTORY, ".wanted", NULL),
        .memory = g_hash_table_new_full(NULL, NULL, NULL, g_free),
    };
}

void readings_clear(struct readings *readings)
{
    g_hash_table_destroy(readings->memory);
    g_free(readings->path);
    g_free(readings->wanted);
}

static void add_process(GHashTable *memory, GKeyFile *file, const char *pid)
{
    uint64_t *bytes = g_new(uint64_t, 1);

    *bytes = g_key_file_get_uint64(file, PROCESSES, pid, NULL);
    g_hash_table_insert(memory, GSIZE_TO_POINTER(g_ascii_strtoull(pid, NULL, 10)), bytes);
}

bool readings_look(struct readings *readings)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_auto(GStrv) pids = NULL;
    uint64_t at;

    if (!g_key_file_load_from_file(file, readings->path, G_KEY_FILE_NONE, NULL))
        return false;
    at = g_key_file_get_uint64(file, "gpu", "time", NULL) * NS_PER_US;
    if (at == readings->at)
        return false;
    readings->at = at;
    g_hash_table_remove_all(readings->memory);
    pids = g_key_file_get_keys(file, PROCESSES, NULL, NULL);
    for (unsigned i = 0; pids && pids[i]; i++)
        add_process(readings->memory, file, pids[i]);
    return true;
}

void readings_want(const struct readings *readings)
{
    int fd = open(readings->wanted, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd >= 0)
        close(fd);
}

uint64_t readings_of(const struct readings *readings, pid_t pid)
{
    const uint64_t *bytes = g_hash_table_lookup(readings->memory, GSIZE_TO_POINTER((gsize)pid));

    return bytes ? *bytes : 0;
}
