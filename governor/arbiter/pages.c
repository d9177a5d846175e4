// SPDX-License-Identifier: MIT
#include "pages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_BYTES 4096

_Static_assert(sizeof(struct governor_usage) <= PAGE_BYTES, "a member has one page for each");

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Mapped with @prot first: seals apply to later mappings. */
static void *page_new(const char *name, int prot, int seals, int *fd)
{
    void *page = MAP_FAILED;

    *fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0)
        return NULL;
    if (ftruncate(*fd, PAGE_BYTES) == 0)
        page = mmap(NULL, PAGE_BYTES, prot, MAP_SHARED, *fd, 0);
    if (page != MAP_FAILED && fcntl(*fd, F_ADD_SEALS, seals) < 0) {
        munmap(page, PAGE_BYTES);
        page = MAP_FAILED;
    }
    if (page != MAP_FAILED)
        return page;
    close(*fd);
    return NULL;
}

bool pages_new(struct pages *pages, int fds[2])
{
    int error;

    pages->grant = page_new("governor-grant", PROT_READ | PROT_WRITE,
                            SIZE_SEALS | F_SEAL_FUTURE_WRITE, &fds[0]);
    if (!pages->grant)
        return false;
    pages->usage = page_new("governor-usage", PROT_READ, SIZE_SEALS, &fds[1]);
    if (pages->usage)
        return true;
    error = errno;
    close(fds[0]);
    munmap(pages->grant, PAGE_BYTES);
    pages->grant = NULL;
    errno = error;
    return false;
}

void pages_free(struct pages *pages)
{
    if (!pages->grant)
        return;
    munmap(pages->grant, PAGE_BYTES);
    munmap((void *)pages->usage, PAGE_BYTES);
    *pages = (struct pages){0};
}

void pages_wake(struct governor_class_grant *grant)
{
    atomic_fetch_add_explicit(&grant->sequence, 1, memory_order_release);
    syscall(SYS_futex, &grant->sequence, FUTEX_WAKE, 1, NULL, NULL, 0);
}
