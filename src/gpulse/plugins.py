"""Plug-ins: sources, sinks and kinds of model servers that other installed packages offer through entry points.

Finding them reads the metadata of every installed package (10 to 100 ms), so it is done only for a name that gpulse does not
know itself, and by `gpulse doctor`.
"""

from __future__ import annotations

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
