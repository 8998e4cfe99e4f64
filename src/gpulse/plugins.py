"""Other packages: plug-ins that they offer through entry points, and the command that installs one that is missing.

Finding plug-ins reads the metadata of every installed package (10 to 100 ms), so it is done only for a name that gpulse does not
know itself, and by `gpulse doctor`. The command names packages instead of `gpulse[serve]`, because that works for a clone, a
wheel, pipx and uv alike.
"""

from __future__ import annotations

import os
import re
import shlex
import sys

from .errors import GpulseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOURCES = "gpulse.sources"
SINKS = "gpulse.sinks"
SERVING = "gpulse.serving"


class BrokenPlugin(GpulseError):
    """A plug-in that cannot be loaded or does not work; the message names its package."""


class Plugin:
    """An entry point of an installed package: `name` is what users type, `package` is where it comes from, as `acme 1.2`."""

    __slots__ = ("_entry", "group", "name", "package")

    def __init__(self, group: str, entry: Any) -> None:
        self.group = group
        self.name = str(entry.name)
        found = getattr(entry, "dist", None)
        self.package = f"{found.name} {found.version}" if found is not None else "an unknown package"
        self._entry = entry

    def load(self) -> Any:
        """Return the object the entry point names; raise BrokenPlugin when its code cannot be imported."""
        try:
            return self._entry.load()
        except (Exception, SystemExit) as error:  # foreign code: whatever it does on import must not end gpulse
            raise self.broken(error) from error

    def call(self, detail: str) -> Any:
        """Return what the entry point makes of the text after the colon; raise BrokenPlugin when it fails.

        An error that gpulse itself defines passes through: that is how a plug-in says what is wrong with its argument.
        """
        make = self.load()
        try:
            return make(detail)
        except GpulseError:
            raise
        except (Exception, SystemExit) as error:
            raise self.broken(error) from error

    def broken(self, error: object) -> BrokenPlugin:
        """Return the error that says what is wrong with this plug-in."""
        why = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)
        kind = self.group.rpartition(".")[2].removesuffix("s")
        return BrokenPlugin(
            f"the {kind} plug-in {self.name!r} ({self.package}) does not work: {why.rstrip('.')}.",
            f"Update or uninstall {self.package.partition(' ')[0]}.",
        )

    def __repr__(self) -> str:
        return f"<Plugin {self.name} of {self.package}>"


def plugins(group: str) -> list[Plugin]:
    """Return the plug-ins of a group, by name; of two with one name, the one importlib.metadata lists first comes first."""
    from importlib.metadata import entry_points

    return sorted((Plugin(group, entry) for entry in entry_points(group=group)), key=lambda plugin: plugin.name)


_SOURCE_TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_EXTRA = re.compile(r""";.*\bextra\s*==\s*['"]([\w.-]+)['"]""")


def missing_extra(user: str, package: str, extra: str) -> GpulseError:
    """Return the error of `user`, a command or function, that cannot load `package` of the named extra."""
    return GpulseError(f"{user} needs {package};", f"run {extra_command(extra)}")


def need_extra(user: str, extra: str, *modules: str) -> None:
    """Raise the error of `user` if one of these modules, which the named extra installs, cannot be loaded."""
    for name in modules:
        try:
            __import__(name)
        except ImportError as error:
            raise missing_extra(user, error.name or name, extra) from None


def extra_command(extra: str) -> str:
    """Return the shell command that installs the packages of one of gpulse's extras."""
    return install_command(*_requirements(extra))


def install_command(*packages: str, upgrade: bool = False) -> str:
    """Return the shell command that installs packages into the environment of this process."""
    from importlib.util import find_spec

    names = " ".join(shlex.quote(package) for package in packages)
    if "/pipx/venvs/" in sys.prefix:
        return f"pipx inject {'--force ' if upgrade else ''}{os.path.basename(sys.prefix)} {names}"
    flag = "-U " if upgrade else ""
    if find_spec("pip") is None:
        return f"uv pip install --python {shlex.quote(sys.executable)} {flag}{names}"
    return f"{_pip()} install {flag}{names}"


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
