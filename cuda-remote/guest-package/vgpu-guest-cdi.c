// SPDX-License-Identifier: MIT
/*
 * vgpu-guest-cdi: writes CDI's file for the VM's vGPUs with CUDA, by which podman and docker give
 * them to containers. The number of a render node is known when it is there: the unit runs this
 * at boot, and udev when one comes or goes.
 */
#include "nodes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KIND      "mdev-vgpu.org/cuda"
#define FOLDER    "/run/cdi"
#define FILE_NAME FOLDER "/mdev-vgpu-cuda.json"
#define PATH_SIZE 64

/**
 * struct found - the nodes of vGPUs with CUDA
 */
struct found {
    char paths[NODES][PATH_SIZE];
    int count;
};

static void find_nodes(struct found *found)
{
    for (int i = 0; i < NODES; i++) {
        struct control_caps caps = {0};

        if (node_look(NODES_FIRST + i, &caps) == NODE_CUDA)
            snprintf(found->paths[found->count++], PATH_SIZE, NODE_PATH, NODES_FIRST + i);
    }
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void write_device(FILE *file, const char *name, const struct found *found, int first,
                         int count)
{
    fprintf(file, "    {\"name\": \"%s\", \"containerEdits\": {\"deviceNodes\": [", name);
    for (int i = first; i < first + count; i++)
        fprintf(file, "%s{\"path\": \"%s\"}", i > first ? ", " : "", found->paths[i]);
    fprintf(file, "]}}");
}

/* In the container it is where vgpu-container-hook looks for it. */
static void write_mount(FILE *file, const char *library, const char *name, const char *after)
{
    fprintf(file,
            "      {\"hostPath\": \"" VGPU_FOLDER "/guest-cuda/%s\", "
            "\"containerPath\": \"" VGPU_FOLDER "/guest/%s\", "
            "\"options\": [\"ro\", \"nosuid\", \"nodev\", \"bind\"]}%s\n",
            library, name, after);
}

static void write_hook(FILE *file, const char *args, const char *after)
{
    fprintf(file,
            "      {\"hookName\": \"createRuntime\", "
            "\"path\": \"" VGPU_FOLDER "/guest-cuda/vgpu-container-hook\", "
            "\"args\": [\"vgpu-container-hook\", %s], \"env\": [\"LC_ALL=C.UTF-8\"], "
            "\"timeout\": 40}%s\n",
            args, after);
}

static void write_edits(FILE *file)
{
    /* Keeps NVIDIA's own runtime from adding its driver to ours. */
    fprintf(file, "  \"containerEdits\": {\n    \"env\": [\"NVIDIA_VISIBLE_DEVICES=void\"],\n"
                  "    \"mounts\": [\n");
    write_mount(file, "libcuda.so.1", "libcuda.so.1", ",");
    write_mount(file, "libcuda.so.1", "libcuda.so", ",");
    write_mount(file, "libnvidia-ml.so.1", "libnvidia-ml.so.1", ",");
    write_mount(file, "libnvidia-ml.so.1", "libnvidia-ml.so", "");
    fprintf(file, "    ],\n    \"hooks\": [\n");
    write_hook(file, "\"restore-mounts\"", ",");
    write_hook(file, "\"put-cuda-remote\", \"" VGPU_FOLDER "\"", "");
    fprintf(file, "    ]\n  }\n");
}

static void write_spec(FILE *file, const struct found *found)
{
    fprintf(file, "{\n  \"cdiVersion\": \"0.5.0\",\n  \"kind\": \"" KIND "\",\n  \"devices\": [\n");
    for (int i = 0; i < found->count; i++) {
        write_device(file, name_of(found->paths[i]), found, i, 1);
        fprintf(file, ",\n");
    }
    write_device(file, "all", found, 0, found->count);
    fprintf(file, "\n  ],\n");
    write_edits(file);
    fprintf(file, "}\n");
}

/* By another name first: a runtime that reads meanwhile finds the old file or the new one. */
static bool replace_file(const struct found *found, const char *path)
{
    char *next = NULL;
    FILE *file;
    bool ok;

    if (asprintf(&next, "%s.new", path) < 0)
        return false;
    file = fopen(next, "we");
    if (file)
        write_spec(file, found);
    ok = file && !ferror(file);
    ok = file && !fclose(file) && ok && !rename(next, path);
    if (!ok) {
        fprintf(stderr, "vgpu-guest-cdi: %s cannot be written: %s\n", path, strerror(errno));
        unlink(next);
    }
    free(next);
    return ok;
}

static bool remove_file(const char *path)
{
    if (!unlink(path) || errno == ENOENT)
        return true;
    fprintf(stderr, "vgpu-guest-cdi: %s cannot be removed: %s\n", path, strerror(errno));
    return false;
}

static int show_usage(void)
{
    fprintf(stderr, "usage: vgpu-guest-cdi [--file FILE] [--node PATH]... | --version\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct found found = {.count = 0};
    const char *path = FILE_NAME;

    if (argc == 2 && !strcmp(argv[1], "--version"))
        return printf("vgpu-guest-cdi %s\n", VGPU_VERSION) < 0;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            return show_usage();
        if (!strcmp(argv[i], "--file"))
            path = argv[i + 1];
        else if (!strcmp(argv[i], "--node") && found.count < NODES &&
                 strlen(argv[i + 1]) < PATH_SIZE)
            strcpy(found.paths[found.count++], argv[i + 1]);
        else
            return show_usage();
    }
    umask(022);
    if (!found.count)
        find_nodes(&found);
    if (!found.count)
        return !remove_file(path);
    if (mkdir(FOLDER, 0755) < 0 && errno != EEXIST)
        perror("vgpu-guest-cdi: " FOLDER);
    return !replace_file(&found, path);
}
