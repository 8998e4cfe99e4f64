"""Live diagnosis: fed with snapshots one by one, judges the last minute again every ten seconds."""

from __future__ import annotations

from ...model.verdict import Diagnosis
from .judge import judge
from .window import WindowBuilder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.snapshot import Snapshot
    from ...model.verdict import Verdict

WINDOW = 60.0  # seconds that are judged together
EVERY = 10.0  # seconds from judgement to judgement
_FIRST = 8.0  # seconds of samples before the first judgement
_MOST = 240  # samples per window; faster sampling is thinned to this, since more of them tell no more


class LiveDiagnosis:
    """Adding a snapshot costs the same however long it runs. `latest` is the last judgement; not for several threads at once."""

    def __init__(self, window: float = WINDOW, every: float = EVERY) -> None:
        self.latest = Diagnosis()
        self._window = window
        self._every = every
        self._builder = WindowBuilder()
        self._judged: float | None = None
        self._before: float | None = None

    def add(self, snapshot: Snapshot) -> bool:
        """Take a snapshot; return whether there is a new judgement."""
        time, before = snapshot.time, self._before
        if before is not None and not 0 <= time - before < self._window:  # the clock was set, or the machine slept
            self._builder, self._judged, before = WindowBuilder(), None, None
        if before is not None and time - before < 0.9 * self._window / _MOST:
            return False
        self._before = time
        self._builder.add(snapshot)
        if self._judged is None:
            self._judged = time - self._every + _FIRST
        if time - self._judged < self._every:
            return False
        self._judged = time
        self._builder.drop_before(time - self._window)
        self.latest = judge(self._builder)
        return True

    def verdict(self, uuid: str | None) -> Verdict | None:
        """Return the last verdict of a GPU, None while there is none."""
        return next((one for one in self.latest if one.uuid == uuid), None)
