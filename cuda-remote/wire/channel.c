// SPDX-License-Identifier: MIT
#include "channel.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct channel_record) % CHANNEL_ALIGN == 0, "records begin aligned");

void channel_answer(struct channel_shared *channel, uint64_t done)
{
    channel_step();
    atomic_exchange(&channel->worker.done, done);
    channel_step();
}

bool channel_wake_client(struct channel_shared *channel)
{
    uint32_t state = atomic_load(&channel->client.state);

    channel_step();
    if (state == CHANNEL_ASLEEP)
        channel_wake(&channel->client.state);
    return state == CHANNEL_ASLEEP_FAR;
}

void channel_await_answer(struct channel_shared *channel, uint64_t done, unsigned int milliseconds)
{
    channel_step();
    atomic_exchange(&channel->client.state, CHANNEL_ASLEEP);
    channel_step();
    if (atomic_load(&channel->worker.done) != done)
        channel_sleep(&channel->client.state, CHANNEL_ASLEEP, milliseconds);
    channel_step();
    atomic_store(&channel->client.state, CHANNEL_AWAKE);
}

void channel_await_record(struct channel_shared *channel, uint64_t head,
                          const _Atomic bool *is_ending)
{
    channel_step();
    atomic_exchange(&channel->worker.state, CHANNEL_ASLEEP);
    channel_step();
    if (atomic_load(&channel->client.tail) == head && !atomic_load(is_ending))
        channel_sleep(&channel->worker.state, CHANNEL_ASLEEP, 0);
    channel_step();
    atomic_store(&channel->worker.state, CHANNEL_AWAKE);
}

/* The ends are in different processes: the futex is not a private one. */
void channel_sleep(_Atomic uint32_t *word, uint32_t is, unsigned int milliseconds)
{
    const struct timespec most = {.tv_sec = milliseconds / 1000,
                                  .tv_nsec = (long)(milliseconds % 1000) * 1000000};

    syscall(SYS_futex, word, FUTEX_WAIT, is, milliseconds ? &most : NULL, NULL, 0);
}

void channel_wake(_Atomic uint32_t *word)
{
    channel_step();
    atomic_store(word, CHANNEL_AWAKE);
    channel_step();
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
