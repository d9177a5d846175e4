/* SPDX-License-Identifier: MIT */
/* The guard's life from READY to its end. */
#ifndef GUARD_SERVER_H
#define GUARD_SERVER_H

#include "clients.h"

#include <glib.h>
#include <stdbool.h>

/**
 * struct server_doors - what the guard offers
 * @vulkan: its listening socket; @has_vulkan: who connects there is served
 * @cuda: the same for CUDA; -1: none
 */
struct server_doors {
    int vulkan;
    bool has_vulkan;
    int cuda;
    struct cuda_worker worker;
};

/* Signals that end the loop or report dead children. To be called before children are made. */
void server_setup(void);

/*
 * Accepts clients from the listening sockets until SIGTERM: true. False with @error set if it
 * cannot continue. Those of what it does not offer are refused.
 */
bool server_run(const struct server_doors *offered, GError **error);

#endif /* GUARD_SERVER_H */
