"""Files and services that let other systems run and read gpulse: Prometheus, Grafana, systemd, Kubernetes, Slurm, containers."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys

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


NAME = "gpulse.service"
_USER_UNIT = """\
[Unit]
Description=gpulse: GPU dashboard, API and metrics

[Service]
Type=notify
{start}
Restart=on-failure
# exit codes 3 (no GPU) and 124 (driver hangs): retry, because the driver may still be loading
RestartSec=30
WatchdogSec=30
TimeoutStopSec=10
UMask=0077

[Install]
WantedBy=default.target
"""


def unit_path(user: bool) -> str:
    """Return where systemd looks for units of the machine, or of this user."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(home, "systemd/user", NAME) if user else os.path.join("/etc/systemd/system", NAME)


def unit_text(user: bool, listen: str | None) -> str:
    """Return the unit; it starts this very installation, also from a virtual environment."""
    folder = "%S/gpulse" if user else "/var/lib/gpulse"
    words = [*_program(), "serve", *(["--bind", listen] if listen else [])]
    start = " ".join(["ExecStart=" + _word(words[0]), *map(_word, words[1:]), "--token-file", f"{folder}/token"])
    if user:
        return _USER_UNIT.format(start=f"{start}\nStateDirectory=gpulse")
    text = packaged("systemd/gpulse.service").partition("\n[Unit]")[2]
    return re.sub(r"^ExecStart=.*$", lambda found: start, f"[Unit]{text}", flags=re.MULTILINE)


def install(path: str, text: str, user: bool) -> None:
    """Write the unit, and let systemd start it now and at every boot."""
    systemctl = _systemctl(user)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise GpulseError(f"{path}: {error.strerror};", "run it as root, or with --user.") from None
    _run([*systemctl, "daemon-reload"])
    _run([*systemctl, "enable", "--now", NAME])


def uninstall(path: str, user: bool) -> None:
    """Stop the service and remove its unit; the history and the token stay."""
    if not os.path.exists(path):
        raise GpulseError(f"{path} is not there;", "there is nothing to remove.")
    systemctl = _systemctl(user)
    _run([*systemctl, "disable", "--now", NAME])
    try:
        os.unlink(path)
    except OSError as error:
        raise GpulseError(f"{path}: {error.strerror};", "run it as root, or with --user.") from None
    _run([*systemctl, "daemon-reload"])


def _program() -> list[str]:
    """Return the command that starts this gpulse: its script next to the interpreter, or the interpreter with the module."""
    script = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "gpulse")
    return [script] if os.access(script, os.X_OK) else [os.path.abspath(sys.executable), "-m", "gpulse"]


def _word(text: str) -> str:
    """Return a word of a command line as systemd reads it: % and $ mean something there."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if re.search(r"[\s\"'\\;]", text) else escaped


def _systemctl(user: bool) -> list[str]:
    if shutil.which("systemctl") is None:
        raise GpulseError(
            "systemd is not installed here;", "start `gpulse serve` with this machine's own supervisor instead."
        )
    return ["systemctl", "--user"] if user else ["systemctl"]


def _run(command: Sequence[str]) -> None:
    import subprocess

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise GpulseError(f"`{' '.join(command)}` failed: {lines[-1]}")
