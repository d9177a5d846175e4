// SPDX-License-Identifier: MIT
/* Memory that the program and this process have at the same addresses, in a range that both keep
 * free for it. */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHARED_MOST 65536u
#define PIECES_MOST 32768u /* of all that VMs lend: mappings, of which the kernel allows 65530 */

/* What the driver has registered, for a context. */
struct pin {
    struct pin *next;
    uint64_t address, context;
};

/* @users: requests that have addresses in it. @pieces: mappings of memory that was lent. */
struct part {
    uint64_t address, bytes;
    unsigned int users, pieces;
    struct pin *pins;
};

/* Sorted by address. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unused = PTHREAD_COND_INITIALIZER;
static struct part parts[SHARED_MOST];
static unsigned int count, pieces_count;
static uint64_t arena, arena_bytes;

int shared_reserve(uint64_t address, uint64_t bytes)
{
    void *at;

    if (!address || !bytes || address % 4096 || bytes % 4096 || address + bytes < address)
        return CONTROL_REFUSED;
    at = mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED)
        return errno == EEXIST ? CONTROL_OCCUPIED : CONTROL_NO_MEMORY;
    if ((uint64_t)(uintptr_t)at != address) {
        munmap(at, bytes);
        return CONTROL_OCCUPIED;
    }
    arena = address;
    arena_bytes = bytes;
    return CONTROL_OK;
}

/* The first that ends behind @address. */
static unsigned int part_behind(uint64_t address)
{
    unsigned int low = 0, high = count;

    while (low < high) {
        unsigned int middle = (low + high) / 2;

        if (parts[middle].address + parts[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whole pages of the arena in which nothing is. */
static bool is_free(uint64_t address, uint64_t bytes)
{
    unsigned int at = part_behind(address);

    return address % 4096 == 0 && bytes % 4096 == 0 && bytes && address >= arena &&
           bytes <= arena_bytes && address - arena <= arena_bytes - bytes &&
           (at == count || parts[at].address >= address + bytes);
}

/* Its size is fixed: who cuts it off would end us. */
static int make_memory(uint64_t bytes)
{
    int fd = memfd_create("vgpu-cuda", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    close(fd);
    return -1;
}

static void unmap_part(uint64_t address, uint64_t bytes)
{
    mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void insert_part(uint64_t address, uint64_t bytes, unsigned int pieces)
{
    unsigned int at = part_behind(address);

    memmove(&parts[at + 1], &parts[at], (count - at) * sizeof(*parts));
    parts[at] = (struct part){.address = address, .bytes = bytes, .pieces = pieces};
    count++;
    pieces_count += pieces;
}

int shared_add(uint64_t address, uint64_t bytes, int *fd)
{
    int result = CONTROL_REFUSED;

    pthread_mutex_lock(&lock);
    if (is_free(address, bytes)) {
        *fd = count < SHARED_MOST ? make_memory(bytes) : -1;
        result = *fd >= 0 && mmap((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_FIXED, *fd, 0) != MAP_FAILED
                     ? CONTROL_OK
                     : CONTROL_NO_MEMORY;
        if (result == CONTROL_OK) {
            insert_part(address, bytes, 0);
        } else if (*fd >= 0) {
            close(*fd);
            *fd = -1;
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/*
 * The file's memory is mapped by pieces, each of which ends where it has a hole
 * (uapi/linux/vgpu.h). How many there are; 0: it cannot be mapped.
 */
static unsigned int map_pieces(uint64_t address, uint64_t bytes, int fd)
{
    unsigned int pieces = 0;

    for (uint64_t from = 0, to; from < bytes; from = to, pieces++) {
        off_t end = lseek(fd, (off_t)from, SEEK_HOLE);

        to = end > 0 && (uint64_t)end < bytes ? (uint64_t)end : bytes;
        if (end < 0 || to <= from || pieces_count + pieces >= PIECES_MOST ||
            mmap((void *)(uintptr_t)(address + from), to - from, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd, (off_t)from) == MAP_FAILED) {
            unmap_part(address, bytes);
            return 0;
        }
    }
    return pieces;
}

int shared_borrow(uint64_t address, uint64_t bytes, int fd)
{
    int result = CONTROL_REFUSED;

    pthread_mutex_lock(&lock);
    if (is_free(address, bytes)) {
        unsigned int pieces = count < SHARED_MOST ? map_pieces(address, bytes, fd) : 0;

        if (pieces)
            insert_part(address, bytes, pieces);
        result = pieces ? CONTROL_OK : CONTROL_NO_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* The part that begins there, or that has all these bytes; NULL: there is none. */
static struct part *part_at(uint64_t address, uint64_t bytes)
{
    unsigned int at = part_behind(address);

    if (at == count || address < parts[at].address || bytes > parts[at].bytes ||
        address - parts[at].address > parts[at].bytes - bytes)
        return NULL;
    return &parts[at];
}

/*
 * When no request uses it any more. The place is kept. What the driver has registered is not ended,
 * for the GPU may write to it though it is not mapped here.
 */
int shared_end(uint64_t address)
{
    int result = CONTROL_REFUSED;
    struct part *part;

    pthread_mutex_lock(&lock);
    while ((part = part_at(address, 1)) && part->users)
        pthread_cond_wait(&unused, &lock);
    if (part && part->address == address && !part->pins) {
        unmap_part(address, part->bytes);
        pieces_count -= part->pieces;
        memmove(part, part + 1, (size_t)(&parts[count] - part - 1) * sizeof(*part));
        count--;
        result = CONTROL_OK;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

bool shared_use(uint64_t address, uint64_t bytes)
{
    struct part *part;

    pthread_mutex_lock(&lock);
    part = part_at(address, bytes);
    if (part)
        part->users++;
    pthread_mutex_unlock(&lock);
    return part != NULL;
}

void shared_leave(uint64_t address)
{
    struct part *part;

    pthread_mutex_lock(&lock);
    part = part_at(address, 1);
    if (part && --part->users == 0)
        pthread_cond_broadcast(&unused);
    pthread_mutex_unlock(&lock);
}

bool shared_add_pin(uint64_t address, uint64_t context)
{
    struct pin *pin = malloc(sizeof(*pin));
    struct part *part;

    pthread_mutex_lock(&lock);
    part = pin ? part_at(address, 1) : NULL;
    if (part) {
        *pin = (struct pin){.next = part->pins, .address = address, .context = context};
        part->pins = pin;
    }
    pthread_mutex_unlock(&lock);
    if (!part)
        free(pin);
    return part != NULL;
}

void shared_end_pin(uint64_t address)
{
    struct pin **place, *pin = NULL;
    struct part *part;

    pthread_mutex_lock(&lock);
    part = part_at(address, 1);
    for (place = part ? &part->pins : &pin; *place && (*place)->address != address;)
        place = &(*place)->next;
    pin = *place;
    if (pin)
        *place = pin->next;
    pthread_mutex_unlock(&lock);
    free(pin);
}

uint64_t shared_pin_of(uint64_t context)
{
    uint64_t address = 0;

    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < count && !address; i++)
        for (const struct pin *pin = parts[i].pins; pin && !address; pin = pin->next)
            address = pin->context == context ? pin->address : 0;
    pthread_mutex_unlock(&lock);
    return address;
}
