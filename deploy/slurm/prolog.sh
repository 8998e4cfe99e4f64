#!/bin/sh
# Slurm prolog (slurm.conf: Prolog=/etc/slurm/gpulse-prolog.sh): record the GPUs of the job while it runs.
# It never fails a job: whatever goes wrong is ignored.
[ -n "${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-}}" ] || exit 0
command -v gpulse >/dev/null 2>&1 || exit 0
folder=/var/lib/gpulse/jobs
(
  umask 077
  mkdir -p "$folder" && cd "$folder" || exit 0
  setsid gpulse record --gpu "${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES}}" --processes --interval 5 --max-size 64M \
    -o "$SLURM_JOB_ID.ndjson.gz" </dev/null >"$SLURM_JOB_ID.log" 2>&1 &
  echo $! > "$SLURM_JOB_ID.pid"
) || true
exit 0
