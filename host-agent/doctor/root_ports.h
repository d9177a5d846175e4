/* SPDX-License-Identifier: MIT */
/*
 * Room for a vGPU's window behind the root ports of a running VM. Firmware allocates it when the VM
 * starts. A window that does not fit leaves the guest without GPU memory, and the cause is hard to
 * see.
 */
#ifndef DOCTOR_ROOT_PORTS_H
#define DOCTOR_ROOT_PORTS_H

#include <glib.h>

/* What a person can do about it. */
#define ROOT_PORTS_ADVICE "\"Room for the window\" in docs/vms.md"

/**
 * RootPorts - the free root ports of a VM
 * @count: how many
 * @window: bytes of the smallest prefetchable window among them: libvirt takes any
 */
typedef struct {
    guint count;
    guint64 window;
} RootPorts;

/*
 * Those of the VM @name, as QEMU has them. @uri: of libvirt; NULL: the usual one. FALSE: it does
 * not say.
 */
gboolean root_ports_read(const char *uri, const char *name, RootPorts *ports);

#endif
