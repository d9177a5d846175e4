#!/bin/bash
# SPDX-License-Identifier: MIT
#
#   sbatch --array=0-999%200 --requeue --vgpu=8G chunk.sh PROGRAM...
#
# An example: offline work that is cut up. PROGRAM gets the number of its chunk in CHUNK and writes the result to its
# standard output. A chunk is done when $CHUNKS/done/NUMBER exists. It is made in one step, so a job that is killed at
# any moment and started again does its chunk again or finds it done, and no chunk is recorded twice. With
# RequeueExit=137 in slurm.conf Slurm also starts those again whose program was killed, or anything else that this script
# runs: it ends as that did. Submitting the same array again does whatever is missing.
set -u
chunks=${CHUNKS:-$PWD} CHUNK=$SLURM_ARRAY_TASK_ID
export CHUNK
mkdir -p "$chunks/done" || exit
[ ! -e "$chunks/done/$CHUNK" ] || exit 0

result=$(mktemp "$chunks/done/.$CHUNK.XXXXXX") || exit
trap 'rm -f "$result"' EXIT
"$@" >"$result" || exit
# Another start of the same chunk may have been quicker, on a node that Slurm took for dead.
ln "$result" "$chunks/done/$CHUNK" 2>/dev/null
status=$?
[ -e "$chunks/done/$CHUNK" ] || exit $status
