/* SPDX-License-Identifier: MIT */
/*
 * The kernel's side of a recorded host: the effects of writes to its attributes, the vGPU driver's
 * control device, mdevctl and systemctl. And processes that have device nodes open.
 */
#ifndef TESTS_UNIT_FAKE_KERNEL_H
#define TESTS_UNIT_FAKE_KERNEL_H

#include <glib.h>

#include "lib/host_root.h"

/*
 * From now on it is that of the host at @root, and starts empty. Every GPU of the host can be
 * unbound.
 */
void fake_kernel_use(HostRoot *root);

/*
 * The actions so far, as "write /sys/… TEXT", "run mdevctl …", "add GPU", "remove GPU", "drain
 * GPU", "update GPU BYTES TYPE…", in a line each.
 */
char *fake_kernel_done(void);

/* Some lines of it, one after the other, are there; are not. */
void assert_done(const char *expected);
void assert_not_done(const char *unexpected);

/*
 * The call after the next @count fails, and all later ones: as if the power were cut there.
 * G_MAXUINT: none.
 */
void fake_kernel_cut_after(guint count);

/* Writes to paths that end with @suffix fail; NULL: none. */
void fake_kernel_refuse(const char *suffix);

/* Once, as soon as an action that begins like this is done: @func, in the agent's thread. */
void fake_kernel_then(const char *action, void (*func)(HostRoot *root));

/* What programs print that are run from now on. */
void fake_kernel_say(const char *output);

/* The GPU's vGPUs have so much memory; NULL: they have none. */
void fake_kernel_promise(const char *gpu, guint64 bytes);

/* Whether the driver has drained the GPU. */
gboolean fake_kernel_drained(const char *gpu);

/* What the kernel gives to no process: the code under test leaves out its own. */
#define FAKE_PID_MIN 4194305u

/*
 * A process with one node open. @pid: FAKE_PID_MIN at least. @name: of a VM, or NULL. @cgroup: or
 * NULL.
 */
void fake_process(HostRoot *root, guint pid, const char *comm, const char *name, const char *cgroup,
                  const char *node);

/* It closes its node. */
void fake_process_closes(HostRoot *root, guint pid);

#endif
