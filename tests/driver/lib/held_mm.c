// SPDX-License-Identifier: MIT
#include "held_mm.h"

#include <fcntl.h>
#include <glib.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver_test.h"

#define HOLDER "/dev/vgpu-test-holder"

void held_mm_need(void)
{
    if (access(HOLDER, F_OK))
        driver_test_skip("the module mm_holder is not there");
}

void *held_mm_thread(void *data)
{
    char text[16];
    int fd = open(HOLDER, O_WRONLY | O_CLOEXEC);
    int n = g_snprintf(text, sizeof(text), "%d", HELD_MM_MS);

    if (fd < 0 || write(fd, text, (size_t)n) != n)
        abort();
    close(fd);
    return data;
}
