// SPDX-License-Identifier: MIT
/* Memory of the host behind the card's addresses. */
#include "content.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../card.h"

/* memory.c gives out addresses that are so far apart, and so many. */
#define APART_SHIFT 36
#define PLACES      32768u
#define LOCKED_MOST 256u

struct content {
    uint64_t address;
    uint64_t bytes;
    uint8_t *host;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct content contents[PLACES];
static struct ptx_range locked[LOCKED_MOST];

bool content_is_on(void)
{
    static _Atomic int known;

    if (!known)
        known = card_setting("FAKE_CUDA_CONTENT", 0) ? 2 : 1;
    return known == 2;
}

static struct content *content_at(uint64_t address)
{
    uint64_t place = address >> APART_SHIFT;

    return place < PLACES ? &contents[place] : NULL;
}

static uint8_t *map(void *at, uint64_t bytes, int protection, int flags)
{
    void *mapped =
        mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

    return mapped == MAP_FAILED ? NULL : mapped;
}

static bool add_range(CUdeviceptr at, uint64_t bytes, int protection)
{
    struct content *content = content_at(at);
    uint8_t *host;

    if (!content_is_on() || !content)
        return true;
    host = map(NULL, bytes, protection, 0);
    if (host)
        *content = (struct content){at, bytes, host};
    return host != NULL;
}

bool content_add(CUdeviceptr at, uint64_t bytes)
{
    return add_range(at, bytes, PROT_READ | PROT_WRITE);
}

bool content_reserve(CUdeviceptr at, uint64_t bytes)
{
    return add_range(at, bytes, PROT_NONE);
}

/* NULL: these addresses are not reserved, or not all of them. */
static uint8_t *reserved_at(CUdeviceptr at, uint64_t bytes)
{
    const struct content *content = content_at(at);

    return content && content->host && at - content->address < content->bytes &&
                   bytes <= content->bytes - (at - content->address)
               ? content->host + (at - content->address)
               : NULL;
}

bool content_back(CUdeviceptr at, uint64_t bytes, int fd, uint64_t offset)
{
    uint8_t *host = reserved_at(at, bytes);

    return !content_is_on() || (host && mmap(host, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd,
                                             (off_t)offset) == host);
}

bool content_allow(CUdeviceptr at, uint64_t bytes)
{
    uint8_t *host = reserved_at(at, bytes);

    return !content_is_on() || (host && mprotect(host, bytes, PROT_READ | PROT_WRITE) == 0);
}

void content_unback(CUdeviceptr at, uint64_t bytes)
{
    uint8_t *host = reserved_at(at, bytes);

    if (content_is_on() && host)
        map(host, bytes, PROT_NONE, MAP_FIXED);
}

void content_remove(CUdeviceptr at)
{
    struct content *content = content_at(at);

    if (!content_is_on() || !content || !content->host)
        return;
    munmap(content->host, content->bytes);
    *content = (struct content){0};
}

bool content_share(CUdeviceptr at)
{
    struct content *content = content_at(at);
    uint8_t *host;

    if (!content_is_on() || !content || !content->host)
        return true;
    host = map((void *)(uintptr_t)at, content->bytes, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);
    if (host != (uint8_t *)(uintptr_t)at)
        return false;
    munmap(content->host, content->bytes);
    content->host = host;
    return true;
}

void content_lock(const void *at, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < LOCKED_MOST && bytes; i++)
        if (!locked[i].bytes) {
            locked[i] = (struct ptx_range){(uintptr_t)at, bytes, (uint8_t *)(uintptr_t)at};
            break;
        }
    pthread_mutex_unlock(&lock);
}

void content_unlock(const void *at)
{
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < LOCKED_MOST; i++)
        if (locked[i].bytes && locked[i].host == at)
            locked[i] = (struct ptx_range){0};
    pthread_mutex_unlock(&lock);
}

static struct ptx_range find_locked(uint64_t address)
{
    struct ptx_range found = {0};

    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < LOCKED_MOST && !found.bytes; i++)
        if (address - locked[i].address < locked[i].bytes)
            found = locked[i];
    pthread_mutex_unlock(&lock);
    return found;
}

struct ptx_range content_find(void *user, uint64_t address)
{
    const struct content *content = content_at(address);

    (void)user;
    if (content && content->host && address - content->address < content->bytes)
        return (struct ptx_range){content->address, content->bytes, content->host};
    return find_locked(address);
}
