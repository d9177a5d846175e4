// SPDX-License-Identifier: MIT
#include "spare.h"

#include "wire/descriptor.h"

/* The client's, and the keeper's if there is one. */
#define MOST_FDS 2

bool spare_send(int link, const struct spare_client *client)
{
    const int fds[MOST_FDS] = {client->fd, client->keeper};

    return descriptor_send(link, client, sizeof(*client), 0, fds, MOST_FDS) == sizeof(*client);
}

bool spare_receive(int link, struct spare_client *client)
{
    int fds[MOST_FDS];

    if (descriptor_receive(link, client, sizeof(*client), 0, fds, MOST_FDS) != sizeof(*client) ||
        fds[0] < 0)
        return false;
    client->fd = fds[0];
    client->keeper = fds[1];
    return true;
}
