"""The command that installs a missing package next to this gpulse, whichever way gpulse was installed.

It names packages instead of `gpulse[serve]`, because that works for a clone, a wheel, pipx and uv alike.
"""

from __future__ import annotations

import os
import re
import shlex
import sys

from .errors import GpulseError

_SOURCE_TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_EXTRA = re.compile(r""";.*\bextra\s*==\s*['"]([\w.-]+)['"]""")


def missing_extra(user: str, package: str, extra: str) -> GpulseError:
    """Return the error of `user`, a command or function, that cannot load `package` of the named extra."""
    return GpulseError(f"{user} needs {package};", f"run {extra_command(extra)}")


def extra_command(extra: str) -> str:
    """Return the shell command that installs the packages of one of gpulse's extras."""
    return install_command(*_requirements(extra))


def install_command(*packages: str, upgrade: bool = False) -> str:
    """Return the shell command that installs packages into the environment of this process."""
    names = " ".join(shlex.quote(package) for package in packages)
    if "/pipx/venvs/" in sys.prefix:
        return f"pipx inject {'--force ' if upgrade else ''}{os.path.basename(sys.prefix)} {names}"
    flag = "-U " if upgrade else ""
    if not _has_pip():
        return f"uv pip install --python {shlex.quote(sys.executable)} {flag}{names}"
    return f"{_pip()} install {flag}{names}"


def _has_pip() -> bool:
    from importlib.util import find_spec

    return find_spec("pip") is not None


def _pip() -> str:
    """Return `pip` where the shell would run the right one, otherwise this interpreter with its module."""
    import shutil

    pip = shutil.which("pip")
    if pip and os.path.dirname(pip) == os.path.dirname(sys.executable):
        return "pip"
    return f"{shlex.quote(sys.executable)} -m pip"


def _requirements(extra: str) -> list[str]:
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("gpulse") or []
    except PackageNotFoundError:
        lines = []  # a source tree that was never installed
    found = [line.split(";")[0].strip() for line in lines if (match := _EXTRA.search(line)) and match[1] == extra]
    return found or [f"{_SOURCE_TREE}[{extra}]"]
