"""The systemd unit that runs `gpulse serve` on this machine: its text for this installation, and its installation."""

from __future__ import annotations

import os
import re
import shutil
import sys

from ...errors import GpulseError
from .init import packaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

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
