/* SPDX-License-Identifier: MIT */
/*
 * A container whose image gets the CUDA door, by the hook as a program, in a mount namespace of the
 * test's own.
 */
#ifndef TESTS_UNIT_CONTAINER_HOOKS_CONTAINER_H
#define TESTS_UNIT_CONTAINER_HOOKS_CONTAINER_H

#include "lib/host_root.h"

#if defined(__aarch64__)
#define LIBS "/usr/lib/aarch64-linux-gnu"
#else
#define LIBS "/usr/lib/x86_64-linux-gnu"
#endif
#define DOOR "/usr/lib/mdev-vgpu"
#define CUDA LIBS "/libcuda.so.1"
#define ML   LIBS "/libnvidia-ml.so.1"

/* Without what the image's environment and other devices may add. */
#define PLAIN ""

#define MOUNT(source, destination)                                                                 \
    "{\"source\":\"" source "\",\"destination\":\"" destination "\",\"options\":[\"bind\"]}"

/**
 * Container
 * @tree: the folder with its config.json, and the image as "image"
 * @bundle, @image: their paths
 */
typedef struct {
    HostRoot *tree;
    char *bundle;
    char *image;
} Container;

/* As g_test_init(), and what the program mounts from now on is nobody else's. */
void container_test_init(int *argc, char ***argv);

/* Without an image. */
Container container_empty(void);
/* With the door in its image, which has no folder of libraries. */
Container container_without_folder(void);
Container container_new(void);
/* What is mounted in its image is unmounted. */
void container_free(Container *c);

/* In its image. */
void container_put(const Container *c, const char *path, const char *text);
void container_put_link(const Container *c, const char *path, const char *target);
/* What CDI's mounts have put there when the hook runs: the door, and the host's driver. */
void container_put_driver(const Container *c);

/* @environment: more variables. @mount: one mount more. Both as JSON, after a comma. */
void container_put_config(const Container *c, const char *environment, const char *mount);
/* What a runtime says of it. To be freed. */
char *container_state(const Container *c);
/* The hook's status; @said: what it said, to be freed. */
int container_run_hook(const Container *c, const char *arguments, const char *state, char **said);

/* Runs the hook for the CUDA door, which says nothing. */
void container_put_door(const Container *c, const char *environment, const char *mount);
/* Runs it, and it fails with @words. */
void container_assert_refused(const Container *c, const char *environment, const char *mount,
                              const char *words);

/* NULL: there is no such file, or link. */
void assert_file_in(const char *dir, const char *path, const char *expected);
void container_assert_link(const Container *c, const char *path, const char *expected);

/* How many mounts are in its image. */
guint container_count_mounts(const Container *c);
void container_bind(const Container *c, const char *source, const char *path, unsigned long flags);
void container_unbind(const Container *c, const char *path);

#endif
