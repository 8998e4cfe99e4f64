"""The file of alerts: what people have silenced and acknowledged, and what they have been told, for servers that restart."""

from __future__ import annotations

import json
import os
import time

from ..errors import GpulseError
from ..model.event import Silence
from ..value import Value, fresh
from .claims import lock_holder, open_locked
from .lines import replaced
from .place import SYSTEM, default_path, existing_path, prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

_NAME = "alerts.json"
_LARGEST = 10_000_000  # bytes


def alert_path(history: str) -> str:
    """Return the file that belongs to a history."""
    return os.path.join(os.path.dirname(os.path.abspath(history)), _NAME)


def known_alert_path(environ: Mapping[str, str] = os.environ) -> str:
    """Return the file of this machine: beside the history that this user reads, or else would write."""
    machine = os.path.join(SYSTEM, _NAME)
    if "GPULSE_HISTORY" not in environ and os.path.exists(machine):
        return machine
    return alert_path(existing_path(environ) or default_path(environ))


class AlertNews(Value):
    """What people have decided since a server last looked: silences begun and ended, each with who, and ids of alerts with who."""

    begun: list[tuple[Silence, str]] = fresh(factory=list)
    ended: list[tuple[Silence, str]] = fresh(factory=list)
    acknowledged: list[tuple[str, str]] = fresh(factory=list)


class AlertFile:
    """One JSON document that several programs change: servers, `gpulse alerts`, the page. None as `path` keeps it in memory.

    The first server that asks owns it until it ends: only that one takes news and saves what people were told. What writes raises
    GpulseError where the file cannot be written, `read` where it cannot be read; a damaged one is empty.
    """

    def __init__(self, path: str | None = None) -> None:
        self.path = path
        self._memory: dict[str, Any] = {}
        self._seen: tuple[int, ...] | None = None
        self._owner: int | None = None

    @property
    def owned(self) -> bool:
        """Whether this server is the one that answers for the file."""
        return self.path is None or self._owner is not None

    def own(self) -> bool:
        """Answer for the file unless another server does."""
        if self.path is not None and self._owner is None:
            try:
                self._owner = open_locked(f"{self.path}.server", prepare(self.path))
            except OSError as error:
                raise GpulseError(f"{self.path} cannot be written: {error.strerror}.") from None
        return self.owned

    def disown(self) -> None:
        """Leave the file to others."""
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None

    @property
    def watched(self) -> bool:
        """Whether a server that answers for the file is running."""
        try:
            return lock_holder(f"{self.path}.server") is not None
        except PermissionError:
            return False

    def add_silence(self, silence: Silence) -> None:
        """Add a silence, for the server to take over at its next sample."""
        now = time.time()

        def change(document: dict[str, Any]) -> None:
            kept = [one.to_plain() for one in self.silences(document, now)]
            document["silences"] = [*kept, silence.to_plain()]

        self.update(change)
        self._seen = None

    def end_silence(self, id: str, by: str) -> Silence:
        """End a silence and return it; raise GpulseError for one that is not known."""
        now, found = time.time(), list[Silence]()

        def change(document: dict[str, Any]) -> None:
            known = [*self.silences(document, now)]
            found.extend(one for one in known if one.id == id)
            document["silences"] = [one.to_plain() for one in known if one.id != id]
            document["ended"] = [*_rows(document, "ended"), *(one.to_plain() | {"ended_by": by} for one in found)]

        self.update(change)
        self._seen = None  # a server that decides itself takes it over like what others decide
        if not found:
            raise GpulseError(f"there is no silence {id[:20]!r}.")
        return found[0]

    def acknowledge(self, ids: Iterable[str], by: str) -> None:
        """Note that alerts are known, for the server to take over at its next sample."""
        rows = [{"id": id, "by": by} for id in ids]
        self.update(lambda document: document.update(acknowledged=[*_rows(document, "acknowledged"), *rows]))
        self._seen = None

    def silences(self, document: Mapping[str, Any], now: float) -> Iterator[Silence]:
        """Yield the silences of a document that are not over; what cannot be read is left out."""
        for row in _rows(document, "silences"):
            try:
                silence = Silence.from_plain(row)
            except (KeyError, TypeError, ValueError):
                continue
            if silence.until > now:
                yield silence

    def has_news(self, document: Mapping[str, Any]) -> bool:
        """Tell whether a document holds something that no server has taken over."""
        fresh = any(not row.get("noted") for row in _rows(document, "silences"))
        return fresh or any(_rows(document, key) for key in ("ended", "acknowledged"))

    def take_news(self) -> AlertNews:
        """Return what is new, and have it noted."""
        news = AlertNews()

        def change(document: dict[str, Any]) -> None:
            known = [*self.silences(document, 0.0)]
            news.begun = [(one, one.by) for one in known if not one.noted]
            for one in known:
                one.noted = True
            document["silences"] = [one.to_plain() for one in known]
            ended = [(row, row.pop("ended_by", "")) for row in _rows(document, "ended")]
            news.ended = [(one, str(by)) for row, by in ended for one in self.silences({"silences": [row]}, 0.0)]
            news.acknowledged = [(str(row.get("id")), str(row.get("by"))) for row in _rows(document, "acknowledged")]
            for key in ("ended", "acknowledged"):
                document.pop(key, None)

        self.update(change)
        return news

    def save(self, active: list[dict[str, Any]], gpus: list[dict[str, Any]]) -> None:
        """Keep what people have been told, and the identities of GPUs: one that is lost after a restart does not tell its own."""
        self.update(lambda document: document.update(schema=1, time=time.time(), active=active, gpus=gpus))

    def read(self) -> dict[str, Any]:
        """Return the document, and remember that it has been seen."""
        self._seen = self._stamp()
        return self._document()

    def _document(self) -> dict[str, Any]:
        if self.path is None:
            return self._memory
        try:
            with open(self.path, "rb") as file:
                found = json.loads(file.read(_LARGEST))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise GpulseError(f"{self.path} cannot be read: {error.strerror}.") from None
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def changed(self) -> bool:
        """Whether somebody may have written it since it was last read."""
        return self.path is None or self._seen is None or self._stamp() != self._seen

    def update(self, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Let `change` alter the document, while nobody else does, and write it."""
        if self.path is None:
            change(self._memory)
            return self._memory
        try:
            mode = prepare(self.path)
            handle = open_locked(f"{self.path}.lock", mode, float("inf"))
            assert handle is not None  # it waits
            try:
                unseen, document = self.changed, self._document()
                change(document)
                with replaced(self.path, mode) as file:
                    os.fchmod(file.fileno(), mode)
                    file.write(json.dumps(document).encode())
                self._seen = None if unseen else self._stamp()  # what others have written meanwhile is still news
            finally:
                os.close(handle)
        except OSError as error:
            raise GpulseError(f"{self.path} cannot be written: {error.strerror}.") from None
        return document

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self.path or "")
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


def _rows(document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = document.get(key)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
