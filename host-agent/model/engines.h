/* SPDX-License-Identifier: MIT */
/*
 * Which of a GPU's engines a slice may use, as people and the arbiter's files name them.
 */
#ifndef LEDGER_ENGINES_H
#define LEDGER_ENGINES_H

#include <glib.h>

/* Bits; 0: all of them. */
typedef enum {
    ENGINE_GRAPHICS = 1 << 0,
    ENGINE_COMPUTE = 1 << 1,
    ENGINE_TRANSFER = 1 << 2,
    ENGINE_DECODE = 1 << 3,
    ENGINE_ENCODE = 1 << 4,
} Engine;

/* "compute,transfer"; "all". To be freed. */
char *engines_format(guint engines);

/*
 * Reads the same, in any order; AGENT_ERROR_INVALID says what it may be. Graphics without compute is
 * refused: Vulkan promises programs a queue with both where there is one with graphics.
 */
gboolean engines_parse(const char *text, guint *engines, GError **error);

/* What somebody may use who has both. */
guint engines_join(guint a, guint b);

#endif
