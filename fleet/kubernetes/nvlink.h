/* SPDX-License-Identifier: MIT */
/* Which cards of a node are one domain of NVLink. Pure. */
#ifndef KUBERNETES_NVLINK_H
#define KUBERNETES_NVLINK_H

#include <glib.h>

/*
 * A domain is cards of which each has NVLinks to all others of it, and to no card besides: only
 * then can equality of a name say that two cards are linked. @rows: aas, a row of @count words for
 * each card, "NV12" for 12 NVLinks. @domains gets for each card the first one of its domain; -1: it
 * is in none.
 */
void nvlink_domains(GVariant *rows, guint count, int *domains);

#endif
