/* SPDX-License-Identifier: MIT */
/*
 * After fork(). CUDA does not work in a child of a process that has used it. But the child must not
 * hang in our locks, and it is not charged for its parent's memory.
 */
#ifndef GOVERNOR_CUDA_FORKS_H
#define GOVERNOR_CUDA_FORKS_H

/* Children forked from now on are prepared. */
void forks_watch(void);

/* Called in the child: new locks, nothing charged. */
void gpu_forget_parent(void);
void ranges_forget_parent(void);
void vmm_forget_parent(void);
void pools_forget_parent(void);
void ipc_forget_parent(void);
void later_forget_parent(void);
void captures_forget_parent(void);
void contexts_forget_parent(void);
void fronts_forget_parent(void);
void chunks_forget_parent(void);
void vault_forget_parent(void);
void mover_forget_parent(void);
void drain_forget_parent(void);

#endif
