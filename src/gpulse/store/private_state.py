"""State of its own for a machine that is not this computer: a demo or a recording never reads or writes what this one keeps.

Everything that gpulse keeps is found through a few environment variables (queue and locks, history with alerts, runs, presence files,
settings). Private state points all of them to a temporary folder, so no verb has to know about it, and child processes inherit it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from typing_extensions import Self

_PREFIX = "gpulse-private-"
_PLACES = {
    "GPULSE_CLAIMS": "queue",
    "GPULSE_HISTORY": "history/history.db",
    "GPULSE_RUNS": "runs",
    "GPULSE_PRESENCE": "presence",
    "GPULSE_CONFIG": "config.toml",
}
_MACHINE = {"GPULSE_MACHINE_CONFIG": "machine.toml"}
# Variables that are no state and no setting. All others are left out, so that a new setting need not be added here.
_PLAIN = ("GPULSE_SOURCE", "GPULSE_ROOT", "GPULSE_STACKS", "GPULSE_PROJECT", "GPULSE_THEME", "GPULSE_POD_RESOURCES")
_LOOKS = ("terminal", "top", "alerts")  # of [alerts] only `log`: whether alerts are printed
_RECORDED = (*_LOOKS, "cost", "usage", "privacy")
_DELIVERIES = ("webhook", "command", "bell")  # of [alerts]


class PrivateState:
    """The state of a simulated or recorded machine, from `open` to `close`.

    Of the user's settings a simulated machine has only how things look. A `recorded` one also has prices, privacy and the rules of
    alerts, but tells nobody of them.
    """

    private = True

    def __init__(self, recorded: bool = False) -> None:
        self.folder = ""
        self._recorded = recorded
        self._tables = _RECORDED if recorded else _LOOKS
        self._before: dict[str, str] = {}

    def open(self) -> Self:
        """Make the folder and change the environment of this process."""
        _remove_stale()
        self.folder = os.path.join(_temporary(), f"{_PREFIX}{os.getpid()}-{os.urandom(6).hex()}")
        os.mkdir(self.folder, 0o700)
        os.mkdir(os.path.join(self.folder, "queue"), 0o700)
        self._before = _own(os.environ)
        self._write_settings()
        places = _PLACES if self._recorded else _PLACES | _MACHINE
        kept = {name: value for name, value in self._before.items() if self._is_kept(name)}
        _set(kept | {name: os.path.join(self.folder, place) for name, place in places.items()})
        return self

    def close(self) -> None:
        """Restore the environment and remove the folder. Safe to call twice."""
        if self.folder:
            _set(self._before)
            _remove_folder(self.folder)
            self.folder = ""

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *why: object) -> None:
        self.close()

    def _is_kept(self, name: str) -> bool:
        if self._recorded and name in _MACHINE:
            return True  # what the machine hides of other users stays hidden
        return name in _PLAIN or name.startswith(tuple(f"GPULSE_{table.upper()}_" for table in self._tables))

    def _keeps_of_alerts(self, key: str) -> bool:
        return key not in _DELIVERIES if self._recorded else key == "log"

    def _write_settings(self) -> None:
        """Write a settings file with the tables that count."""
        from .place import config_path

        path = config_path(os.environ)
        if not os.path.exists(path):
            return  # most demos need no parser of settings
        from ..errors import ConfigError
        from .config import read_config, toml_text

        try:
            tables = read_config(path)
        except ConfigError:
            return  # a file that is wrong counts as none; `gpulse config check` says why
        kept = {name: tables[name] for name in self._tables if isinstance(tables.get(name), dict)}
        if "alerts" in kept:
            kept["alerts"] = {key: value for key, value in kept["alerts"].items() if self._keeps_of_alerts(key)}
        with open(os.path.join(self.folder, _PLACES["GPULSE_CONFIG"]), "w", encoding="utf-8") as file:
            file.write(toml_text(kept))


def _own(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith("GPULSE_")}


def _set(wanted: Mapping[str, str]) -> None:
    """Make these gpulse's only variables in the environment of this process."""
    for name in _own(os.environ).keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)


def _temporary() -> str:
    """Return the folder for temporary files; loading `tempfile` would take longer than all of this."""
    stated = os.environ.get("TMPDIR", "")
    return stated if os.path.isabs(stated) and os.access(stated, os.W_OK | os.X_OK) else "/tmp"


def _remove_stale() -> None:
    """Remove what processes of this user left that were killed."""
    for folder, pid in _folders():
        try:
            if os.lstat(folder).st_uid == os.geteuid() and not os.path.exists(f"/proc/{pid}"):
                _remove_folder(folder)
        except OSError:
            pass


def _folders() -> Iterator[tuple[str, str]]:
    place = _temporary()
    try:
        names = [name for name in os.listdir(place) if name.startswith(_PREFIX)]
    except OSError:
        return
    for name in names:
        yield os.path.join(place, name), name[len(_PREFIX) :].partition("-")[0]


def _remove_folder(folder: str) -> None:
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files:
            _try(os.unlink, os.path.join(place, name))
        for name in folders:
            path = os.path.join(place, name)
            _try(os.unlink if os.path.islink(path) else os.rmdir, path)
    _try(os.rmdir, folder)


def _try(act: Any, path: str) -> None:
    try:
        act(path)
    except OSError:
        pass  # gone already, or another program writes there
