#!/bin/sh
# Slurm epilog (slurm.conf: Epilog=/etc/slurm/gpulse-epilog.sh): write the report of the job from its recording, else from the history
# that `gpulse serve` keeps, and tell its owner. It never fails a job: whatever goes wrong is ignored.
# Settings, all optional, are in /etc/default/gpulse-slurm:
#   FOLDER=/var/lib/gpulse/jobs     where recordings and reports go
#   MAIL=no                         yes: mail the report to the owner of the job
#   SENDMAIL=/usr/sbin/sendmail     what sends mail
PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin:/opt/gpulse/bin # Slurm sets none
FOLDER=/var/lib/gpulse/jobs
MAIL=no
SENDMAIL=/usr/sbin/sendmail
settings=${GPULSE_SLURM_SETTINGS:-/etc/default/gpulse-slurm}
[ ! -r "$settings" ] || . "$settings"
gpus=${SLURM_JOB_GPUS:-${CUDA_VISIBLE_DEVICES:-}}
[ -n "$gpus" ] && [ -n "$SLURM_JOB_ID" ] || exit 0
command -v gpulse >/dev/null 2>&1 || exit 0
(
  umask 077
  mkdir -p "$FOLDER" && cd "$FOLDER" || exit 0
  if [ -r "$SLURM_JOB_ID.pid" ]; then
    recorder=$(cat "$SLURM_JOB_ID.pid")
    rm -f "$SLURM_JOB_ID.pid"
    # only a gpulse of ours: the number may belong to another process by now
    if tr '\0' ' ' < "/proc/$recorder/cmdline" 2>/dev/null | grep -q "gpulse record .*$SLURM_JOB_ID"; then
      kill -TERM "$recorder"
      for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$recorder" 2>/dev/null || break; sleep 0.5; done
    fi
  fi
  if [ -s "$SLURM_JOB_ID.ndjson.gz" ]; then
    set -- "$SLURM_JOB_ID.ndjson.gz" --title "Slurm job $SLURM_JOB_ID"
  else
    set -- --job "$SLURM_JOB_ID" --gpu "$gpus"
  fi
  timeout 60 gpulse report "$@" --format html -o "$SLURM_JOB_ID.html"
  timeout 60 gpulse report "$@" --format text > "$SLURM_JOB_ID.txt"
  # only the owner of the job may read the report
  chown "$SLURM_JOB_USER" "$SLURM_JOB_ID.html" "$SLURM_JOB_ID.txt"
  if [ "$MAIL" = yes ] && [ -s "$SLURM_JOB_ID.txt" ]; then
    {
      printf 'To: %s\nSubject: GPU report of job %s\n' "$SLURM_JOB_USER" "$SLURM_JOB_ID"
      printf 'Content-Type: text/plain; charset=utf-8\nMIME-Version: 1.0\n\n'
      cat "$SLURM_JOB_ID.txt"
    } | timeout 60 "$SENDMAIL" -t
  fi
) </dev/null >/dev/null 2>&1 || true
exit 0
