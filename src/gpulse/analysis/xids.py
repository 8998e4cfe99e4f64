"""The XID errors that are new at a sample."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.catalog import Gpu


class XidNews:
    """The XIDs of one GPU over time. Where a source has only the last code, a code that comes again cannot be told."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: float | None = None

    def codes(self, gpu: Gpu) -> list[int]:
        """Return the codes reported since the previous sample, in order, each as often as it came."""
        before, self._last = self._last, self._last if gpu.xid_last is None else gpu.xid_last
        if gpu.xids is not None:
            return [int(code) for code in gpu.xids]
        return [] if gpu.xid_last is None or gpu.xid_last == before else [int(gpu.xid_last)]
