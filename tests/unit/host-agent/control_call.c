/* SPDX-License-Identifier: MIT */
/* The driver's control device for the tests of vgpud. */
#include "tests/unit/host-agent/control_call.h"

#include <errno.h>

#include "lib/control.h"

ControlCall *control_call_hook;

int control_call(int fd, unsigned long request, void *argument)
{
    (void)fd;
    if (control_call_hook)
        return control_call_hook(request, argument);
    errno = ENOTTY;
    return -1;
}
