/* SPDX-License-Identifier: MIT */
/* The connection to vgpu-vault: pieces of host memory for members. It is made when one is asked. */
#ifndef GOVERNOR_VAULT_LINK_H
#define GOVERNOR_VAULT_LINK_H

#include "vault_protocol.h"

#include <glib.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

struct arbiter;
struct connection;

/**
 * struct vault_link
 * @fd: -1: not connected
 * @asked: who waits for an answer, by ticket
 */
struct vault_link {
    char *path;
    int fd;
    sd_event_source *io;
    uint64_t tickets;
    GHashTable *asked;
};

void vault_link_init(struct vault_link *link, const char *tree);
void vault_link_clear(struct vault_link *link);

/*
 * 0: @connection, one at a time, will be told by connection_vaulted(); or an errno: there is no
 * vault.
 */
int vault_link_ask(struct connection *connection, uint64_t bytes);
/* It does not wait any more. */
void vault_link_forget(struct connection *connection);
void vault_link_return(struct connection *connection, uint64_t number);

#endif
