/* SPDX-License-Identifier: MIT */
/*
 * Takes one card of a node away from Slurm, and gives it back. Slurm can only drain whole nodes, so
 * a job of root's holds the card: the fence. It runs nothing. While the fence is being put up, a
 * reservation keeps new jobs away from the node; jobs on other cards are not touched.
 */
#ifndef FLEET_SLURM_NODE_FENCE_H
#define FLEET_SLURM_NODE_FENCE_H

#include <gio/gio.h>

/**
 * FenceCard
 * @node: Slurm's name
 * @index: Slurm's, of the card on the node
 * @address: of the card; the fence is known by it
 * @requeue: the card's jobs go back to the queue, those that cannot are cancelled; else they end by
 * themselves
 */
typedef struct {
    const char *node;
    guint index;
    const char *address;
    gboolean requeue;
} FenceCard;

/*
 * Keeps the card from all jobs. The same call again changes nothing. FALSE: not yet, because jobs
 * still have the card or the node has no free CPU; no new job starts on the node until a later call
 * succeeds, at most ten minutes.
 */
gboolean fence_put_up(const FenceCard *card, GError **error);

/* No fence is no error. */
gboolean fence_take_down(const FenceCard *card, GError **error);

/* No new job starts on the node from now on. Twice is once. */
gboolean fence_close_node(const char *node, GError **error);

/* All fences are up. Twice is once. */
gboolean fence_open_node(const char *node, GError **error);

/* Drains the node for a reason of ours ("vgpu: WHY"), unless it drains already. */
gboolean fence_drain(const char *node, const char *why, GError **error);

/* Resumes the node if it drains for a reason of ours. */
gboolean fence_resume(const char *node, GError **error);

#endif
