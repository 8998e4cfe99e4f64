"""The XID errors that are new at a sample."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.catalog import Gpu


class XidNews:
    """The XIDs of one GPU over time. Where a source has only the last code, a code that comes again cannot be told."""

    __slots__ = ("_last", "_watched")

    def __init__(self) -> None:
        self._last: float | None = None
        self._watched = False

    def codes(self, gpu: Gpu) -> list[int]:
        """Return the codes reported since the previous sample, in order, each as often as it came."""
        before, self._last = self._last, self._last if gpu.xid_last is None else gpu.xid_last
        watched, self._watched = self._watched, True
        if gpu.xids or (gpu.xids is not None and not watched):  # what came before the first sample is no news
            return [int(code) for code in gpu.xids]
        # without a list, or where the sample that had it was dropped because its reader was slow
        return [] if gpu.xid_last is None or gpu.xid_last == before else [int(gpu.xid_last)]
