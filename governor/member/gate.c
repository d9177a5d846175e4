// SPDX-License-Identifier: MIT
#include "gate.h"

#include "clock.h"
#include "member_state.h"

#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How often who closes looks again: twice as long each time. */
#define LOOK_MIN_NS (10 * NS_PER_US)
#define LOOK_MAX_NS NS_PER_MS

static bool call_membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

/* The thread has ended. */
static void give_seat_back(void *data)
{
    struct gate_seat *seat = data;

    if (seat->known_at)
        *seat->known_at = NULL;
    seat->known_at = NULL;
    atomic_store(&seat->inside, 0);
    atomic_store(&seat->taken, false);
}

bool gate_init(struct gate *gate, void (*ask)(void *data), void *data)
{
    *gate = (struct gate){.ask = ask, .data = data};
    if (!call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
        atomic_store(&gate->state, GATE_FENCED);
    return pthread_key_create(&gate->key, give_seat_back) == 0;
}

void gate_clear(struct gate *gate)
{
    struct gate_seat *seat = atomic_load(&gate->seats), *next;

    pthread_key_delete(gate->key);
    for (; seat; seat = next) {
        next = seat->next;
        free(seat);
    }
    atomic_store(&gate->seats, NULL);
}

/* One whose thread has ended; NULL: there is none. */
static struct gate_seat *take_free_seat(const struct gate *gate)
{
    for (struct gate_seat *seat = atomic_load(&gate->seats); seat; seat = seat->next) {
        bool taken = false;

        if (atomic_compare_exchange_strong(&seat->taken, &taken, true))
            return seat;
    }
    return NULL;
}

static struct gate_seat *add_seat(struct gate *gate)
{
    struct gate_seat *seat = calloc(1, sizeof(*seat));

    if (!seat)
        return NULL;
    atomic_store(&seat->taken, true);
    seat->next = atomic_load(&gate->seats);
    while (!atomic_compare_exchange_weak(&gate->seats, &seat->next, seat))
        ;
    /* Who closes sees the seat, or its thread sees that the gate is closed. */
    atomic_thread_fence(memory_order_seq_cst);
    return seat;
}

struct gate_seat *gate_seat(struct gate *gate)
{
    struct gate_seat *seat = pthread_getspecific(gate->key);

    if (seat)
        return seat;
    seat = take_free_seat(gate);
    seat = seat ? seat : add_seat(gate);
    if (seat && pthread_setspecific(gate->key, seat)) {
        atomic_store(&seat->taken, false);
        return NULL;
    }
    return seat;
}

void gate_wait(struct gate *gate, struct gate_seat *seat)
{
    for (;;) {
        uint32_t state;

        atomic_thread_fence(memory_order_seq_cst);
        state = atomic_load(&gate->state);
        if (!(state & GATE_CLOSED)) {
            if (state & GATE_UNPASSED)
                atomic_fetch_and(&gate->state, ~GATE_UNPASSED);
            return;
        }
        atomic_store(&seat->inside, 0);
        if (!atomic_exchange(&gate->asked, true))
            gate->ask(gate->data);
        futex_wait(&gate->state, state, TIME_NEVER);
        atomic_store(&seat->inside, 1);
    }
}

static bool is_anybody_inside(const struct gate *gate)
{
    for (const struct gate_seat *seat = atomic_load(&gate->seats); seat; seat = seat->next)
        if (atomic_load(&seat->inside))
            return true;
    return false;
}

/*
 * From here on each thread has either seen that the gate is closed, or its seat says that it is
 * inside. False: the kernel refuses what it did not refuse before; the next time threads are
 * fenced.
 */
static bool order_all_threads(struct gate *gate)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&gate->state) & GATE_FENCED ||
        call_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return true;
    atomic_fetch_or(&gate->state, GATE_FENCED);
    return false;
}

static void let_all_in(struct gate *gate)
{
    atomic_fetch_and(&gate->state, ~GATE_CLOSED);
    futex_wake(&gate->state);
}

bool gate_close(struct gate *gate, uint64_t limit_ns)
{
    uint64_t until = clock_now() + limit_ns, pause = LOOK_MIN_NS;
    bool closed;

    atomic_store(&gate->asked, false);
    atomic_fetch_or(&gate->state, GATE_CLOSED);
    closed = order_all_threads(gate);
    while (closed && is_anybody_inside(gate)) {
        const struct timespec time = {.tv_nsec = (long)pause};

        closed = clock_now() < until;
        nanosleep(&time, NULL);
        pause = 2 * pause < LOOK_MAX_NS ? 2 * pause : LOOK_MAX_NS;
    }
    if (!closed)
        let_all_in(gate);
    return closed;
}

void gate_open(struct gate *gate)
{
    atomic_fetch_or(&gate->state, GATE_UNPASSED);
    let_all_in(gate);
}

bool gate_was_passed(const struct gate *gate)
{
    return !(atomic_load(&gate->state) & GATE_UNPASSED);
}

void gate_renew(struct gate *gate, const struct gate_seat *own)
{
    for (struct gate_seat *seat = atomic_load(&gate->seats); seat; seat = seat->next)
        if (seat != own)
            give_seat_back(seat);
    atomic_store(&gate->state, GATE_FENCED);
    if (call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
        atomic_store(&gate->state, 0);
}
