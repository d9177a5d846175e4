/* SPDX-License-Identifier: MIT */
/* The arbiter of slices_kit.h's GPU. */
#ifndef TESTS_UNIT_FAKE_ARBITER_H
#define TESTS_UNIT_FAKE_ARBITER_H

#include <glib.h>

#include "lib/host_root.h"

/* @text: its answer, atomic */
typedef struct {
    const char *text;
    int listener;
    int asked; /* how often, atomic */
    GThread *thread;
} FakeArbiter;

/* Two processes use the slice UUID (77, 78), one UUID2. */
void fake_arbiter_open(FakeArbiter *arbiter, HostRoot *root);

/* @text: its answer, which lives longer. */
void fake_arbiter_open_with(FakeArbiter *arbiter, HostRoot *root, const char *text);

void fake_arbiter_close(FakeArbiter *arbiter);

/* One that hangs: its socket, which nobody answers. To be closed. */
int fake_arbiter_listen(HostRoot *root);

/* How often that one was asked since the last count. */
guint fake_arbiter_count(int listener);

#endif
