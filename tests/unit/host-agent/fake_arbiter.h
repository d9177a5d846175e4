/* SPDX-License-Identifier: MIT */
/* The arbiter of slices_kit.h's GPU: two processes use the slice UUID (77, 78), one UUID2. */
#ifndef TESTS_UNIT_FAKE_ARBITER_H
#define TESTS_UNIT_FAKE_ARBITER_H

#include <glib.h>

#include "lib/host_root.h"

typedef struct {
    int listener;
    int asked; /* how often, atomic */
    GThread *thread;
} FakeArbiter;

void fake_arbiter_open(FakeArbiter *arbiter, HostRoot *root);
void fake_arbiter_close(FakeArbiter *arbiter);

#endif
