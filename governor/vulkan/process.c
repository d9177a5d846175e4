// SPDX-License-Identifier: MIT
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sockets.h"

/* Where a container has its slices, by mounts. */
#define MOUNTED_SLICES "/run/vgpu/slices"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct layer_slice *slices;
static unsigned int users;
static _Atomic bool is_mounted; /* the slices were found without the environment */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/*
 * A child may create instances of its own: it must not find the lock held by a thread that it does
 * not have.
 */
static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

bool process_slices_are_required(void)
{
    const char *required = getenv("VGPU_GOVERNOR_REQUIRED");

    return is_mounted || (required && !strcmp(required, "1"));
}

static void free_slices(struct layer_slice *list)
{
    while (list) {
        struct layer_slice *next = list->next;

        governor_member_put(list->member);
        free(list->gpu);
        free(list);
        list = next;
    }
}

static bool say_failed(const char *path)
{
    fprintf(stderr,
            "vgpu-governor: cannot join the slice at %s: %s; it is required, so this program gets "
            "no GPU "
            "(is vgpu-arbiter running?)\n",
            path, strerror(errno));
    return false;
}

/* At the end of @list. @path: NULL: no slice. False: an error was printed. */
static bool join_slice(struct layer_slice **list, const char *gpu, const char *path)
{
    struct layer_slice *slice = calloc(1, sizeof(*slice));

    if (!slice)
        return say_failed(path ? path : "nowhere");
    slice->gpu = gpu ? strdup(gpu) : NULL;
    slice->member = governor_member_get(path, path && process_slices_are_required());
    if (!slice->member || (gpu && !slice->gpu)) {
        say_failed(path ? path : "nowhere");
        free_slices(slice);
        return false;
    }
    while (*list)
        list = &(*list)->next;
    *list = slice;
    return true;
}

/* @tried: failures have been printed already */
struct joining {
    struct layer_slice *list;
    bool tried;
};

static bool join_one(const char *gpu, const char *path, void *data)
{
    struct joining *joining = data;

    joining->tried = true;
    return join_slice(&joining->list, gpu, path);
}

/* NULL: an error was printed. */
static struct layer_slice *join_of_gpus(const char *dir)
{
    struct joining joining = {0};
    bool joined = governor_sockets_each(dir, join_one, &joining);

    if (!joined && !joining.tried && process_slices_are_required())
        say_failed(dir);
    if ((joined || !process_slices_are_required()) && join_slice(&joining.list, "", NULL))
        return joining.list;
    free_slices(joining.list);
    return NULL;
}

/*
 * A program that a runtime starts in a container later ("docker exec", a health check) has none of
 * the container's variables, but its mounts. On the host the directory has slices' names; in a
 * container it has GPUs'.
 */
static bool find_mounted(void)
{
    DIR *dir = opendir(MOUNTED_SLICES);
    bool found = false;

    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry && !found; entry = readdir(dir))
        found = strchr(entry->d_name, ':') != NULL;
    if (dir)
        closedir(dir);
    return found;
}

static struct layer_slice *join_all(void)
{
    const char *dir = getenv("VGPU_GOVERNOR_SLICES");
    const char *path = getenv("VGPU_GOVERNOR_SOCKET");
    struct layer_slice *list = NULL;

    if (dir && *dir)
        return join_of_gpus(dir);
    is_mounted = !(path && *path) && access(GOVERNOR_DEFAULT_SOCKET, F_OK) && find_mounted();
    if (is_mounted)
        return join_of_gpus(MOUNTED_SLICES);
    join_slice(&list, NULL, path && *path ? path : GOVERNOR_DEFAULT_SOCKET);
    return list;
}

struct layer_slice *process_slices_get(void)
{
    struct layer_slice *got;

    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&lock);
    if (!slices)
        slices = join_all();
    if (slices)
        users++;
    got = slices;
    pthread_mutex_unlock(&lock);
    return got;
}

void process_slices_put(void)
{
    pthread_mutex_lock(&lock);
    if (--users == 0) {
        free_slices(slices);
        slices = NULL;
    }
    pthread_mutex_unlock(&lock);
}
