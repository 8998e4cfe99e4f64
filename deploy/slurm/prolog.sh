#!/bin/sh
# Slurm prolog (slurm.conf: Prolog=/etc/slurm/gpulse-prolog.sh): record the GPUs of the job while it runs.
# It never fails a job: whatever goes wrong is ignored. Settings, all optional, are in /etc/default/gpulse-slurm:
#   FOLDER=/var/lib/gpulse/jobs   where recordings and reports go
#   RECORD=yes                    no: `gpulse serve` runs here and keeps the history from which reports are made
PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/opt/gpulse/bin # Slurm sets none
FOLDER=/var/lib/gpulse/jobs
RECORD=yes
settings=${GPULSE_SLURM_SETTINGS:-/etc/default/gpulse-slurm}
[ ! -r "$settings" ] || . "$settings"
gpus=${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-}}
[ -n "$gpus" ] && [ "$RECORD" = yes ] || exit 0
command -v gpulse >/dev/null 2>&1 || exit 0
(
  umask 077
  mkdir -p "$FOLDER" && cd "$FOLDER" || exit 0
  setsid gpulse record --gpu "$gpus" --processes --interval 5 --max-size 64M \
    -o "$SLURM_JOB_ID.ndjson.gz" </dev/null >"$SLURM_JOB_ID.log" 2>&1 &
  recorder=$!
  echo "$recorder" > "$SLURM_JOB_ID.pid"
  # Slurm ends what is left of the session of its prolog
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ "$(cut -d ' ' -f 6 "/proc/$recorder/stat")" != "$recorder" ] || break
    sleep 0.05
  done
) || true
exit 0
