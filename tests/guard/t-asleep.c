// SPDX-License-Identifier: MIT
/*
 * A client whose wake-up is lost, as Mesa's now and then is: it makes a ring, waits until the
 * render worker sleeps, puts a command into the ring, and says nothing. Ends with 0 when the
 * command has been carried out.
 */
#include "mesa_ring.h"
#include "vtest_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define RING_BUFFER (0xc0 / 4)
#define IDLE        1u
#define SECOND      1000000000ll

/* vkEnumerateInstanceVersion, of which no answer is wanted. */
static const uint32_t some_command[] = {137, 0, 1, 0};

static long long read_clock(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * SECOND + time.tv_nsec;
}

static uint32_t load_word(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Whether @word has all bits of @bits within 20 s. */
static bool wait_bits(const uint32_t *word, uint32_t bits)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    long long until = read_clock() + 20 * SECOND;

    while ((load_word(word) & bits) != bits) {
        if (read_clock() > until)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static void make_ring(int fd)
{
    uint32_t submit[7 + sizeof(mesa_create_ring) / sizeof(uint32_t)] = {1, 0, 7};

    submit[3] = sizeof(mesa_create_ring) / sizeof(uint32_t);
    submit[4] = 7;
    memcpy(submit + 7, mesa_create_ring, sizeof(mesa_create_ring));
    client_message(fd, VTEST_SUBMIT_CMD2, submit, sizeof(submit) / sizeof(uint32_t));
}

int main(void)
{
    const char *path = getenv("VTEST_SOCKET_NAME");
    int fd = client_connect(path), blob;
    uint32_t *memory;
    long long begin;

    client_hello(fd);
    if (client_blob(fd, 0, MESA_RING_SIZE, &blob) != MESA_RING_RESOURCE) {
        fprintf(stderr, "t-asleep: the first blob has another number\n");
        return EXIT_FAILURE;
    }
    memory = mmap(NULL, MESA_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, blob, 0);
    if (memory == MAP_FAILED) {
        perror("t-asleep: mmap");
        return EXIT_FAILURE;
    }
    make_ring(fd);
    if (!wait_bits(memory + MESA_RING_STATUS, IDLE)) {
        fprintf(stderr, "t-asleep: the worker does not go to sleep\n");
        return EXIT_FAILURE;
    }
    begin = read_clock();
    memcpy(memory + RING_BUFFER, some_command, sizeof(some_command));
    __atomic_store_n(memory + MESA_RING_TAIL, sizeof(some_command), __ATOMIC_SEQ_CST);
    if (!wait_bits(memory + MESA_RING_HEAD, sizeof(some_command))) {
        fprintf(stderr, "t-asleep: its command is still in the ring\n");
        return EXIT_FAILURE;
    }
    printf("carried out after %lld ms\n", (read_clock() - begin) / 1000000);
    return EXIT_SUCCESS;
}
