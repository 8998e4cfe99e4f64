"""Messages of the OpenTelemetry protocol (OTLP): the hardware conventions (hw.*), and every series of /metrics under its own name."""

from __future__ import annotations

import os
import re

from ..._version import __version__
from ...model.catalog import DOWN, Gpu
from ...sinks.base import load
from ...value import Value
from .dcgm import health
from .families import Counters, owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from ...model.metric import Metric, Number
    from ...model.snapshot import Snapshot
    from ...present.exposition import Family

    Point = tuple[float, dict[str, str]]
    Points = Callable[[str, Gpu], Iterable[Point]]

_PACKAGE = "opentelemetry-proto"
_MESSAGES = "opentelemetry.proto.collector.metrics.v1.metrics_service_pb2"
_CUMULATIVE = 2  # AGGREGATION_TEMPORALITY_CUMULATIVE
_ENDED = 1  # the flag NO_RECORDED_VALUE; without it Prometheus would show the last value for five more minutes
# Names of the conventions v1.44 for a GPU: the instrument, its unit, its metric, and the attribute that distinguishes them.
_CONVENTIONS: tuple[tuple[str, str, str, tuple[tuple[Number, str, str], ...]], ...] = (
    ("hw.gpu.utilization", "gauge", "1", (
        (Gpu.utilization, "hw.gpu.task", "general"),
        (Gpu.encoder_utilization, "hw.gpu.task", "encoder"),
        (Gpu.decoder_utilization, "hw.gpu.task", "decoder"),
    )),
    ("hw.gpu.memory.utilization", "gauge", "1", ((Gpu.memory_percent, "", ""),)),
    ("hw.gpu.memory.usage", "sum", "By", ((Gpu.memory_used, "", ""),)),
    ("hw.gpu.memory.limit", "sum", "By", ((Gpu.memory_total, "", ""),)),
    ("hw.power", "gauge", "W", ((Gpu.power_draw, "", ""),)),
    ("hw.energy", "counter", "J", ((Gpu.energy, "", ""),)),
    ("hw.temperature", "gauge", "Cel", (
        (Gpu.temperature, "hw.sensor_location", "gpu"),
        (Gpu.memory_temperature, "hw.sensor_location", "memory"),
    )),
)  # fmt: skip
_DIRECTIONS = (("rx", "receive"), ("tx", "transmit"))
_STATES = {"ok": 0.0, "degraded": 10.0, "failed": 20.0}  # by DCGM's numbers; nothing here predicts a failure


class Instrument(Value):
    """What is sent under one name: the `kind` is gauge, counter, or sum (which may fall); `points` are read once."""

    name: str
    kind: str
    unit: str
    points: Iterable[Point]


