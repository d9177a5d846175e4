/* SPDX-License-Identifier: MIT */
/*
 * /run/vgpu/slurm/JOBID: what the prolog tells the job's steps, root's alone. One section for each
 * card that the job has on the node, in the order of Slurm's indices:
 *
 *   vgpu1
 *   card INDEX TASKS         Slurm's index of the card, and how many of the job's tasks fit on it
 *   NAME=VALUE               what a task on that card finds in its environment; LD_LIBRARY_PATH
 *                            goes before the task's own
 *
 * After the first line there may also be
 *
 *   refused SENTENCE         the job gets no slices here
 *   lost                     it has none, and slurmctld had it in its queue; it may be started here
 *                            without a prolog, because slurmd has run one
 *
 * Plain C, because slurmstepd reads it.
 */
#ifndef FLEET_SLURM_NODE_JOB_FILE_H
#define FLEET_SLURM_NODE_JOB_FILE_H

#include <stdbool.h>

#ifndef FLEET_JOBS_DIR
#define FLEET_JOBS_DIR "/run/vgpu/slurm"
#endif

#define JOB_FILE_VERSION "vgpu1"
#define JOB_FILE_REFUSED "refused "
#define JOB_FILE_LOST    JOB_FILE_VERSION "\nlost\n"
/* Bytes. A card of NVIDIA's has some 8 KiB: APPTAINER_BINDPATH names each library of the driver. */
#define JOB_FILE_MAX (1024 * 1024)

/*
 * Reads a job's file into @text (JOB_FILE_MAX bytes). -1 with errno: ENOENT if the job has no slice
 * here.
 */
int job_file_read(unsigned job, char *text);

/*
 * Calls @each for each variable of the card that a task has: that of the index @card, or, if that
 * is negative, the one that the @local'th task of the node comes to when tasks fill the cards in
 * turn; beyond the last place they begin again. false: the text is not understood, has no such
 * card, or
 * @each returned false. @text is cut up.
 */
bool job_file_task(char *text, int card, unsigned local,
                   bool (*each)(const char *name, const char *value, void *data), void *data);

/* Why the job has no slices here, within @text; NULL: it has some. The text stays whole. */
const char *job_file_refused(const char *text);

#endif
