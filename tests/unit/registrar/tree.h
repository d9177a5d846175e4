/* SPDX-License-Identifier: MIT */
/* A small file tree to run vgpu-registrar's commands in, and a driver that records its calls. */
#ifndef TESTS_UNIT_REGISTRAR_TREE_H
#define TESTS_UNIT_REGISTRAR_TREE_H

#include <glib.h>
#include <linux/vgpu.h>

#include "lib/host_root.h"

/**
 * Tree - a temporary directory that replaces /
 * @out, @log: output of the last command
 */
typedef struct {
    HostRoot *root;
    char *out;
    char *log;
} Tree;

Tree *tree_new(void);
void tree_free(Tree *tree);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Tree, tree_free)

/* Writes a file, with its directories. @path begins with a slash. */
void tree_write(Tree *tree, const char *path, const char *text);

void tree_link(Tree *tree, const char *path, const char *target);

/* A display controller with a driver (NULL: none). @resource: the lines of its resource file. */
void tree_pci_gpu(Tree *tree, const char *address, const char *driver, const char *resource);

/* An mdev parent with one type and the vGPUs @uuids (separated by blanks). */
void tree_mdev_type(Tree *tree, const char *parent, const char *type, const char *uuids);

/* Runs a command and returns its exit code. @gpu: NULL for --all, or for commands without GPU. */
int tree_run(Tree *tree, const char *command, const char *gpu);

#define assert_contains(text, part) g_assert_nonnull(strstr(text, part))

/**
 * FakeDriver - arguments and answers of control_call()
 * @fail: errno for every call; 0: succeed
 * @is_older: it refuses types with CUDA, which it does not know
 * @calls: calls so far
 * @request, @gpu, @types, @drained: of the last call
 */
typedef struct {
    int fail;
    gboolean is_older;
    guint calls;
    unsigned long request;
    struct vgpu_control_gpu gpu;
    struct vgpu_type_desc types[VGPU_MAX_TYPES];
    char removed[VGPU_GPU_NAME_LEN];
    struct vgpu_control_drain drained;
} FakeDriver;

extern FakeDriver fake_driver;

#endif
