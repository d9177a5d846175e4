// SPDX-License-Identifier: MIT
#include "transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A container has a socket, and a VM a render node. Who names one of them wants no other. */
const struct transport *transport_find(uint16_t minor, const char **path, const char **why)
{
    const char *named = getenv("VGPU_CUDA_SOCKET");
    const char *node = getenv("VGPU_CUDA_NODE");
    const char *socket = named && *named ? named : CONTROL_SOCKET;
    int reason;

    if (node && *node && socket != named) {
        *path = node;
        *why = "it cannot be opened, or is no vGPU's that offers CUDA";
        return transport_virtio.open(node, minor) ? &transport_virtio : NULL;
    }
    if (transport_socket.open(socket, minor))
        return &transport_socket;
    reason = errno;
    if (socket != named && transport_virtio.open(NULL, minor))
        return &transport_virtio;
    *path = socket;
    *why = socket != named && reason == ENOENT
               ? "it is not there, and no vGPU's render node offers CUDA"
               : strerror(reason);
    return NULL;
}
