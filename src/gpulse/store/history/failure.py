"""What can go wrong with a history before anything is read or written."""

from __future__ import annotations

from ...errors import GpulseError


class HistoryError(GpulseError):
    """A history that cannot be opened, read or written."""


class DamagedBlock(HistoryError):
    """A block whose bytes are not what was written."""


class HistoryBusy(HistoryError):
    """A history that somebody else writes; `holder` says who, as far as they tell."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(f"{holder} already writes {path};", "read it instead, or name another file.")
        self.holder = holder
