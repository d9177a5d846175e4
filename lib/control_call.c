/* SPDX-License-Identifier: MIT */
#include <sys/ioctl.h>

#include "lib/control.h"

int control_call(int fd, unsigned long request, void *argument)
{
    return ioctl(fd, request, argument);
}
