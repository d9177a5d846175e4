/* SPDX-License-Identifier: MIT */
/*
 * Between arbiters and vgpu-vault, on a SOCK_SEQPACKET connection to VAULT_SOCKET. Both are of one
 * package, so there is one version.
 */
#ifndef GOVERNOR_VAULT_PROTOCOL_H
#define GOVERNOR_VAULT_PROTOCOL_H

#include <stdint.h>

#define VAULT_SOCKET "/run/vgpu/vault.sock"

#define VAULT_SLICE_BYTES 72

enum vault_request_type {
    VAULT_TAKE = 1, /* with a pidfd of the process that gets the piece; answered */
    VAULT_RETURN,   /* of a piece that its process does not need any more; not answered */
};

/**
 * struct vault_request
 * @ticket: TAKE: comes back with the answer
 * @bytes: TAKE: of the piece; @slice_limit, @budget: of all pieces of the slice, and of the host
 * @number: RETURN: the piece's
 * @slice: its name; RETURN: a piece of another slice is left alone; empty: the piece that nobody
 * got
 */
struct vault_request {
    uint32_t type;
    uint32_t unused;
    uint64_t ticket;
    uint64_t bytes;
    uint64_t slice_limit;
    uint64_t budget;
    uint64_t number;
    char slice[VAULT_SLICE_BYTES];
};

/* @error: 0, with a descriptor, or an errno; ENOMEM: beyond a limit, or the host has no more. */
struct vault_answer {
    uint64_t ticket;
    uint64_t error;
    uint64_t number;
};

#endif
