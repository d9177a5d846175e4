/* SPDX-License-Identifier: MIT */
/*
 * Bytes to and from a client, on a stream socket. All calls block.
 *
 * The last byte of what was read stays in the socket until more is read. Mesa's client takes the
 * end of a connection for an answer of no bytes, and asks again forever; if something is left
 * unread, it gets ECONNRESET, and aborts. So a guard that dies while a client waits for its answer
 * does not leave it spinning.
 */
#ifndef GUARD_WIRE_H
#define GUARD_WIRE_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct wire
 * @fd: the socket; not owned
 * @held: one byte that has been read is left in it
 * @idle: called when less came than expected within the socket's SO_RCVTIMEO, or nothing; false
 * ends the connection. May be NULL
 */
struct wire {
    int fd;
    bool held;
    bool (*idle)(void *data);
    void *data;
};

enum wire_result {
    WIRE_OK,
    WIRE_END,  /* the peer has disconnected, and nothing of this had come */
    WIRE_CUT,  /* it has disconnected in the middle */
    WIRE_IDLE, /* idle() said so */
};

/*
 * Reads exactly @size bytes, at least one. Descriptors that come with them are closed by the
 * kernel.
 */
enum wire_result wire_read(struct wire *wire, void *data, size_t size);

/* False: the peer has disconnected. */
bool wire_write(struct wire *wire, const void *data, size_t size);
bool wire_write_fd(struct wire *wire, int fd);

#endif /* GUARD_WIRE_H */
