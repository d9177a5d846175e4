/* SPDX-License-Identifier: MIT */
/* The driver for the callout's tests: each announcement is a line of its control node, a file. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/control.h"

int control_call(int fd, unsigned long request, void *argument)
{
    const struct vgpu_control_announce *announced = argument;

    if (request != VGPU_CONTROL_ANNOUNCE) {
        errno = ENOTTY;
        return -1;
    }
    lseek(fd, 0, SEEK_END);
    dprintf(fd, "%s %s %02x%02x..%02x %llu\n", announced->gpu, announced->type, announced->uuid[0],
            announced->uuid[1], announced->uuid[VGPU_UUID_LEN - 1],
            (unsigned long long)announced->vram_bytes);
    return 0;
}
