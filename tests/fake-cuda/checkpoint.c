// SPDX-License-Identifier: MIT
/*
 * Processes that are suspended: they wait in their next call, and have nothing on the card. One
 * whose restore meets a card without room is lost: no later restore succeeds.
 *
 *   FAKE_CUDA_FAIL_LOCK, _CHECKPOINT, _RESTORE, _UNLOCK   the pid with which that fails
 *   FAKE_CUDA_HANG_CHECKPOINT                             the pid with which that takes 3 s
 */
#include "fake.h"

#include <stddef.h>
#include <unistd.h>

#include "card.h"

enum { RUNNING, LOCKED, CHECKPOINTED, FAILED };

static struct card_process *find(struct card *card, int pid)
{
    for (int i = 0; pid && i < CARD_PROCESSES; i++)
        if (card->processes[i].pid == pid)
            return &card->processes[i];
    return NULL;
}

static CUresult move(struct card *card, struct card_process *process, uint32_t to)
{
    if (to == CHECKPOINTED) {
        process->saved = process->used;
        card->used -= process->used;
        process->used = 0;
    } else if (process->state == CHECKPOINTED) {
        if (process->saved > card->total - card->used) {
            process->state = FAILED;
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        process->used = process->saved;
        card->used += process->saved;
    }
    card->held += (to != RUNNING) - (process->state != RUNNING);
    process->state = to;
    return CUDA_SUCCESS;
}

static CUresult step(int pid, uint32_t from, uint32_t to, const char *failing)
{
    struct card *card = card_lock();
    struct card_process *process = find(card, pid);
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    if (process && process->state == from && card_setting(failing, 0) != (uint64_t)pid)
        result = move(card, process, to);
    card_unlock();
    return result;
}

CUresult cuCheckpointProcessGetState(int pid, unsigned int *state)
{
    struct card_process *process;

    ENTER();
    process = find(card_lock(), pid);
    if (process)
        *state = process->state;
    card_unlock();
    return process ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCheckpointProcessLock(int pid, void *arguments)
{
    ENTER();
    (void)arguments;
    return step(pid, RUNNING, LOCKED, "FAKE_CUDA_FAIL_LOCK");
}

CUresult cuCheckpointProcessCheckpoint(int pid, void *arguments)
{
    ENTER();
    (void)arguments;
    if (pid && card_setting("FAKE_CUDA_HANG_CHECKPOINT", 0) == (uint64_t)pid)
        sleep(3);
    return step(pid, LOCKED, CHECKPOINTED, "FAKE_CUDA_FAIL_CHECKPOINT");
}

CUresult cuCheckpointProcessRestore(int pid, void *arguments)
{
    ENTER();
    (void)arguments;
    return step(pid, CHECKPOINTED, LOCKED, "FAKE_CUDA_FAIL_RESTORE");
}

CUresult cuCheckpointProcessUnlock(int pid, void *arguments)
{
    ENTER();
    (void)arguments;
    return step(pid, LOCKED, RUNNING, "FAKE_CUDA_FAIL_UNLOCK");
}
