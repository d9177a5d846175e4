// SPDX-License-Identifier: MIT
#include "fronts.h"

#include "captures.h"
#include "forks.h"

#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool installed;
struct gate fronts_gate;
static void (*ask_arbiter)(void);
void *_Atomic fronts_behind[ENTRIES_COUNT];

bool fronts_are_installed(void)
{
    return atomic_load_explicit(&installed, memory_order_acquire);
}

void *fronts_driver(unsigned int entry)
{
    void *driver = atomic_load_explicit(&fronts_behind[entry], memory_order_acquire);

    return driver ? driver : atomic_load_explicit(&entry_slots[entry], memory_order_relaxed);
}

_Thread_local struct gate_seat *fronts_seat;

static __attribute__((noinline)) struct gate_seat *take_seat(void)
{
    fronts_seat = gate_seat(&fronts_gate);
    if (fronts_seat)
        fronts_seat->known_at = &fronts_seat;
    return fronts_seat;
}

bool fronts_enter(struct visit *visit)
{
    struct gate_seat *seat = fronts_seat;

    visit->seat = NULL;
    if (__builtin_expect(!seat, 0) && !(seat = take_seat()))
        return false;
    /* The driver calls its own exports through this library. */
    if (atomic_load_explicit(&seat->inside, memory_order_relaxed))
        return true;
    gate_enter(&fronts_gate, seat);
    visit->seat = seat;
    return true;
}

void fronts_leave(const struct visit *visit)
{
    if (visit->seat)
        gate_leave(visit->seat);
}

bool fronts_close(uint64_t limit_ns)
{
    return gate_close(&fronts_gate, limit_ns);
}

void fronts_open(void)
{
    gate_open(&fronts_gate);
}

bool fronts_were_passed(void)
{
    return gate_was_passed(&fronts_gate);
}

bool fronts_were_asked(void)
{
    return atomic_load(&fronts_gate.asked);
}

struct bytes_64 {
    char bytes[64];
};

#define BEHIND(name, types)                                                                        \
    ((CUresult(*) types)atomic_load_explicit(&fronts_behind[ENTRY_##name], memory_order_relaxed))

/* @seen: what follows from the result, before the thread leaves. */
#define PASSES(name, types, parameters, seen, ...)                                                 \
    static CUresult front_##name parameters                                                        \
    {                                                                                              \
        struct visit visit;                                                                        \
        CUresult result;                                                                           \
                                                                                                   \
        if (!fronts_enter(&visit))                                                                 \
            return CUDA_ERROR_OUT_OF_MEMORY;                                                       \
        result = BEHIND(name, types)(__VA_ARGS__);                                                 \
        seen;                                                                                      \
        fronts_leave(&visit);                                                                      \
        return result;                                                                             \
    }
#define WAITS(name, types, parameters, ...) PASSES(name, types, parameters, , __VA_ARGS__)
/* From then on nothing moves. */
#define BEGINS(name, types, parameters, ...)                                                       \
    PASSES(name, types, parameters, if (result == CUDA_SUCCESS) captures_begin((CUstream)a0),      \
           __VA_ARGS__)
#define ENDS(name, types, parameters, ...)                                                         \
    static CUresult front_##name parameters                                                        \
    {                                                                                              \
        CUresult result = BEHIND(name, types)(__VA_ARGS__);                                        \
                                                                                                   \
        captures_end((CUstream)a0);                                                                \
        return result;                                                                             \
    }
/* Right after, another stream can have its handle. */
#define DROPS(name, types, parameters, ...)                                                        \
    static CUresult front_##name parameters                                                        \
    {                                                                                              \
        captures_end((CUstream)a0);                                                                \
        return BEHIND(name, types)(__VA_ARGS__);                                                   \
    }
#define OWN(name) extern void front_##name(void) __attribute__((visibility("hidden")));
#define STUB(name)
#include "fronts.inc"
#undef WAITS
#undef BEGINS
#undef ENDS
#undef DROPS
#undef OWN
#undef STUB

static const struct front {
    unsigned int entry;
    void *function;
} fronts[] = {
#define FRONT(name, ...) {ENTRY_##name, (void *)front_##name},
#define WAITS            FRONT
#define BEGINS           FRONT
#define ENDS             FRONT
#define DROPS            FRONT
#define OWN              FRONT
#define STUB(name)
#include "fronts.inc"
#undef WAITS
#undef BEGINS
#undef ENDS
#undef DROPS
#undef OWN
#undef STUB
};

#define WAITS(...)
#define BEGINS(...)
#define ENDS(...)
#define DROPS(...)
#define OWN(...)
#define STUB(name) extern void stub_##name(void) __asm__(#name);
#include "fronts.inc"
#undef STUB

static const struct front stubs[] = {
#define STUB(name) {ENTRY_##name, (void *)stub_##name},
#include "fronts.inc"
};

void *fronts_stub(unsigned int entry)
{
    for (unsigned int i = 0; i < sizeof(stubs) / sizeof(stubs[0]); i++)
        if (stubs[i].entry == entry)
            return stubs[i].function;
    return NULL;
}

static bool has_front(unsigned int entry)
{
    for (unsigned int i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++)
        if (fronts[i].entry == entry)
            return true;
    return false;
}

void fronts_set_driver(unsigned int entry, void *function)
{
    pthread_mutex_lock(&lock);
    atomic_store(&fronts_behind[entry], function);
    if (!installed || !has_front(entry))
        atomic_store(&entry_slots[entry], function);
    pthread_mutex_unlock(&lock);
}

static void ask_once(void *data)
{
    (void)data;
    ask_arbiter();
}

/* Under the lock. What a slot leads to is known before it leads here. */
static void put_in_front(const struct front *front)
{
    if (!atomic_load(&fronts_behind[front->entry]))
        atomic_store(&fronts_behind[front->entry], real_resolve(front->entry));
    atomic_store(&entry_slots[front->entry], front->function);
}

bool fronts_install(void (*asks)(void))
{
    bool done;

    pthread_mutex_lock(&lock);
    if (!installed && gate_init(&fronts_gate, ask_once, NULL)) {
        ask_arbiter = asks;
        for (unsigned int i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++)
            put_in_front(&fronts[i]);
        atomic_store_explicit(&installed, true, memory_order_release);
    }
    done = installed;
    pthread_mutex_unlock(&lock);
    return done;
}

void fronts_forget_parent(void)
{
    pthread_mutex_init(&lock, NULL);
    if (installed)
        gate_renew(&fronts_gate, gate_seat(&fronts_gate));
}
