/* SPDX-License-Identifier: MIT */
/*
 * Takes one card of a node away from Slurm, and gives it back. Slurm can only drain whole nodes, so
 * a job of root's, or of SlurmUser's where root may run none, holds the card: the fence. It runs
 * nothing. While the fence is being put up, a reservation keeps new jobs away from the node; jobs
 * on other cards are not touched.
 */
#ifndef FLEET_SLURM_NODE_FENCE_H
#define FLEET_SLURM_NODE_FENCE_H

#include <gio/gio.h>

/**
 * FenceCard
 * @index: Slurm's, of the card on the node
 * @address: of the card; the fence is known by it
 * @requeue: the card's jobs go back to the queue, those that cannot are cancelled; else they end by
 * themselves
 * @offenders: jobs (guint32) that wait in the queue until somebody releases them, instead of
 * starting elsewhere at once
 */
typedef struct {
    guint index;
    const char *address;
    gboolean requeue;
    const GArray *offenders;
} FenceCard;

/* The fences that a node has now. */
typedef struct Fences Fences;

/* @node: Slurm's name. NULL: slurmctld does not answer. */
Fences *fences_load(const char *node, GError **error);
void fences_free(Fences *fences);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Fences, fences_free)

gboolean fences_any(const Fences *fences);

/*
 * Keeps the card from all jobs, on a node that is closed. The same again changes nothing. FALSE:
 * not yet, because jobs still have the card, the node has no free CPU, or no partition takes the
 * fence. The node stays closed, and a later call tries again.
 */
gboolean fence_put_up(const Fences *fences, const FenceCard *card, GError **error);

/* No fence is no error. */
void fence_take_down(const Fences *fences, const FenceCard *card);

/* No new job starts on the node for ten minutes from now on. The same again extends them. */
gboolean fence_close_node(const Fences *fences, GError **error);

/* All fences are up. Twice is once. */
gboolean fence_open_node(const char *node, GError **error);

/**
 * FenceDrain - until when a node drains
 * @FENCE_UNTIL_WELL: vgpud answers and its cards are healthy or fenced. Reason "vgpu: WHY"
 * @FENCE_UNTIL_RESUMED: somebody has looked at it. Reason "vgpu-slurm: WHY"
 */
typedef enum {
    FENCE_UNTIL_WELL,
    FENCE_UNTIL_RESUMED,
} FenceDrain;

/* Drains the node, unless it drains already. */
gboolean fence_drain(const char *node, FenceDrain until, const char *why, GError **error);

/* Resumes the node if it drains until it is well. */
gboolean fence_resume(const char *node, GError **error);

#endif
