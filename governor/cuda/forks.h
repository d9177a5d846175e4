/* SPDX-License-Identifier: MIT */
/*
 * What a child has after fork(). CUDA itself does not work in a child of a process that has used
 * it, but the child must not hang in a lock of ours, and is charged for nothing of its parent's.
 */
#ifndef GOVERNOR_CUDA_FORKS_H
#define GOVERNOR_CUDA_FORKS_H

/* From here on children are looked after. */
void forks_watch(void);

/* Each in the child: locks as new, nothing charged. */
void gpu_forget_parent(void);
void ranges_forget_parent(void);
void vmm_forget_parent(void);
void pools_forget_parent(void);

#endif