def resource_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes that identify gpulse on this machine, those `given` included.

    Prometheus makes the labels `job` and `instance` of the service's name and id.
    """
    node = os.uname().nodename
    own = {"service.name": "gpulse", "service.version": __version__, "service.instance.id": node, "host.name": node}
    return own | dict(given)


class Encoder:
    """Turns the instruments of one sample after another into messages; raises GpulseError if the package is missing.

    A series that was in the last message and is not in this one is marked as ended.
    """

    def __init__(self, resource: Mapping[str, str]) -> None:
        self._messages: Any = load(_MESSAGES, _PACKAGE)
        self._resource = dict(resource)
        self._known: dict[tuple[str, str, str], dict[tuple[tuple[str, str], ...], float | None]] = {}

    def request(self, time: float, instruments: Iterable[Instrument]) -> tuple[bytes, int]:
        """Return the message, and how many points it has."""
        found: dict[tuple[str, str, str], dict[tuple[tuple[str, str], ...], float | None]] = {}
        for one in instruments:
            points = found.setdefault((one.name, one.kind, one.unit), {})
            points |= {tuple(attributes.items()): float(value) for value, attributes in one.points}
        current = {head: dict(points) for head, points in found.items() if points}
        for head, points in self._known.items():
            for attributes in points.keys() - current.get(head, {}).keys():
                found.setdefault(head, {})[attributes] = None
        self._known = current
        return self._encoded(round(1e9 * time), found), sum(map(len, found.values()))

    def _encoded(self, stamp: int, found: Mapping[Any, Mapping[Any, float | None]]) -> bytes:
        request = self._messages.ExportMetricsServiceRequest()
        whole = request.resource_metrics.add()
        _fill(whole.resource, self._resource.items())
        scope = whole.scope_metrics.add()
        scope.scope.name, scope.scope.version = "gpulse", __version__
        for (name, kind, unit), points in found.items():
            data = _data(scope.metrics.add(name=name, unit=unit), kind)
            for attributes, value in points.items():
                # no start time: most counters are the driver's, which does not report when they began
                point = data.data_points.add(time_unix_nano=stamp, flags=_ENDED if value is None else 0)
                if value is not None:
                    point.as_double = value
                _fill(point, attributes)
        return bytes(request.SerializeToString())

    def rejected(self, answer: bytes) -> tuple[int, str]:
        """Return how many points of a message a receiver that answered with success has rejected, and why."""
        try:
            partial = self._messages.ExportMetricsServiceResponse.FromString(answer).partial_success
        except Exception:  # noqa: BLE001  # protobuf's own, of a module that is not loaded here; VictoriaMetrics sends no message
            return 0, ""
        return partial.rejected_data_points, partial.error_message


def _data(metric: Any, kind: str) -> Any:
    if kind == "gauge":
        metric.gauge.SetInParent()
        return metric.gauge
    metric.sum.aggregation_temporality, metric.sum.is_monotonic = _CUMULATIVE, kind == "counter"
    return metric.sum


def _fill(message: Any, attributes: Iterable[tuple[str, str]]) -> None:
    for key, text in attributes:
        pair = message.attributes.add(key=key)
        pair.value.string_value = text.encode(
            errors="backslashreplace"
        ).decode()  # a lone surrogate would fail the message


_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def page_instruments(
    families: Iterable[tuple[Family, list[tuple[str, float]]]], resource: Mapping[str, str]
) -> Iterator[Instrument]:
    """Yield the families of /metrics under their own names, so that rules, dashboards and `gpulse fleet` read them as if scraped.

    `job` and `instance` are attributes, too, because VictoriaMetrics does not make them of the resource. No unit is given: receivers
    would append it to the name.
    """
    target = {"job": resource["service.name"], "instance": resource["service.instance.id"]}
    for family, samples in families:
        # receivers append _total to the name of a counter without it (those of DCGM)
        kind = "counter" if family.kind == "counter" and family.name.endswith("_total") else "gauge"
        yield Instrument(family.name, kind, "", [(value, target | _attributes_of(text)) for text, value in samples])


def _attributes_of(text: str) -> dict[str, str]:
    """Return the labels of a text that `labels` made; empty ones are left out, as Prometheus does."""
    return {
        key: re.sub(r"\\.", lambda match: _ESCAPED.get(match[0], match[0]), value) if "\\" in value else value
        for key, value in _LABEL.findall(text)
        if value
    }


class Conventions:
    """The instruments of the hardware conventions (hw.*); `add` receives every sample, since some are totals."""

    def __init__(self) -> None:
        self._counters = Counters()
        self._latest: Snapshot | None = None

    def add(self, snapshot: Snapshot) -> None:
        """Add the next sample."""
        self._counters.add(snapshot)
        self._latest = snapshot

    def instruments(self, failed: Callable[[str, Exception], None]) -> Iterator[Instrument]:
        """Yield the instruments of the last sample; `failed` is called with the name of one that is left out."""
        for name, kind, unit, points in self._all():
            try:
                yield Instrument(name, kind, unit, list(self._points(points, down=name == "hw.status")))
            except Exception as error:  # noqa: BLE001  # one instrument must not cost the others
                failed(name, error)

    def _all(self) -> Iterator[tuple[str, str, str, Points]]:
        yield from ((name, kind, unit, _reading(sources)) for name, kind, unit, sources in _CONVENTIONS)
        yield "hw.gpu.io", "counter", "By", self._moved
        yield "hw.errors", "counter", "{error}", self._errors
        yield "hw.status", "sum", "1", _status

    def _points(self, points: Points, down: bool) -> Iterator[Point]:
        """Yield the points of each responding GPU, with `down` also of the others."""
        for owner, gpu, whole in owners(self._latest) if self._latest is not None else ():
            if down or (whole or gpu).state not in DOWN:
                for value, attributes in points(owner, gpu):
                    yield value, {**_attributes(gpu, whole), **attributes}

    def _moved(self, owner: str, gpu: Gpu) -> Iterator[Point]:
        for way, direction in _DIRECTIONS:
            if (total := self._counters.moved(owner, gpu, f"pcie_{way}")) is not None:
                yield total, {"network.io.direction": direction}

    def _errors(self, owner: str, gpu: Gpu) -> Iterator[Point]:
        for kind, count in (("corrected", gpu.ecc_corrected), ("uncorrected", gpu.ecc_uncorrected)):
            if count is not None:
                yield count, {"error.type": kind}
        for code, seen in self._counters.xids.get(owner, {}).items():
            yield seen, {"error.type": f"xid-{code}"}


def _reading(sources: Iterable[tuple[Metric, str, str]]) -> Points:
    def points(_: str, gpu: Gpu) -> Iterator[Point]:
        for metric, attribute, word in sources:
            value = gpu.get(metric.key)
            if isinstance(value, (int, float)):
                # 57 % is 0.57 and not 0.5700000000000001
                yield round(value * metric.unit.base, 9), {attribute: word} if attribute else {}

    return points


def _status(_: str, gpu: Gpu) -> list[Point]:
    now = health(gpu)
    return [(int(number == now), {"hw.state": state}) for state, number in _STATES.items()]


def _attributes(gpu: Gpu, whole: Gpu | None) -> dict[str, str]:
    card = whole or gpu
    known = {
        "hw.id": gpu.uuid,
        "hw.name": None if card.index is None else f"gpu{card.index:.0f}",
        "hw.model": gpu.name,
        "hw.vendor": card.vendor,
        "hw.parent": whole.uuid if whole else None,
        "hw.driver_version": card.driver_version,
        "hw.firmware_version": card.vbios,
        "hw.serial_number": card.serial,
    }
    return {"hw.type": "gpu", **{key: text for key, text in known.items() if text}}
