/* SPDX-License-Identifier: MIT */
/*
 * A world that t-random disturbs: one vGPU, a VMM, a guest's driver and an engine, each of which
 * may be missing, wrong or gone at any moment. Every operation takes its input from the world's
 * random numbers, accepts any result, and leaves the world usable for the next one.
 *
 * Two threads run beside the operations: one changes guest memory while the device reads it, one
 * reads and writes the window. They do not call malloc(), so that engines can be forked.
 */
#ifndef RANDOM_WORLD_H
#define RANDOM_WORLD_H

#include <pthread.h>

#include "testbed.h"

#define WORLD_RAM_SIZE (4 * MIB)
#define WORLD_RAM_IOVA TESTBED_RAM_IOVA
/* The guest driver's rings and buffers; no operation goes beyond. */
#define WORLD_RINGS_SIZE 0x10000u
#define WORLD_MAPPINGS   8
#define WORLD_STATE_MAX  0x10000u

typedef struct {
    void *addr;
    size_t size;
    int prot;
} WorldMapping;

typedef struct {
    GRand *rand;
    char *uuid;
    EnginePeer *engine;
    bool vmm_open;
    VmmContainer container;
    VmmDevice dev;
    VmmRam ram;
    int eventfd;
    /* VFIO's migration: the file that it gave last, and what was read from one. */
    int state_fd;
    uint8_t state[WORLD_STATE_MAX];
    size_t state_size;
    /* The window's mappings of the VMM; the first is the toucher's, under @touch. */
    WorldMapping mapping[WORLD_MAPPINGS];
    pthread_mutex_t touch;
    pthread_t mutator;
    pthread_t toucher;
    atomic_bool stop;
    atomic_bool mutate;
} World;

/* A number below @n. */
static inline uint32_t below(World *w, uint32_t n)
{
    return (uint32_t)g_rand_int_range(w->rand, 0, (gint32)n);
}

static inline bool one_in(World *w, uint32_t n)
{
    return below(w, n) == 0;
}

/* Any number, but mostly one near a limit where code tends to be wrong. */
uint64_t odd_number(World *w);
/* A page-aligned address, mostly in guest RAM. */
uint64_t odd_iova(World *w);
void random_bytes(World *w, void *buf, size_t size);

/* The world without an engine and a VMM; operations start and end these. */
World *world_new(uint32_t seed);
/* Ends threads, VMM and engine. The caller removes the vGPU. */
void world_free(World *w);

typedef struct {
    const char *name;
    unsigned weight;
    void (*run)(World *w);
} WorldOp;

/* Terminated by a NULL name. random_vmm.c, random_guest.c, random_engine.c. */
extern const WorldOp world_vmm_ops[];
extern const WorldOp world_guest_ops[];
extern const WorldOp world_engine_ops[];

void world_open_vmm(World *w);
void world_close_vmm(World *w);

#endif /* RANDOM_WORLD_H */
