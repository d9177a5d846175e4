/* SPDX-License-Identifier: MIT */
/*
 * The rings of shared memory through which a Venus context gets its commands. If a ring has been
 * idle for a while, its render worker stores that in the ring's status and sleeps. A command
 * outside the ring wakes it. Mesa (25.0 and others) stores the ring's tail and loads its status
 * with no barrier in between, so sometimes neither side sees the other: the worker sleeps with
 * commands in the ring, the guest's program waits forever, and nothing else looks wrong.
 *
 * So the engine and the guard track a context's rings, and check them every few seconds. If two
 * checks in a row find a ring whose worker sleeps and has executed all of it, its guest has seen
 * the status since, and wakes the worker before anything else can happen. So the checks can end
 * until then.
 */
#ifndef ENGINE_VENUS_RINGS_H
#define ENGINE_VENUS_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Mesa has one, and one for each thread that makes pipelines or waits for the renderer's answer.
 * The worker has a thread for each.
 */
#define VENUS_RINGS_MAX 1024u

/* vkNotifyRingMESA */
#define VENUS_NOTIFY_WORDS 6u

/**
 * struct venus_ring - a ring as its guest has described it: nothing in it is checked
 * @id: the guest's
 * @resource: plain shared memory that contains it
 * @head, @tail, @status: byte offsets in the resource
 */
struct venus_ring {
    uint64_t id;
    uint32_t resource;
    uint64_t head;
    uint64_t tail;
    uint64_t status;
};

/**
 * struct venus_rings - zeroed, it is empty
 * @room: that @rings has
 */
struct venus_rings {
    struct venus_ring *rings;
    uint32_t count;
    uint32_t room;
};

void venus_rings_clear(struct venus_rings *rings);

/*
 * Learns which rings are created and destroyed from commands (@words of them) that the worker is
 * about to get outside a ring. False: they would be more than VENUS_RINGS_MAX.
 */
bool venus_rings_learn(struct venus_rings *rings, const uint32_t *commands, size_t words);

/*
 * To be called before the worker gets such commands: makes its ring sleep later than Mesa requests.
 * Each sleeping ring must be woken, which costs the guest a doorbell, and can be lost.
 */
void venus_rings_patch(uint32_t *commands, size_t words);

/* Whether a worker is through with such commands at once, whatever its rings do. */
bool venus_rings_is_instant(const uint32_t *commands, size_t words);

/*
 * Whether the worker sleeps although @ring has commands. @memory is the resource's, of @size bytes.
 */
bool venus_ring_sleeps(const struct venus_ring *ring, const void *memory, uint64_t size);

struct venus_ring_access;

/*
 * Whether such commands are nothing but a wait for a ring that has come to that point already, or
 * does within 10 us: its thread looks for commands as often.
 */
bool venus_rings_wait_is_over(const struct venus_rings *rings, const uint32_t *commands,
                              size_t words, const struct venus_ring_access *access, void *data);

/**
 * struct venus_ring_access - how the engine or the guard accesses a context's rings
 * @map: a resource of plain shared memory, NULL if it is another kind; @unmap: once for each
 * @send: commands to the worker outside a ring
 */
struct venus_ring_access {
    void *(*map)(void *data, uint32_t resource, uint64_t *size);
    void (*unmap)(void *data, uint32_t resource);
    void (*send)(void *data, uint32_t *commands, uint32_t words);
};

/*
 * Wakes the worker for each ring that it sleeps over; harmless if it is awake by then. True: there
 * was one.
 */
bool venus_rings_wake(const struct venus_rings *rings, const struct venus_ring_access *access,
                      void *data);

/* Whether the worker rests over each ring. One whose memory is gone counts as such. */
bool venus_rings_rest(const struct venus_rings *rings, const struct venus_ring_access *access,
                      void *data);

/*
 * Marks the worker as lost in the status of each ring. Mesa reads it before it submits more and
 * while it waits.
 */
void venus_rings_fail(const struct venus_rings *rings, const struct venus_ring_access *access,
                      void *data);

#endif /* ENGINE_VENUS_RINGS_H */
