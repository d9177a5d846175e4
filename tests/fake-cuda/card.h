/* SPDX-License-Identifier: MIT */
/*
 * A card in software, in a file that processes share: FAKE_CUDA_CARD names it. The driver and the
 * NVML beside this are its only users. What a process that has died had is free.
 *
 *   FAKE_CUDA_TOTAL    bytes of memory, for who makes the card; 1 GiB
 *   FAKE_CUDA_HIDDEN   bytes that a context takes for itself; 0
 *   FAKE_CUDA_PCI      the card's address; CARD_PCI
 *   FAKE_CUDA_DEVICES  2, 3: further devices, at CARD_PCI_2 and _3, with engines of their own. Each
 *                      reaches the others' memory. Theirs is not counted: they have as much as
 *                      they are asked for
 *   FAKE_CUDA_CGROUP   the directory of the cgroup that the process is in; none
 */
#ifndef FAKE_CUDA_CARD_H
#define FAKE_CUDA_CARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define CARD_PCI       "0000:3B:00.0"
#define CARD_PCI_2     "0000:3C:00.0"
#define CARD_PCI_3     "0000:3D:00.0"
#define CARD_DEVICES   3
#define CARD_PROCESSES 512
#define CARD_CGROUPS   8
#define CARD_PATH      256

/**
 * struct card_process
 * @state: as the driver numbers those of checkpoints
 * @saved: bytes that are not on the card meanwhile
 * @told, @told_at: what NVML says of @used, and since when
 */
struct card_process {
    int pid;
    uint64_t used;
    uint32_t state;
    uint64_t saved;
    uint64_t told;
    uint64_t told_at;
    char cgroup[CARD_PATH];
};

/* What the driver lets the processes of a cgroup have together. @path: empty: none. */
struct card_cgroup {
    char path[CARD_PATH];
    uint64_t soft;
    uint64_t hard;
};

struct card {
    pthread_mutex_t lock;
    uint32_t ready;
    uint64_t total;
    uint64_t used;
    /* The most that there ever was. */
    uint64_t peak;
    /* Processes that are not running. */
    _Atomic uint32_t held;
    struct card_process processes[CARD_PROCESSES];
    struct card_cgroup cgroups[CARD_CGROUPS];
};

/* What the processes of that cgroup, and of those below it, have. Under the lock. */
uint64_t card_used_by(const struct card *card, const char *cgroup);
/* Mapped at first. */
struct card *card_get(void);
/* With its lock; the dead are taken out. */
struct card *card_lock(void);
void card_unlock(void);
/* Waits while this process is locked, or suspended. */
void card_wait(void);
/* False: there is not so much. */
bool card_take(uint64_t bytes);
void card_give(uint64_t bytes);
/* A copy, with the dead taken out. */
void card_look(struct card *copy);
/* In the same file. */
struct timing *card_timing(void);
/* The card's clock, which is CLOCK_MONOTONIC. */
uint64_t card_now(void);
uint64_t card_setting(const char *name, uint64_t otherwise);
/* How many devices there are. */
int card_devices(void);
/* Of 12 characters. */
const char *card_pci(int device);

#endif
