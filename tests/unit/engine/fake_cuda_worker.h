/* SPDX-License-Identifier: MIT */
/* Workers of CUDA for the engine, without processes: what a worker says is the test's. */
#ifndef FAKE_CUDA_WORKER_H
#define FAKE_CUDA_WORKER_H

/* The other end of the connection to the worker that was started last; -1: it has ended. */
extern int fake_cuda_worker;

void fake_cuda_worker_end(void);

#endif /* FAKE_CUDA_WORKER_H */
