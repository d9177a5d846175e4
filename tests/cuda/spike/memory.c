// SPDX-License-Identifier: MIT
/* Unknowns 6 and 7: memory that the GPU shall reach, and memory that it must not. */
#include "spike.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PINNED_BYTES (4u << 20)
#define REGISTER_ALL 3u /* for all contexts, and mapped on the GPU */

#define PIECES 64u
#define PIECE  (PINNED_BYTES / PIECES)

/* The file's pieces, the last one first: as many mappings. */
static bool map_pieces(uint8_t *at, int fd)
{
    for (unsigned int i = 0; i < PIECES; i++)
        if (mmap(at + i * PIECE, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                 (off_t)((PIECES - 1 - i) * PIECE)) == MAP_FAILED)
            return false;
    return true;
}

/* @word: where the file has what begins at @at. */
static void register_memory(void *at, volatile unsigned int *word, const char *what)
{
    CUdeviceptr device = 0;
    CUresult result;

    spike_step("memory is registered");
    result =
        DRIVER(cuMemHostRegister_v2, void *, size_t, unsigned int)(at, PINNED_BYTES, REGISTER_ALL);
    if (result != CUDA_SUCCESS)
        spike_verdict(VERDICT_NO, "cuMemHostRegister of %s: error %d", what, (int)result);
    spike_need(
        DRIVER(cuMemHostGetDevicePointer_v2, CUdeviceptr *, void *, unsigned int)(&device, at, 0),
        "cuMemHostGetDevicePointer");
    if (device != (uintptr_t)at)
        spike_verdict(VERDICT_NO, "the GPU has it at 0x%llx, the process at %p",
                      (unsigned long long)device, at);
    word[1] = 41;
    result = card_count_at(device + 4);
    if (result != CUDA_SUCCESS || word[1] != 42)
        spike_verdict(VERDICT_NO, "a kernel does not reach %s: error %d, 41 + 1 is %u", what,
                      (int)result, word[1]);
    spike_need(DRIVER(cuMemHostUnregister, void *)(at), "cuMemHostUnregister");
}

/* A VM's memory that is lent is in pieces, as its kernel has given them to the program. */
void ask_pinned(void)
{
    int fd = memfd_create("spike", MFD_CLOEXEC);
    uint8_t *at, *elsewhere;

    if (fd < 0 || ftruncate(fd, PINNED_BYTES) < 0)
        spike_verdict(VERDICT_NOT_ASKED, "no memory: %s", strerror(errno));
    at = mmap((void *)(uintptr_t)ARENA, PINNED_BYTES, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
    elsewhere = mmap(NULL, PINNED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED || elsewhere == MAP_FAILED)
        spike_verdict(VERDICT_NOT_ASKED, "the range is taken: %s", strerror(errno));
    card_open();
    register_memory(at, (void *)elsewhere, "it");
    if (!map_pieces(at, fd))
        spike_verdict(VERDICT_NOT_ASKED, "no mappings: %s", strerror(errno));
    register_memory(at, (void *)(elsewhere + (PIECES - 1) * PIECE), "pieces of it");
    spike_verdict(VERDICT_YES,
                  "a kernel's store is seen in another mapping of it, and of %u pieces", PIECES);
}

/* Of nvidia-uvm, as cuda-remote/worker/host_memory.c has it. */
#define UVM_INITIALIZE         0x30000001ul
#define UVM_WITHOUT_HMM        1ull
#define PAGEABLE_MEMORY_ACCESS 88

struct uvm_initialize {
    uint64_t flags;
    uint32_t status;
};

static bool keeps_out;
static unsigned int begun; /* how often the driver began with nvidia-uvm by this function */

/* The driver's calls come here: this is the program's own, and goes before the C library's. */
__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    void *argument;

    va_start(list, request);
    argument = va_arg(list, void *);
    va_end(list);
    if (request == UVM_INITIALIZE && argument) {
        begun++;
        if (keeps_out)
            ((struct uvm_initialize *)argument)->flags |= UVM_WITHOUT_HMM;
    }
    return (int)syscall(SYS_ioctl, fd, request, argument);
}

static int attribute(void)
{
    int reaches = -1;

    card_open();
    spike_step("the attribute is read");
    spike_need(
        DRIVER(cuDeviceGetAttribute, int *, int, CUdevice)(&reaches, PAGEABLE_MEMORY_ACCESS, 0),
        "cuDeviceGetAttribute");
    return reaches;
}

/* Without the flag, in a process of its own. */
void host_memory_attribute(int fd)
{
    int reaches = attribute();

    _exit(write(fd, &reaches, sizeof(reaches)) != sizeof(reaches));
}

static int attribute_without_flag(void)
{
    int ends[2], reaches = -1;
    pid_t pid;

    if (pipe(ends) < 0 || (pid = fork()) < 0)
        spike_verdict(VERDICT_NOT_ASKED, "cannot start a process: %s", strerror(errno));
    if (!pid)
        spike_again("host-memory-attribute", ends[1]);
    close(ends[1]);
    if (read(ends[0], &reaches, sizeof(reaches)) != sizeof(reaches))
        _exit(0);
    waitpid(pid, NULL, 0);
    return reaches;
}

void ask_host_memory(void)
{
    int natively = attribute_without_flag(), reaches;
    unsigned int *heap = malloc(4096);
    CUresult result;

    keeps_out = true;
    reaches = attribute();
    if (reaches)
        spike_verdict(VERDICT_NO,
                      "attribute %d is %d natively and %d with the flag, which %u of the driver's "
                      "calls got: the host needs uvm_disable_hmm=1",
                      PAGEABLE_MEMORY_ACCESS, natively, reaches, begun);
    *heap = 41;
    result = card_count_at((uintptr_t)heap);
    if (result == CUDA_SUCCESS || *heap != 41)
        spike_verdict(VERDICT_NO,
                      "attribute %d is 0, but a kernel reaches the heap: error %d, 41 is %u",
                      PAGEABLE_MEMORY_ACCESS, (int)result, *heap);
    spike_verdict(VERDICT_YES,
                  "attribute %d is %d natively and 0 with the flag, which %u of the driver's calls "
                  "got; a kernel that reads the heap ends with error %d",
                  PAGEABLE_MEMORY_ACCESS, natively, begun, (int)result);
}
