/* SPDX-License-Identifier: MIT */
/*
 * Bytes to and from a client, on a stream socket. All calls block.
 *
 * What was read stays in the socket at least until more is read. Mesa's client takes the end of a
 * connection for an answer of no bytes, and asks again forever; if something is left unread, it
 * gets ECONNRESET, and aborts. So a guard that dies while a client waits for its answer does not
 * leave it spinning.
 *
 * A client writes a message in up to five pieces and often several messages at once. One system
 * call reads all that is there.
 */
#ifndef GUARD_WIRE_H
#define GUARD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read ahead at most. Longer messages are read in parts. */
#define WIRE_BUFFER 4096u

/**
 * struct wire
 * @fd: the socket, AF_UNIX; not owned
 * @events: an epoll that tells when something comes
 * @idle: called when nothing came for @idle_ms, or less than expected; false ends the connection.
 * May be NULL
 * @idle_ms: -1: for ever
 * @soon_us: 0, or when nothing has come for so long it becomes 0 and @soon is called; false ends
 * the connection
 * @room: so many bytes can have come without a client's write waiting for room
 * @left: bytes that have been read and are still in the socket
 * @burst: bytes that have been read since the socket was last emptied
 * @more: the last look may have left something unread; @ended: the peer's end has been seen
 * @begin, @end: what has been read ahead, in @buffer
 */
struct wire {
    int fd;
    int events;
    int idle_ms;
    bool (*idle)(void *data);
    unsigned int soon_us;
    bool (*soon)(void *data);
    void *data;
    size_t room;
    size_t left;
    size_t burst;
    bool more;
    bool ended;
    size_t begin;
    size_t end;
    uint8_t buffer[WIRE_BUFFER];
};

enum wire_result {
    WIRE_OK,
    WIRE_END,  /* the peer has disconnected, and nothing of this had come */
    WIRE_CUT,  /* it has disconnected in the middle */
    WIRE_IDLE, /* idle() said so */
};

/* False with errno: there are no descriptors left. To be cleared nevertheless. */
bool wire_init(struct wire *wire, int fd);
void wire_clear(struct wire *wire);

/*
 * Reads exactly @size bytes, at least one. Descriptors that come with them are closed by the
 * kernel.
 */
enum wire_result wire_read(struct wire *wire, void *data, size_t size);

/* False: the peer has disconnected. */
bool wire_write(struct wire *wire, const void *data, size_t size);

/* The same, and behind it a descriptor with a byte of its own. */
bool wire_write_fd(struct wire *wire, const void *data, size_t size, int fd);

#endif /* GUARD_WIRE_H */
