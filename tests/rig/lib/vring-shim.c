// SPDX-License-Identifier: MIT
/*
 * LD_PRELOAD for the outer QEMU: mends how QEMU (9.0 and later, 10.0.13 looked at) writes to
 * virtqueues behind an IOMMU.
 *
 * address_space_write_cached_slow() translates the address it is given once, and where the
 * translation ends with a page it goes on at the next page of host memory, not at the next page of
 * the device. An entry of a used ring is 8 bytes at 4 modulo 8, so one of them lies across each
 * page boundary. virtio-gpu's ring of 1024 has such a boundary, and Linux makes it of single pages:
 * once in 1024 commands the length of an answer, mostly 24, was written over the first 4 bytes of a
 * page of L1 that belonged to somebody else. In page tables, maple nodes and free memory it was
 * seen.
 *
 * Words of 4 bytes, which lie in one page each, are translated each for itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* QEMU's MEMTXATTRS_UNSPECIFIED, as it is passed in a register. */
#define ATTRS_UNSPECIFIED (1ull << 32)

typedef void store_fn(void *cache, uint64_t addr, uint32_t value, uint64_t attrs, uint32_t *result);

static store_fn *store_long, *store_byte;

static uint32_t write_cached(void *cache, uint64_t addr, const void *buf, uint64_t len)
{
    const unsigned char *from = buf;
    uint32_t failed = 0;

    while (len) {
        uint32_t size = addr % 4 == 0 && len >= 4 ? 4 : 1;
        uint32_t value = 0, result = 0;

        memcpy(&value, from, size);
        (size == 4 ? store_long : store_byte)(cache, addr, value, ATTRS_UNSPECIFIED, &result);
        failed |= result;
        addr += size;
        from += size;
        len -= size;
    }
    return failed;
}

/* Lets @function, which has been called by nobody yet, go on in @instead. */
static int replace(unsigned char *function, const void *instead)
{
    /* endbr64; movabs $instead, %rax; jmp *%rax */
    unsigned char jump[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)function & ~(page - 1));

    memcpy(jump + 6, &instead, sizeof(instead));
    if (mprotect(start, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC))
        return -1;
    memcpy(function, jump, sizeof(jump));
    return mprotect(start, 2 * page, PROT_READ | PROT_EXEC);
}

__attribute__((constructor)) static void mend(void)
{
    unsigned char *slow;

    if (strncmp(program_invocation_short_name, "qemu-system-", 12))
        return;
    slow = dlsym(RTLD_DEFAULT, "address_space_write_cached_slow");
    *(void **)&store_long = dlsym(RTLD_DEFAULT, "address_space_stl_le_cached_slow");
    *(void **)&store_byte = dlsym(RTLD_DEFAULT, "address_space_stb_cached_slow");
    if (!slow || !store_long || !store_byte || replace(slow, (const void *)write_cached)) {
        fputs("vring shim: it does not fit this QEMU, whose GPU would write over L1's memory\n",
              stderr);
        _exit(75);
    }
}
