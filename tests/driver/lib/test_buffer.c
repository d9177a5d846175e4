// SPDX-License-Identifier: MIT
#include "test_buffer.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../holder/mm_holder.h"
#include "driver_test.h"
#include "held_mm.h"

static int holder_call(unsigned long request, void *arg)
{
    int fd, ret;

    held_mm_need();
    fd = open(HELD_MM_NODE, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(fd, >=, 0);
    ret = ioctl(fd, request, arg);
    g_assert_cmpint(ret, >=, 0);
    close(fd);
    return ret;
}

void test_buffer_faults(unsigned again, unsigned delay_ms)
{
    struct holder_faults faults = {.again = again, .delay_ms = delay_ms};

    holder_call(HOLDER_FAULTS, &faults);
}

void test_buffer_faults_fail(void)
{
    struct holder_faults faults = {.sigbus = 1};

    holder_call(HOLDER_FAULTS, &faults);
}

int test_buffer_count(void)
{
    return holder_call(HOLDER_COUNT, NULL);
}
