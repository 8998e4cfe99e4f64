#!/bin/sh
# Slurm epilog (slurm.conf: Epilog=/etc/slurm/gpulse-epilog.sh): end the recording of the job and write its report.
# It never fails a job: whatever goes wrong is ignored.
folder=/var/lib/gpulse/jobs
[ -r "$folder/$SLURM_JOB_ID.pid" ] || exit 0
(
  umask 077
  cd "$folder" || exit 0
  recorder=$(cat "$SLURM_JOB_ID.pid")
  rm -f "$SLURM_JOB_ID.pid"
  # only a gpulse of ours: the number may belong to another process by now
  if tr '\0' ' ' < "/proc/$recorder/cmdline" 2>/dev/null | grep -q "gpulse record .*$SLURM_JOB_ID"; then
    kill -TERM "$recorder"
    for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$recorder" 2>/dev/null || break; sleep 0.5; done
  fi
  gpulse report "$SLURM_JOB_ID.ndjson.gz" --format html -o "$SLURM_JOB_ID.html"
  gpulse report "$SLURM_JOB_ID.ndjson.gz" > "$SLURM_JOB_ID.txt"
  # only the owner of the job may read the report
  chown "$SLURM_JOB_USER" "$SLURM_JOB_ID.html" "$SLURM_JOB_ID.txt"
) </dev/null >/dev/null 2>&1 || true
exit 0
