/* SPDX-License-Identifier: MIT */
/*
 * Commands that take several objects: each is done, whatever becomes of the others.
 */
#ifndef VGPUCTL_EACH_H
#define VGPUCTL_EACH_H

#include "host-agent/vgpuctl/client.h"

/* Does it to the object of that name; FALSE with @error. */
typedef gboolean (*EachFunc)(Client *client, const char *name, void *data, GError **error);

/**
 * each_name() - does something to each of @names
 * @doing: for the progress line, as "removing vGPU"
 *
 * With several names each failure is printed as it comes, and @error says how many there were, with
 * the code of the first.
 */
gboolean each_name(Client *client, char **names, const char *doing, EachFunc func, void *data,
                   GError **error);

/* Prints "vgpuctl: " and the error. */
void each_print_error(const GError *error);

#endif
