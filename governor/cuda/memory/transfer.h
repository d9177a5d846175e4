/* SPDX-License-Identifier: MIT */
/* Copies between chunks and pieces of the vault, each on a stream of its context's, for one order.
 */
#ifndef GOVERNOR_CUDA_TRANSFER_H
#define GOVERNOR_CUDA_TRANSFER_H

#include "cuda_abi.h"

#include <stdbool.h>

struct piece;

/* So many copies can be on their way. */
#define TRANSFER_DEPTH 4

/* @event: behind the copy */
struct copy {
    struct piece *piece;
    CUcontext context;
    CUevent event;
};

/* All zero at first. @context: the one that this thread has; @stream: its own for this */
struct transfer {
    CUcontext context;
    CUstream stream;
    struct transfer_stream {
        CUcontext context;
        CUstream stream;
    } *streams;
    unsigned int count;
};

/* The copies that follow are in @context. False: the driver refuses. */
bool transfer_enter(struct transfer *transfer, CUcontext context);
bool transfer_out(struct transfer *transfer, struct copy *copy, CUdeviceptr from);
bool transfer_in(struct transfer *transfer, struct copy *copy, CUdeviceptr to);
/* False: the driver has failed to copy. */
bool transfer_await(struct transfer *transfer, struct copy *copy);
/* No copy is on its way any more. */
void transfer_close(struct transfer *transfer);

#endif
