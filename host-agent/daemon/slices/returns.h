/* SPDX-License-Identifier: MIT */
/*
 * Slices whose programs were suspended because a GPU was short of memory: they go on by themselves
 * when there has been room for some time (way_back.h), one after the other. Those that an operator
 * has suspended stay so.
 */
#ifndef VGPUD_SLICES_RETURNS_H
#define VGPUD_SLICES_RETURNS_H

#include "host-agent/daemon/slices/slices.h"

typedef struct Returns Returns;

/* Both live longer. Those that an earlier vgpud has noted are known. */
Returns *returns_new(Host *host, const Slices *slices);

void returns_free(Returns *returns);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Returns, returns_free)

/* The programs of @slice, which have @bytes of its GPU, are about to be suspended. */
void returns_note(Returns *returns, const Slice *slice, guint64 bytes, gint64 now_us);

/* An operator wants it to stay suspended. */
void returns_forget(Returns *returns, const char *uuid);

/*
 * So many bytes are free on @gpu, and @mark should be. The slice of it that goes on now, the
 * longest suspended first; NULL: none. To be called every few seconds.
 */
const Slice *returns_next(Returns *returns, const char *gpu, guint64 free, guint64 mark,
                          gint64 now_us);

#endif
