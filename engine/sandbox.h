/* SPDX-License-Identifier: MIT */
/*
 * Limits what this process and the render workers may reach: with Landlock, the vGPU's own GPU and
 * nothing of another one. The systemd unit has restricted the rest before.
 */
#ifndef ENGINE_SANDBOX_H
#define ENGINE_SANDBOX_H

#include <glib.h>
#include <stdbool.h>

/* Keeps only what the renderer needs in the environment, and adds NAME=VALUE of @extra. */
void sandbox_clean_environment(const char *const *extra);

/* One more program that may be run, in the sandbox that is entered later. @path stays the caller's.
 */
void sandbox_allow_program(const char *path);

/*
 * From here on only system libraries and configuration can be read, only @nodes (NULL terminated;
 * missing ones are skipped) be used, and only below the directory @shader_cache (NULL: none) can
 * files be made. False with @error set if the kernel does not support it.
 */
bool sandbox_enter(const char *const *nodes, const char *shader_cache, GError **error);

#endif /* ENGINE_SANDBOX_H */
