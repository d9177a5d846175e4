/* SPDX-License-Identifier: MIT */
/* What sessions and the keeper send each other: packets, some with a descriptor. */
#ifndef GUARD_KEEPER_WIRE_H
#define GUARD_KEEPER_WIRE_H

#include <stdbool.h>
#include <stdint.h>

enum keeper_call {
    KEEPER_CONNECT, /* the guard, with a session's connection */
    KEEPER_KEEP,    /* a session, with a DMA buffer; answered by a byte: not 0, it is kept */
    KEEPER_RELEASE,
};

struct keeper_packet {
    uint32_t call;
    uint32_t id;
};

enum keeper_received { KEEPER_PACKET, KEEPER_NOTHING, KEEPER_END };

/* @fd: -1: none; stays the caller's. */
bool keeper_send(int connection, const struct keeper_packet *packet, int fd);

/* Doesn't wait. @fd: -1: none came; else the caller's. A packet of another form is an end. */
enum keeper_received keeper_receive(int connection, struct keeper_packet *packet, int *fd);

#endif /* GUARD_KEEPER_WIRE_H */
