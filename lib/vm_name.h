/* SPDX-License-Identifier: MIT */
/*
 * VMs by their processes: QEMU's command line, or the cgroup that systemd-machined made for it,
 * says which VM it is.
 */
#ifndef MODES_VM_NAME_H
#define MODES_VM_NAME_H

#include <glib.h>

/*
 * The name of the VM whose VMM the process is; NULL: it is none. @dir: as /proc/123. @cgroup: its
 * text there, or NULL. To be freed.
 */
char *vm_name_of_process(const char *dir, const char *cgroup);

/* Whether there is a process of a VM of that name. Reads all of /proc. */
gboolean vm_is_running(const char *root, const char *name);

#endif
