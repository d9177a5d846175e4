// SPDX-License-Identifier: MIT
#include "sockets.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* By byte order, whatever the program's locale is. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void free_entries(struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
}

char *governor_socket_in(const char *dir, const char *gpu)
{
    struct dirent **slices = NULL;
    char *of_gpu = NULL, *first = NULL;
    int count;

    if (asprintf(&of_gpu, "%s/%s", dir, gpu) < 0)
        return NULL;
    count = scandir(of_gpu, &slices, is_name, by_name);
    for (int i = 0; i < count; i++) {
        char *path = NULL;

        if (asprintf(&path, "%s/%s/governor.sock", of_gpu, slices[i]->d_name) < 0)
            break;
        if (access(path, F_OK) == 0) {
            free(first);
            first = path;
            break;
        }
        if (i == 0)
            first = path;
        else
            free(path);
    }
    free_entries(slices, count);
    free(of_gpu);
    return first;
}

bool governor_sockets_each(const char *dir,
                           bool (*func)(const char *gpu, const char *path, void *data), void *data)
{
    struct dirent **gpus = NULL;
    int count = scandir(dir, &gpus, is_name, by_name);
    bool any = false, ok = count >= 0;

    for (int i = 0; i < count && ok; i++) {
        char *path = governor_socket_in(dir, gpus[i]->d_name);

        if (!path)
            continue;
        any = true;
        ok = func(gpus[i]->d_name, path, data);
        free(path);
    }
    free_entries(gpus, count);
    if (ok && !any)
        errno = ENOENT;
    return ok && any;
}
