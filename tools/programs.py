"""Programs that the checks run beside Python: say what is missing, and install it with apt-get where that is possible.

python -m tools.programs            # those that `make check` needs, and what else it installs
python -m tools.programs cc         # only these
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import NamedTuple


class Program(NamedTuple):
    """A program, the Debian packages that provide it, and what the checks do with it."""

    packages: str
    use: str


PROGRAMS = {
    "cc": Program("gcc libc6-dev", "builds the scripted driver"),
    "chromium": Program("--install-recommends chromium", "shows the pages"),  # it recommends fonts
    "npm": Program("nodejs npm", "builds and checks the pages"),
    "promtool": Program("prometheus", "reads the metrics and the alert rules"),
    "amtool": Program("prometheus-alertmanager", "routes the alerts"),
    "victoria-metrics": Program("victoria-metrics", "reads and stores the metrics"),
    "sshd": Program("openssh-server", "stands for other machines"),
    "slurmctld": Program("slurm-wlm munge", "schedules jobs"),
}
ABSENT_WITH = {"prometheus": "promtool", "prometheus-alertmanager": "amtool"}  # programs of the same package
_ABOUT = """\
make check installs Python packages into .venv (3 GB, with torch and JupyterLab) and npm packages into web/node_modules (60 MB).
It takes about 30 minutes on two cores, and 10 more for downloads the first time."""


def present(program: str) -> bool:
    """Return whether a program is installed; servers are in folders that are not in everybody's PATH."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") is not None


def missing(names: list[str]) -> dict[str, Program]:
    """Return the programs that are not installed."""
    return {name: PROGRAMS[name] for name in names if not present(name)}


def install(program: Program) -> None:
    """Install the packages of a program; RUNLEVEL=1 keeps Debian from starting their services."""
    environ = {**os.environ, "RUNLEVEL": "1", "DEBIAN_FRONTEND": "noninteractive"}
    words = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *program.packages.split()]
    subprocess.run(words, env=environ, check=True)


def names_of(programs: dict[str, Program]) -> str:
    """Return the names of the packages."""
    words = [word for program in programs.values() for word in program.packages.split()]
    return " ".join(word for word in words if not word.startswith("-"))


def main(argv: list[str]) -> int:
    """Say what is missing; install it as root, else say how, and that the tests that need it are skipped."""
    if not argv:
        print(_ABOUT)
    absent = missing(argv or list(PROGRAMS))
    if absent and os.geteuid() == 0 and present("apt-get"):
        print(f"Debian packages that apt-get installs now: {names_of(absent)}", flush=True)
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        for program in absent.values():
            install(program)
    elif absent:
        for name, program in absent.items():
            print(f"{name} is not installed, which {program.use}: tests that need it are skipped")
        print(f"To install it: sudo apt-get install {names_of(absent)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
