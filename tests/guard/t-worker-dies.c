// SPDX-License-Identifier: MIT
/*
 * A client that waits for a fence behind work that never comes to an end, and says "pending". Then
 * its render worker is to be killed. Ends with 0 if the wait hangs up, as for a lost device, and
 * the ring says by then that it is lost.
 */
#include "mesa_ring.h"
#include "vtest_client.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RING_BUFFER (0xc0 / 4)
#define FATAL       2u
#define LIMIT_MS    40000

/* The ring waits for what its worker can't be told any more, for that waits for the ring. */
static const uint32_t wait_for_virtqueue[] = {252, 0, 0x2c03ff80, 0x55a1, 1, 0};
static const uint32_t wait_for_ring[] = {
    253, 0, 0x2c03ff80, 0x55a1, sizeof(wait_for_virtqueue), 0,
};

static void submit_commands(int fd, uint32_t flags, const uint32_t *commands, uint32_t words,
                            bool fence)
{
    const uint32_t batch[] = {1, flags, 7, words, 7 + words, fence, 0};
    const uint32_t sync[] = {1, 1, 0};
    uint32_t message[64];

    memcpy(message, batch, sizeof(batch));
    memcpy(message + 7, commands, words * sizeof(*commands));
    memcpy(message + 7 + words, sync, sizeof(sync));
    client_message(fd, VTEST_SUBMIT_CMD2, message, 7 + words + (fence ? 3 : 0));
}

static uint32_t *make_ring(int fd)
{
    uint32_t *memory;
    int blob;

    if (client_blob(fd, 0, MESA_RING_SIZE, &blob) != MESA_RING_RESOURCE)
        return NULL;
    memory = mmap(NULL, MESA_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, blob, 0);
    if (memory == MAP_FAILED)
        return NULL;
    submit_commands(fd, 0, mesa_create_ring, sizeof(mesa_create_ring) / sizeof(uint32_t), false);
    memcpy(memory + RING_BUFFER, wait_for_virtqueue, sizeof(wait_for_virtqueue));
    __atomic_store_n(memory + MESA_RING_TAIL, sizeof(wait_for_virtqueue), __ATOMIC_SEQ_CST);
    return memory;
}

/* The descriptor of a wait for the fence. */
static int wait_for_fence(int fd)
{
    uint32_t sync;

    client_send(fd, VTEST_SYNC_CREATE, 0, 0);
    client_answer(fd, VTEST_SYNC_CREATE, &sync, 1);
    submit_commands(fd, VTEST_SUBMIT_RING_IDX, wait_for_ring,
                    sizeof(wait_for_ring) / sizeof(uint32_t), true);
    client_send(fd, VTEST_SYNC_WAIT, 0, UINT32_MAX, sync, 1, 0);
    client_answer(fd, VTEST_SYNC_WAIT, NULL, 0);
    return client_answer_fd(fd);
}

static int print_line(const char *what)
{
    printf("t-worker-dies: %s\n", what);
    return EXIT_FAILURE;
}

int main(void)
{
    int fd = client_connect(getenv("VTEST_SOCKET_NAME"));
    struct pollfd wait = {.events = POLLIN};
    const uint32_t *ring;

    client_hello(fd);
    ring = make_ring(fd);
    if (!ring)
        return print_line("there is no ring");
    wait.fd = wait_for_fence(fd);
    if (poll(&wait, 1, 500) != 0)
        return print_line("the fence is done before its time");
    puts("pending");
    fflush(stdout);
    if (poll(&wait, 1, LIMIT_MS) != 1)
        return print_line("the wait goes on");
    if (wait.revents & POLLIN)
        return print_line("the fence is done, and its work is not");
    if (!(__atomic_load_n(ring + MESA_RING_STATUS, __ATOMIC_ACQUIRE) & FATAL))
        return print_line("the ring does not say that it is lost");
    return EXIT_SUCCESS;
}
