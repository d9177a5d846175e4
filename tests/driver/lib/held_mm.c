// SPDX-License-Identifier: MIT
#include "held_mm.h"

#include <fcntl.h>
#include <glib.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver_test.h"

void held_mm_need(void)
{
    if (access(HELD_MM_NODE, F_OK))
        driver_test_skip("the module mm_holder is not there");
}

void *held_mm_thread(void *data)
{
    char text[16];
    int fd = open(HELD_MM_NODE, O_WRONLY | O_CLOEXEC);
    int n = g_snprintf(text, sizeof(text), "%d", HELD_MM_MS);

    if (fd < 0 || write(fd, text, (size_t)n) != n)
        abort();
    close(fd);
    return data;
}
