/* SPDX-License-Identifier: MIT */
/* How a session's process that has been started before its client gets that. */
#ifndef GUARD_SPARE_H
#define GUARD_SPARE_H

#include <stdbool.h>

/**
 * struct spare_client
 * @fd: its connection
 * @keeper: the connection to the keeper; -1: there is none
 * @who: for messages
 */
struct spare_client {
    int fd;
    int keeper;
    char who[96];
};

/* The caller keeps both descriptors. */
bool spare_send(int link, const struct spare_client *client);

/* Waits. False: the guard has closed its end. */
bool spare_receive(int link, struct spare_client *client);

#endif /* GUARD_SPARE_H */
