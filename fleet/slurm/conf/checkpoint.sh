#!/bin/bash
# SPDX-License-Identifier: MIT
#
#   sbatch --qos=batch --requeue --signal=B:USR1@120 --vgpu=8G checkpoint.sh
#
# An example: work that keeps its state when online jobs take its card. Before Slurm requeues the job it sends USR1 to
# this shell; the state is saved and the job ends. The next start finds it. Slurm must know GraceTime= of the partition
# or QOS, and PreemptParameters=send_user_signal.
set -eu
state=${STATE:-$HOME/checkpoint.$SLURM_JOB_ID}

done=$(cat "$state" 2>/dev/null || echo 0)
[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || echo "start number $((SLURM_RESTART_COUNT + 1)), from step $done"

# Written beside and renamed, so that a kill leaves the old state or the new one.
save() { echo "$done" >"$state.new" && mv "$state.new" "$state"; }

# The requeue is Slurm's: a script that exits after a signal of preemption is requeued all the same.
trap 'save; echo "saved at step $done"; exit 0' USR1

while [ "$done" -lt "${STEPS:-100}" ]; do
    # One step of the real work. In the background, because bash runs a trap only when its command has ended.
    sleep "${STEP_SECONDS:-1}" &
    wait $! || true
    done=$((done + 1))
done
save
echo "finished"
