/* SPDX-License-Identifier: MIT */
/*
 * Slurm's configuration files as its programs on this node find them, and their lines. Names and
 * keys are matched in any case of letters. Files that a file includes are not read.
 */
#ifndef FLEET_SLURM_NODE_SLURM_FILES_H
#define FLEET_SLURM_NODE_SLURM_FILES_H

#include <glib.h>

#include "lib/host_root.h"

/* Where slurmd keeps what it got from slurmctld, in a cluster that is configless. */
#define SLURM_FILES_CACHE "/run/slurm/conf"

/*
 * The directory: that of SLURM_CONF; or /etc/slurm, if slurm.conf is in it; or SLURM_FILES_CACHE,
 * if it is there; else /etc/slurm. To be freed.
 */
char *slurm_files_dir(HostRoot *root);

/*
 * The logical lines of a file: without comments, joined where they end with a backslash. The line's
 * number is its index + 1, so that one that was joined to another is empty. To be freed.
 */
GStrv slurm_files_lines(const char *text);

/* The value of KEY= in a line, without quotes; NULL: not there. To be freed. */
char *slurm_line_value(const char *line, const char *key);

/* Whether KEY= of a line is a list of hosts that has the node, or ALL. */
gboolean slurm_line_has_node(const char *line, const char *key, const char *node);

/* The names that a list such as "/dev/nvidia[0-7]" stands for. To be freed. */
GStrv slurm_list_expand(const char *list);

#endif
