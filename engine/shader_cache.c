// SPDX-License-Identifier: MIT
#include "shader_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Less than the units' file system has. Mesa's first, NVIDIA's is in bytes. */
#define MAX_SIZE       "48M"
#define MAX_SIZE_BYTES "50331648"
/* Of code that CUDA's workers compile; with the shaders still less. */
#define MAX_CUDA_BYTES "12582912"

static char *used;

/*
 * A folder that its owner may not list or change is given back to the owner: what is in it could
 * still be reached by its name. chmod() of a folder by its descriptor, because only Linux 6.6 has a
 * call that does not follow links.
 */
static int open_folder(int parent, const char *name)
{
    char path[sizeof("/proc/self/fd/") + 16];
    int folder = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd;

    if (folder < 0)
        return -1;
    g_snprintf(path, sizeof(path), "/proc/self/fd/%d", folder);
    chmod(path, 0700);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(folder);
    return fd;
}

/* @fd is taken. Names are a render worker's: nothing is followed out of the directory. */
static bool empty_folder(int fd)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    bool all = true;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    while ((entry = readdir(dir))) {
        const char *name = entry->d_name;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(fd, name, 0) == 0)
            continue;
        all &= errno == EISDIR && empty_folder(open_folder(fd, name)) &&
               unlinkat(fd, name, AT_REMOVEDIR) == 0;
    }
    closedir(dir);
    return all;
}

bool shader_cache_empty(void)
{
    int fd;

    if (!used)
        return true;
    fd = open(used, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return (fd < 0 && errno == ENOENT) || empty_folder(fd);
}

void shader_cache_use(const char *directory)
{
    g_free(used);
    used = g_strdup(directory);
    if (!shader_cache_empty()) {
        g_message("%s: cannot be emptied: compiled shaders are not kept", used);
        g_clear_pointer(&used, g_free);
    }
    if (!used) {
        g_setenv("MESA_SHADER_CACHE_DISABLE", "true", TRUE);
        g_setenv("__GL_SHADER_DISK_CACHE", "0", TRUE);
        g_unsetenv("CUDA_CACHE_PATH");
        return;
    }
    g_unsetenv("MESA_SHADER_CACHE_DISABLE");
    g_setenv("MESA_SHADER_CACHE_DIR", used, TRUE);
    g_setenv("MESA_SHADER_CACHE_MAX_SIZE", MAX_SIZE, TRUE);
    g_setenv("__GL_SHADER_DISK_CACHE", "1", TRUE);
    g_setenv("__GL_SHADER_DISK_CACHE_PATH", used, TRUE);
    g_setenv("__GL_SHADER_DISK_CACHE_SIZE", MAX_SIZE_BYTES, TRUE);
    g_setenv("CUDA_CACHE_PATH", used, TRUE);
    g_setenv("CUDA_CACHE_MAXSIZE", MAX_CUDA_BYTES, TRUE);
}
