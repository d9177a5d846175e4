// SPDX-License-Identifier: MIT
#include "held_mm.h"

#include <fcntl.h>
#include <glib.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../holder/mm_holder.h"
#include "driver_test.h"

void held_mm_need(void)
{
    if (access(HELD_MM_NODE, F_OK))
        driver_test_skip("the module mm_holder is not there");
}

static void hold_mm(int ms)
{
    char text[16];
    int fd = open(HELD_MM_NODE, O_WRONLY | O_CLOEXEC);
    int n = g_snprintf(text, sizeof(text), "%d", ms);

    if (fd < 0 || write(fd, text, (size_t)n) != n)
        abort();
    close(fd);
}

void *held_mm_thread(void *data)
{
    hold_mm(HELD_MM_MS);
    return data;
}

void *held_mm_long_thread(void *data)
{
    hold_mm(HELD_MM_LONG_MS);
    return data;
}

static int call_holder(unsigned long request)
{
    int fd = open(HELD_MM_NODE, O_RDWR | O_CLOEXEC);
    int ret = fd < 0 ? -1 : ioctl(fd, request);

    if (ret < 0)
        abort();
    close(fd);
    return ret;
}

void held_mm_let_go(void)
{
    call_holder(HOLDER_LET_GO);
}

bool held_mm_is_held(void)
{
    return call_holder(HOLDER_HELD) > 0;
}

void held_mm_wait(void)
{
    for (int ms = 0; ms < HELD_MM_LONG_MS && !held_mm_is_held(); ms += 10)
        g_usleep(10000);
}
