/* SPDX-License-Identifier: MIT */
/* A real arbiter with slices, and the installed layer. Every failure ends the test. */
#ifndef HOST_H
#define HOST_H

#include <glib.h>

struct host {
    char *root;
    GPid arbiter;
};

/* @slices: names and contents of files in turn, to NULL. Before Vulkan is used. */
void host_up(struct host *host, const char *const *slices);
void host_down(struct host *host);

/* Writes a slice's file, as the agent does. */
void host_configure(const struct host *host, const char *slice, const char *content);

/* This process, when it makes its first instance, becomes a member of @slice. */
void host_enter(const struct host *host, const char *slice);

#endif /* HOST_H */
