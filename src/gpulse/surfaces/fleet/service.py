"""The systemd service of `gpulse serve`: its unit, who could change what it runs, and how it is installed and removed."""

from __future__ import annotations

import os
import re
import shutil
import sys

from ...errors import GpulseError
from ...store.place import history_group
from ...store.trust import is_open, weak_point, weak_point_within
from .deploy import packaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...store.trust import WeakPoint

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
    text = re.sub(r"^ExecStart=.*$", lambda found: start, f"[Unit]{text}", flags=re.MULTILINE)
    return re.sub(r"^DynamicUser=yes\n", lambda found: _account(), text, flags=re.MULTILINE)


def _account() -> str:
    """Return the lines that say as whom the service runs: as a user of its own, and of the groups that may open GPUs.

    It is root where that is not possible: if only root can run this program, or if a group may read the history, because systemd
    keeps the files of such a user where only root can enter.
    """
    if (group := history_group()) is not None:
        return f"Group={group}\n"
    script = _program()[0]
    if not all(map(is_open, (script, _interpreter(script), sys.executable))):
        return ""
    groups = [name for name in ("video", "render") if _exists(name)]
    return "DynamicUser=yes\n" + (f"SupplementaryGroups={' '.join(groups)}\n" if groups else "")


def _exists(group: str) -> bool:
    import grp

    try:
        grp.getgrnam(group)
    except KeyError:
        return False
    return True


# What the service has loaded when it starts: without the environment of whoever installs it, as systemd starts it.
_ASK = """
import json, os, sys
import gpulse, gpulse.surfaces.web.running, gpulse.surfaces.web.server
files = [file for one in list(sys.modules.values()) if (file := getattr(one, "__file__", None))]
with open("/proc/self/maps") as maps:
    files += [line.split(maxsplit=5)[5].strip() for line in maps if " /" in line]
files.append(os.path.join(sys.prefix, "pyvenv.cfg"))
print(json.dumps([files, [os.path.dirname(gpulse.__file__), *sys.path[1:]]]))
"""


def check_program() -> None:
    """Raise GpulseError if somebody other than root could change what the service runs: its program, interpreter, libraries or modules."""
    if (found := _weak_point()) is not None:
        raise GpulseError(
            f"{found.path} {found.who}, who could let the service do anything on this machine;",
            "install gpulse as root in a folder that only root can change, such as /opt/gpulse, or use --user.",
        )


def _weak_point() -> WeakPoint | None:
    script = _program()[0]
    for path in (script, _interpreter(script), sys.executable):
        if (found := weak_point(path)) is not None:  # before anything of it runs
            return found
    files, folders = _loaded()
    own = (found for path in dict.fromkeys(files) if (found := weak_point(path)) is not None)
    return next(own, None) or next(
        (found for path in dict.fromkeys(folders) if (found := weak_point_within(path)) is not None), None
    )


def _interpreter(script: str) -> str:
    """Return the program that the first line of a script names; the script itself if it is not one."""
    with open(script, "rb") as file:
        line = file.readline(4096)
    return os.fsdecode(line[2:].split()[0]) if line.startswith(b"#!") and line[2:].split() else script


def _loaded() -> tuple[list[str], list[str]]:
    """Return the files that the service loads at its start, and the folders in which it looks for more; raise GpulseError if it cannot."""
    import json
    import subprocess

    environ = {"PATH": os.defpath, "HOME": "/"}
    done = subprocess.run(
        [sys.executable, "-c", _ASK], env=environ, cwd="/", capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise GpulseError(
            f"this gpulse does not start without your environment: {why};",
            "install it as root, for example in /opt/gpulse.",
        )
    files, folders = json.loads(done.stdout)
    return files, folders


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
