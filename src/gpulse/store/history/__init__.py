"""The history of one machine: every tick for a day, then 10 s, 1 min and 10 min with least, mean and most, in one SQLite file.

One writer (`Recorder`, or `HistoryWriter` for those who have a thread to spare), any number of readers (`HistoryReader`).
May import: model, units, errors. Never here: where the snapshots come from, or who looks at them.
"""

from __future__ import annotations

from ..place import HistoryBusy, HistoryError, default_path, existing_path, holder, other_path, path_to_read
from .answers import OWNERS, GpuIdentity, HistorySeries, ProcessNames, ProcessUse, Usage, UsageTimes
from .reader import HistoryReader
from .recorder import Recorder
from .verifying import Verification, repair, verify
from .writer import HistoryWriter

__all__ = [
    "Recorder", "HistoryWriter", "HistoryReader", "HistorySeries", "GpuIdentity", "Usage", "UsageTimes", "ProcessUse",
    "ProcessNames", "OWNERS", "default_path", "existing_path", "other_path", "path_to_read", "holder", "HistoryError", "HistoryBusy",
    "Verification", "verify", "repair",
]  # fmt: skip
