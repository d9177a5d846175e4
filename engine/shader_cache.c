// SPDX-License-Identifier: MIT
#include "shader_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>

/* Less than the units' file system has. Mesa's first, NVIDIA's is in bytes. */
#define MAX_SIZE       "48M"
#define MAX_SIZE_BYTES "50331648"

static char *used;

/* @fd is taken. Names are a render worker's: nothing is followed out of the directory. */
static void empty(int fd)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) == 0 || errno != EISDIR)
            continue;
        empty(openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

void shader_cache_empty(void)
{
    if (used)
        empty(open(used, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

void shader_cache_use(const char *directory)
{
    g_free(used);
    used = g_strdup(directory);
    shader_cache_empty();
    if (!used) {
        g_setenv("MESA_SHADER_CACHE_DISABLE", "true", TRUE);
        g_setenv("__GL_SHADER_DISK_CACHE", "0", TRUE);
        return;
    }
    g_unsetenv("MESA_SHADER_CACHE_DISABLE");
    g_setenv("MESA_SHADER_CACHE_DIR", used, TRUE);
    g_setenv("MESA_SHADER_CACHE_MAX_SIZE", MAX_SIZE, TRUE);
    g_setenv("__GL_SHADER_DISK_CACHE", "1", TRUE);
    g_setenv("__GL_SHADER_DISK_CACHE_PATH", used, TRUE);
    g_setenv("__GL_SHADER_DISK_CACHE_SIZE", MAX_SIZE_BYTES, TRUE);
}
