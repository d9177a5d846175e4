// SPDX-License-Identifier: MIT
/*
 * A kernel of the program may follow any pointer that the GPU can. Where the host's driver lets
 * GPUs read and write all memory of a process (HMM, ATS), that would be this process: with one
 * store the program would be in here. So it is asked of the driver that it does not, and checked.
 */
#include "worker.h"

#include "numbers.h"

#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of nvidia-uvm: by this the driver begins with a process, with flags. */
#define UVM_INITIALIZE  0x30000001ul
#define UVM_WITHOUT_HMM 1ull

struct uvm_initialize {
    uint64_t flags;
    uint32_t status;
};

#define PAGEABLE_MEMORY_ACCESS 88

/* The driver's calls come here: this is the program's own ioctl(), and goes before the C library's.
 */
__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    void *argument;

    va_start(list, request);
    argument = va_arg(list, void *);
    va_end(list);
    if (request == UVM_INITIALIZE && argument)
        ((struct uvm_initialize *)argument)->flags |= UVM_WITHOUT_HMM;
    return (int)syscall(SYS_ioctl, fd, request, argument);
}

bool driver_keeps_out(void)
{
    CUresult (*count)(int *) = driver_function(CALL_cuDeviceGetCount);
    CUresult (*get)(CUdevice *, int) = driver_function(CALL_cuDeviceGet);
    CUresult (*ask)(int *, int, CUdevice) = driver_function(CALL_cuDeviceGetAttribute);
    int devices = 0;

    if (!count || !get || !ask || count(&devices) != CUDA_SUCCESS)
        return false;
    for (int i = 0; i < devices; i++) {
        CUdevice device;
        int reaches = 1;

        if (get(&device, i) == CUDA_SUCCESS &&
            ask(&reaches, PAGEABLE_MEMORY_ACCESS, device) == CUDA_SUCCESS && !reaches)
            continue;
        worker_say(
            "no CUDA: GPU %d reaches all memory of this process, so its program would, too; "
            "put \"options nvidia-uvm uvm_disable_hmm=1\" into /etc/modprobe.d and load the "
            "module again. A GPU that shares the processor's page tables (ATS) can't be used",
            i);
        return false;
    }
    return true;
}
