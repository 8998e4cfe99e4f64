"""Rules that a user writes: any metric of the catalog, above or below a value for a while."""

from __future__ import annotations

from ...model.event import Event
from ...model.select import Wanted, short_bus_id
from .rule import Finding, Lasting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...model.catalog import Gpu
    from ...model.metric import Metric
    from .rule import RuleInput


class Threshold(Lasting):
    """A metric of GPUs, or with `host` of the machine, that is beyond `bound`; it is well again at `clear` or on the other side.

    `gpus` are words for GPUs, empty for all. Which they mean is settled when a GPU is first seen: a new number changes nothing.
    """

    def __init__(
        self,
        name: str,
        metric: Metric,
        bound: float,
        given: Mapping[str, float],
        *,
        above: bool = True,
        clear: float | None = None,
        host: bool = False,
        gpus: Sequence[str] = (),
        severity: str = "warn",
    ) -> None:
        super().__init__(given)
        self.name = name
        self.severity = severity
        self._metric = metric
        self._bound = bound
        self._above = above
        self._clear = clear
        self._host = host
        self._words = tuple(gpus)
        self._chosen: dict[str, bool] = {}
        self.wanted = Wanted(host=(metric.key,)) if host else Wanted(gpu=(metric.key,))

    def findings(self, sample: RuleInput) -> Iterator[Finding]:
        if self._host:
            yield self._finding(sample, "", "", "", sample.snapshot.host.get(self._metric.key))
            return
        for uuid, name, number, gpu in sample.all():
            if uuid not in self._chosen:
                whole = sample.gpus[sample.instances[uuid][0]] if uuid in sample.instances else gpu
                self._chosen[uuid] = not self._words or any(_is_called(one, self._words) for one in (gpu, whole))
            if self._chosen[uuid]:
                yield self._finding(sample, uuid, name, number, gpu.get(self._metric.key))

    def _finding(self, sample: RuleInput, uuid: str, name: str, number: str, value: object) -> Finding:
        if not isinstance(value, (int, float)):
            return Finding(uuid, None)
        holds = value > self._bound if self._above else value < self._bound
        calm = not holds
        if self._clear is not None:
            calm = value <= self._clear if self._above else value >= self._clear
        values = {self._metric.key: value, "above" if self._above else "below": self._bound, "metric": self._metric.key}
        gpus, uuids = ((number or "?",), (uuid,)) if uuid else ((), ())
        event = Event(sample.snapshot.time, "threshold", gpus, uuids=uuids, value=value, values=values, note=name)
        return Finding(uuid, holds, calm, event=event)


def _is_called(gpu: Gpu, words: Sequence[str]) -> bool:
    for word in words:
        first, dash, last = word.partition("-")
        if first.isdecimal() and (not dash or last.isdecimal()):
            if gpu.index is not None and int(first) <= gpu.index <= int(last if dash else first):
                return True
        elif ":" in word:
            if short_bus_id(gpu.pci_bus_id or "") == short_bus_id(word):
                return True
        elif (gpu.uuid or "").lower().startswith((word.lower(), f"gpu-{word.lower()}")):
            return True
    return False
