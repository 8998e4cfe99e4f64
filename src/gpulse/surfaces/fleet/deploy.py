"""Files that let other systems run and read gpulse: Prometheus, Grafana, systemd, Kubernetes, Slurm, containers."""

from __future__ import annotations

import json
import os
import shutil

from ...errors import GpulseError
from ...settings.table import PORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What is written, by the name of the file in the package; the scrape configuration is made for the machines of the fleet.
FILES = {
    "prometheus/gpulse.rules.yml": "recording and alerting rules",
    "prometheus/alertmanager.yml": "routes for Alertmanager",
    "grafana/gpulse.json": "Grafana dashboard of one machine",
    "grafana/fleet.json": "Grafana dashboard of the fleet",
    "systemd/gpulse.service": "systemd unit",
    "container/Containerfile": "container image",
    "kubernetes/gpulse.yaml": "Kubernetes DaemonSet and PodMonitor",
    "slurm/prolog.sh": "Slurm prolog, which records each job",
    "slurm/epilog.sh": "Slurm epilog, which writes its report",
}
SCRAPE, TARGETS = "prometheus/scrape.yml", "prometheus/gpulse-targets.json"
# Programs that check a file, where they are installed.
_CHECKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("prometheus/gpulse.rules.yml", ("promtool", "check", "rules")),
    ("prometheus/alertmanager.yml", ("amtool", "check-config")),
    (SCRAPE, ("promtool", "check", "config", "--syntax-only")),
    ("systemd/gpulse.service", ("systemd-analyze", "verify", "--man=no")),
    ("slurm/prolog.sh", ("sh", "-n")),
    ("slurm/epilog.sh", ("sh", "-n")),
)


def fleet_files(hosts: Sequence[str]) -> dict[str, str]:
    """Return all files, name to text; Prometheus scrapes gpulse on these machines."""
    found = {name: packaged(name) for name in FILES}
    found[TARGETS] = json.dumps([{"targets": [f"{_bare(host)}:{PORT}" for host in hosts]}], indent=2) + "\n"
    found[SCRAPE] = _scrape()
    return found


def write_files(folder: str, files: Mapping[str, str], force: bool) -> list[str]:
    """Write the files below a folder and return their names; raise GpulseError, and write nothing, if one exists with another text."""
    changed = [name for name, text in files.items() if _differs(os.path.join(folder, name), text)]
    if changed and not force:
        raise GpulseError(
            f"{', '.join(changed)} in {folder} {'has' if len(changed) == 1 else 'have'} been changed;",
            "name another folder, or use --force to overwrite.",
        )
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if name.endswith(".sh"):
            os.chmod(path, 0o755)
    return list(files)


def check_files(folder: str) -> list[tuple[str, str, str]]:
    """Let each file be checked by its own tool; return the file, the tool, and what is wrong: empty if nothing is."""
    import subprocess

    found = []
    for name, command in _CHECKS:
        if shutil.which(command[0]) is None:
            found.append((name, command[0], "not installed"))
            continue
        done = subprocess.run(
            [*command, os.path.join(folder, name)], capture_output=True, text=True, timeout=60, check=False
        )
        lines = (done.stderr + done.stdout).strip().splitlines()
        found.append((name, command[0], "" if done.returncode == 0 else lines[-1] if lines else "failed"))
    return found


def _bare(host: str) -> str:
    return host.rpartition("@")[2]


def _scrape() -> str:
    return f"""\
# Prometheus reads this file with --config.file, or copy the job into your own configuration.
scrape_configs:
- job_name: gpulse
  scrape_interval: 15s
  # the token of `gpulse serve --token-file`, the same on all machines
  authorization:
    credentials_file: /etc/prometheus/gpulse.token
  file_sd_configs:
  - files: [{os.path.basename(TARGETS)}]
  relabel_configs:
  - source_labels: [__address__]
    regex: '(.*):\\d+'
    target_label: instance
rule_files: [gpulse.rules.yml]
# alerting:
#   alertmanagers:
#   - static_configs: [{{targets: ["localhost:9093"]}}]
"""


def packaged(name: str) -> str:
    """Return a file of the package; in a source tree it is in deploy/."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (os.path.join(here, "deploy"), os.path.join(here, "../../../../deploy")):
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            continue
    raise GpulseError(f"{name} is missing from this installation;", "install gpulse again.")


def _differs(path: str, text: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read() != text
    except FileNotFoundError:
        return False
