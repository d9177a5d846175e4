/* SPDX-License-Identifier: MIT */
/* The connection to vgpu-vault: pieces of host memory for members. It is made when one is asked. */
#ifndef GOVERNOR_VAULT_LINK_H
#define GOVERNOR_VAULT_LINK_H

#include "arbiter_state.h"

/* @tell: as struct vault_link has it. */
void vault_link_init(struct vault_link *link, const char *tree,
                     bool (*tell)(struct connection *connection, int error, uint64_t number,
                                  int memory));
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
