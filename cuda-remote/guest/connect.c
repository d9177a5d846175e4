// SPDX-License-Identifier: MIT
/* The program's worker: found, greeted, and asked for what is not a call. */
#include "lost_memory.h"
#include "places.h"
#include "remote.h"

#include "transport.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define END_MS 2000

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct transport *transport; /* NULL: there is no worker */
static pid_t connected_pid;
static struct control_welcome welcome;
static _Atomic CUresult state = CUDA_ERROR_NOT_INITIALIZED;
static _Atomic bool is_dead;

/* Of a child only its parent's worker knows, and it knows nothing of the child. */
static void after_fork(void)
{
    state = CUDA_ERROR_NOT_INITIALIZED;
    is_dead = true;
    /* Another thread may have had it, which is not in the child. */
    pthread_mutex_init(&lock, NULL);
    place_begin_child();
    memory_begin_child();
    lost_memory_begin_child();
    if (transport)
        transport->close();
    transport = NULL;
}

static void add_settings(struct control_hello *hello)
{
    size_t used = (size_t)sprintf(hello->settings, CONTROL_PID "%d", (int)getpid()) + 1;

    for (char **at = environ; *at; at++) {
        size_t bytes = strlen(*at) + 1;

        if (strncmp(*at, "CUDA_", 5) && strncmp(*at, "NVIDIA_TF32", 11))
            continue;
        if (bytes > sizeof(hello->settings) - used - 1)
            break;
        memcpy(hello->settings + used, *at, bytes);
        used += bytes;
    }
    hello->settings_bytes = (uint32_t)used;
}

/*
 * Where programs have nothing: between their heap and the area of mmap(). 39 bits of addresses, or
 * a limit on them, leave less.
 */
static const struct {
    uint64_t address, bytes;
} arenas[] = {
#ifndef __SANITIZE_THREAD__ /* which knows of no memory there */
    {0x110000000000, 4ull << 40}, {0x500000000000, 4ull << 40},
    {0x3a0000000000, 1ull << 40}, {0x110000000000, 1ull << 38},
#endif
    {0x2000000000, 64ull << 30},  {0x1000000000, 16ull << 30},
};

static bool reserve_arena(uint64_t address, uint64_t bytes)
{
    void *at = mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (at == MAP_FAILED)
        return false;
    if ((uint64_t)(uintptr_t)at == address)
        return true;
    munmap(at, bytes);
    return false;
}

static CUresult greet_worker(void)
{
    struct control_hello hello = {
        .message = {CONTROL_MAGIC, CONTROL_HELLO, 0, 0},
        .major = CONTROL_MAJOR,
        .minor = CONTROL_MINOR,
    };

    add_settings(&hello);
    for (size_t i = 0; i < sizeof(arenas) / sizeof(arenas[0]); i++) {
        if (!reserve_arena(arenas[i].address, arenas[i].bytes))
            continue;
        hello.message.address = arenas[i].address;
        hello.message.bytes = arenas[i].bytes;
        /* There is no worker, or it says nothing that we understand. */
        if (!transport->ask(&hello, sizeof(hello), &welcome, sizeof(welcome)) ||
            welcome.reply.magic != CONTROL_MAGIC)
            return CUDA_ERROR_NO_DEVICE;
        if (welcome.reply.result == CONTROL_OK) {
            shared_begin(arenas[i].address, arenas[i].bytes);
            return CUDA_SUCCESS;
        }
        munmap((void *)(uintptr_t)arenas[i].address, arenas[i].bytes);
        if (welcome.reply.result == CONTROL_NO_DRIVER)
            return (CUresult)welcome.cuda_result;
        if (welcome.reply.result != CONTROL_OCCUPIED)
            return CUDA_ERROR_SYSTEM_NOT_READY;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Once: some programs try again and again. CUDA's own errors do not tell this from a host without a
 * GPU. */
static void say_why(const char *path, const char *why)
{
    static bool is_said;

    if (!is_said)
        fprintf(stderr, "vgpu-cuda: no GPU for this program: %s: %s\n", path, why);
    is_said = true;
}

static CUresult start_connection(void)
{
    const char *path, *why;
    CUresult result;

    transport = transport_find(0, &path, &why);
    if (!transport) {
        say_why(path, why);
        return CUDA_ERROR_NO_DEVICE;
    }
    result = greet_worker();
    if (result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_SYSTEM_NOT_READY)
        say_why(transport->name, transport->why);
    if (result == CUDA_SUCCESS && !objects_begin())
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && pthread_atfork(NULL, NULL, after_fork))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        connected_pid = getpid();
        return result;
    }
    transport->close();
    transport = NULL;
    return result;
}

/*
 * Natively, a program's memory is free when the program has ended, and scripts start the next one
 * then. So its worker's end is waited for. Other threads may still be within calls. A process that
 * was made without fork()'s handlers has the same socket, but no worker.
 */
__attribute__((destructor)) static void end_worker(void)
{
    if (!transport || is_dead || connected_pid != getpid())
        return;
    state = CUDA_ERROR_DEINITIALIZED;
    is_dead = true;
    transport->end(END_MS);
}

CUresult connect_worker(void)
{
    CUresult result;

    pthread_mutex_lock(&lock);
    result = state;
    if (result == CUDA_ERROR_NOT_INITIALIZED && !is_dead)
        state = result = start_connection();
    if (result != CUDA_SUCCESS)
        state = CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult connect_state(void)
{
    return state;
}

CUresult connect_usable(void)
{
    return state != CUDA_SUCCESS ? state : is_dead ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

int connect_driver_version(void)
{
    return welcome.driver_version;
}

bool connect_has(unsigned int number)
{
    return number < CONTROL_CALLS && (welcome.has[number / 64] >> (number % 64)) & 1;
}

bool connect_is_dead(void)
{
    if (!is_dead && transport->is_gone())
        is_dead = true;
    return is_dead;
}

enum control_result connect_ask(const struct control_message *message)
{
    struct control_reply reply = {.result = CONTROL_REFUSED};

    pthread_mutex_lock(&lock);
    if (is_dead || !transport->ask(message, sizeof(*message), &reply, sizeof(reply)) ||
        reply.magic != CONTROL_MAGIC) {
        is_dead = true;
        reply.result = CONTROL_REFUSED;
    }
    pthread_mutex_unlock(&lock);
    return reply.result;
}

bool connect_share(const struct control_message *message, enum control_kind end)
{
    bool (*share)(const struct control_message *, struct control_reply *, bool *) =
        message->kind == CONTROL_SHARE_GUEST ? transport->lend : transport->share;
    struct control_message back = {CONTROL_MAGIC, end, message->address, 0};
    struct control_reply reply = {.result = CONTROL_REFUSED};
    bool is_mapped = false;

    if (!share)
        return false;
    pthread_mutex_lock(&lock);
    if (is_dead || !share(message, &reply, &is_mapped) || reply.magic != CONTROL_MAGIC) {
        is_dead = true;
        reply.result = CONTROL_REFUSED;
    }
    pthread_mutex_unlock(&lock);
    if (reply.result == CONTROL_OK && !is_mapped)
        connect_ask(&back);
    return is_mapped;
}

void connect_wake(struct channel_shared *channel)
{
    transport->wake(channel);
}

void connect_await(struct channel_shared *channel, uint64_t answers)
{
    transport->await(channel, answers);
}
