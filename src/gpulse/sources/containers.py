"""Whose container a process is in: container, Kubernetes pod and batch job from its cgroup and environment."""

from __future__ import annotations

import re

_CONTAINER = re.compile(r"(?:^|[/:._-])([0-9a-f]{64})(?:\.scope)?(?:/|$)", re.MULTILINE)
_LXC = re.compile(r"/lxc(?:\.payload)?[./]([^/\n]+)")
_POD = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
_SLURM = re.compile(r"/job_(\d+)(?:/|$)", re.MULTILINE)
_JOB_VARIABLES = (("SLURM_JOB_ID", "slurm"), ("PBS_JOBID", "pbs"), ("LSB_JOBID", "lsf"), ("RAY_JOB_ID", "ray"))

_SLURM_NAMES = (("job_name", "SLURM_JOB_NAME"), ("account", "SLURM_JOB_ACCOUNT"), ("partition", "SLURM_JOB_PARTITION"))


_PROJECT = "GPULSE_PROJECT"
_LONGEST = 100  # characters of a project


def project_of(environ: dict[str, str], variables: str = "") -> dict[str, str]:
    """Return `project` from the first variable that is set: GPULSE_PROJECT, or one of those named, separated by commas."""
    named = (word.strip() for word in (_PROJECT, *variables.split(",")))
    found = next((text for word in named if word and (text := environ.get(word, "").strip())), "")
    return {"project": found[:_LONGEST]} if found else {}


def owner_of(cgroup: str, environ: dict[str, str]) -> dict[str, str]:
    """Return `container`, `pod`, `job` and the names of a Slurm job as far as they can be determined; both texts are untrusted."""
    owner: dict[str, str] = {}
    if found := _CONTAINER.search(cgroup):
        owner["container"] = found[1][:12]
    elif found := _LXC.search(cgroup):
        owner["container"] = found[1]
    if found := _POD.search(cgroup):
        host = environ.get("HOSTNAME", "") if "KUBERNETES_SERVICE_HOST" in environ else ""
        owner["pod"] = environ.get("POD_NAME") or host or found[1].replace("_", "-")
    if found := _SLURM.search(cgroup):
        owner["job"] = f"slurm:{found[1]}"
    else:
        for variable, system in _JOB_VARIABLES:
            if environ.get(variable):
                owner["job"] = f"{system}:{environ[variable]}"
                break
        else:
            if environ.get("JOB_ID") and any(name.startswith("SGE_") for name in environ):  # any program may set JOB_ID
                owner["job"] = f"sge:{environ['JOB_ID']}"
    if owner.get("job", "").startswith("slurm:"):
        owner |= {key: environ[variable] for key, variable in _SLURM_NAMES if environ.get(variable)}
    return owner
