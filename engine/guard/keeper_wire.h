/* SPDX-License-Identifier: MIT */
/* Messages between sessions and the keeper: packets, some with a descriptor. */
#ifndef GUARD_KEEPER_WIRE_H
#define GUARD_KEEPER_WIRE_H

#include <stdbool.h>
#include <stdint.h>

enum keeper_call {
    KEEPER_CONNECT, /* the guard, with a session's connection */
    KEEPER_KEEP,    /* a session, with a DMA buffer; answered by a byte: nonzero, it is kept */
    KEEPER_RELEASE,
    KEEPER_KEEP_SHM, /* the same with a memfd */
};

struct keeper_packet {
    uint32_t call;
    uint32_t id;
};

enum keeper_received { KEEPER_PACKET, KEEPER_NOTHING, KEEPER_END };

/* @fd: -1: none; the caller keeps it. */
bool keeper_send(int connection, const struct keeper_packet *packet, int fd);

/*
 * Does not wait. @fd: -1: none came; otherwise the caller owns it. A malformed packet counts as an
 * end.
 */
enum keeper_received keeper_receive(int connection, struct keeper_packet *packet, int *fd);

#endif /* GUARD_KEEPER_WIRE_H */
