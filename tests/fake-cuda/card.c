// SPDX-License-Identifier: MIT
#include "card.h"

#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct file {
    struct card card;
    struct timing timing;
} *file;

uint64_t card_setting(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);

    return value ? strtoull(value, NULL, 10) : otherwise;
}

int card_devices(void)
{
    int count = (int)card_setting("FAKE_CUDA_DEVICES", 1);

    return count > CARD_DEVICES ? CARD_DEVICES : count;
}

const char *card_pci(int device)
{
    const char *address = getenv("FAKE_CUDA_PCI");

    if (device)
        return device == 1 ? CARD_PCI_2 : CARD_PCI_3;
    return address && strlen(address) == strlen(CARD_PCI) ? address : CARD_PCI;
}

static void make(struct file *in)
{
    struct card *made = &in->card;
    pthread_mutexattr_t shared;

    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&made->lock, &shared);
    pthread_mutex_init(&in->timing.lock, &shared);
    made->total = card_setting("FAKE_CUDA_TOTAL", 1u << 30);
    made->ready = 1;
}

static void map(void)
{
    const char *path = getenv("FAKE_CUDA_CARD");
    struct stat status;
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)
                  : memfd_create("fake-cuda", MFD_CLOEXEC);

    if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &status) < 0)
        abort();
    /* Who may only write to it finds it with its size. */
    if (status.st_size != sizeof(*file) && ftruncate(fd, sizeof(*file)) < 0)
        abort();
    file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED)
        abort();
    if (!file->card.ready)
        make(file);
    /* The mapping has the file open, too. */
    flock(fd, LOCK_UN);
    close(fd);
}

struct card *card_get(void)
{
    pthread_once(&once, map);
    return &file->card;
}

static void lock(struct card *locked)
{
    if (pthread_mutex_lock(&locked->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&locked->lock);
    for (int i = 0; i < CARD_PROCESSES; i++) {
        struct card_process *process = &locked->processes[i];

        if (process->pid && kill(process->pid, 0) < 0 && errno == ESRCH) {
            locked->used -= process->used;
            locked->held -= process->state != 0;
            *process = (struct card_process){0};
        }
    }
}

static struct card_process *self_of(struct card *locked)
{
    struct card_process *none = NULL;

    for (int i = 0; i < CARD_PROCESSES; i++) {
        if (locked->processes[i].pid == getpid())
            return &locked->processes[i];
        if (!locked->processes[i].pid && !none)
            none = &locked->processes[i];
    }
    if (!none)
        abort();
    none->pid = getpid();
    if (getenv("FAKE_CUDA_CGROUP"))
        snprintf(none->cgroup, sizeof(none->cgroup), "%s", getenv("FAKE_CUDA_CGROUP"));
    return none;
}

struct card *card_lock(void)
{
    lock(card_get());
    return &file->card;
}

void card_unlock(void)
{
    pthread_mutex_unlock(&file->card.lock);
}

void card_wait(void)
{
    struct timespec some = {.tv_nsec = 1000000};
    bool waits = card_get()->held;

    while (waits) {
        waits = self_of(card_lock())->state;
        card_unlock();
        if (waits)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &some, NULL);
    }
}

static bool is_in(const char *cgroup, const char *above)
{
    size_t length = strlen(above);

    return !strncmp(cgroup, above, length) && (!cgroup[length] || cgroup[length] == '/');
}

uint64_t card_used_by(const struct card *locked, const char *cgroup)
{
    uint64_t used = 0;

    for (int i = 0; i < CARD_PROCESSES; i++) {
        const struct card_process *process = &locked->processes[i];

        used += process->pid && is_in(process->cgroup, cgroup) ? process->used : 0;
    }
    return used;
}

/* As a kernel does, for whoever takes memory, by whatever library. */
static bool cgroups_allow(const struct card *locked, const char *own, uint64_t bytes)
{
    for (int i = 0; i < CARD_CGROUPS; i++) {
        const struct card_cgroup *cgroup = &locked->cgroups[i];

        if (*cgroup->path && is_in(own, cgroup->path) &&
            (cgroup->hard < bytes || card_used_by(locked, cgroup->path) > cgroup->hard - bytes))
            return false;
    }
    return true;
}

bool card_take(uint64_t bytes)
{
    struct card *at = card_get();
    bool taken;

    lock(at);
    taken = bytes <= at->total - at->used && cgroups_allow(at, self_of(at)->cgroup, bytes);
    if (taken) {
        self_of(at)->used += bytes;
        at->used += bytes;
        at->peak = at->used > at->peak ? at->used : at->peak;
    }
    pthread_mutex_unlock(&at->lock);
    return taken;
}

void card_give(uint64_t bytes)
{
    struct card *at = card_get();

    lock(at);
    self_of(at)->used -= bytes;
    at->used -= bytes;
    pthread_mutex_unlock(&at->lock);
}

uint64_t card_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct timing *card_timing(void)
{
    card_get();
    return &file->timing;
}

void card_look(struct card *copy)
{
    struct card *at = card_get();

    lock(at);
    *copy = *at;
    pthread_mutex_unlock(&at->lock);
}
