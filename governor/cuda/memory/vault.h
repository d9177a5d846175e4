/* SPDX-License-Identifier: MIT */
/*
 * Host memory for what is displaced: pieces that the arbiter hands out by descriptor. They are kept
 * for the next time, because to lock memory for copies takes long. Under mover_hold().
 */
#ifndef GOVERNOR_CUDA_VAULT_H
#define GOVERNOR_CUDA_VAULT_H

#include "gpu.h"

/**
 * struct piece
 * @at: where this process has it; @locked: the driver copies from and to it without a buffer
 */
struct piece {
    struct piece *next;
    struct gpu *gpu;
    uint64_t number;
    uint64_t bytes;
    void *at;
    bool locked;
};

/* NULL: there is no more. In a context of the GPU's. */
struct piece *vault_take(struct gpu *gpu, uint64_t bytes);
void vault_put(struct gpu *gpu, struct piece *piece);
/* Those of @gpu that are kept go back. In a context. True if there was one. */
bool vault_return(const struct gpu *gpu);

#endif
