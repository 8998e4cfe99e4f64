"""Push to an OpenTelemetry collector: the hardware conventions (hw.*) where they have a name, gpulse.* for the rest."""

from __future__ import annotations

import os
import threading

from ..._version import __version__
from ...model.catalog import DOWN, Gpu
from ...sinks.base import load
from ...units import BYTES, CELSIUS, JOULE, LATENCY, MEGAHERTZ, PERCENT, SECOND, WATT
from .dcgm import health
from .families import GPU_SERIES, SERVER_SERIES, Counters, owners, server_labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ...model.metric import Metric, Number
    from ...model.snapshot import Snapshot

    Point = tuple[float, dict[str, str]]

_PACKAGE = "opentelemetry-exporter-otlp-proto-http"  # this package includes the SDK
_UNITS = {BYTES: "By", CELSIUS: "Cel", JOULE: "J", MEGAHERTZ: "Hz", PERCENT: "1", SECOND: "s", LATENCY: "s", WATT: "W"}
# Names of the conventions v1.44 for a GPU: the instrument, its unit, its metric, and the attribute that distinguishes them.
_CONVENTIONS: tuple[tuple[str, str, str, tuple[tuple[Number, str, str], ...]], ...] = (
    ("hw.gpu.utilization", "gauge", "1", (
        (Gpu.utilization, "hw.gpu.task", "general"),
        (Gpu.encoder_utilization, "hw.gpu.task", "encoder"),
        (Gpu.decoder_utilization, "hw.gpu.task", "decoder"),
    )),
    ("hw.gpu.memory.utilization", "gauge", "1", ((Gpu.memory_percent, "", ""),)),
    ("hw.gpu.memory.usage", "up_down_counter", "By", ((Gpu.memory_used, "", ""),)),
    ("hw.gpu.memory.limit", "up_down_counter", "By", ((Gpu.memory_total, "", ""),)),
    ("hw.power", "gauge", "W", ((Gpu.power_draw, "", ""),)),
    ("hw.energy", "counter", "J", ((Gpu.energy, "", ""),)),
    ("hw.temperature", "gauge", "Cel", (
        (Gpu.temperature, "hw.sensor_location", "gpu"),
        (Gpu.memory_temperature, "hw.sensor_location", "memory"),
    )),
)  # fmt: skip
_TOLD = {metric.key for *_, sources in _CONVENTIONS for metric, *_ in sources} | {"ecc_corrected", "ecc_uncorrected"}
_DIRECTIONS = (("rx", "receive"), ("tx", "transmit"))
_STATES = {"ok": 0.0, "degraded": 10.0, "failed": 20.0}  # by DCGM's numbers; nothing here predicts a failure


class OtlpPush:
    """Sends the last sample to `endpoint` (http://host:4318/v1/metrics) every `interval` seconds, from a thread of the SDK.

    `add` receives each sample and never waits for the network; `stop` sends once more and waits at most `patience` seconds.
    """

    def __init__(self, endpoint: str, interval: float = 15.0, patience: float = 5.0) -> None:
        self._endpoint = endpoint
        self._interval = interval
        self._patience = patience
        self._lock = threading.Lock()
        self._counters = Counters()
        self._latest: Snapshot | None = None
        self._provider: Any = None
        self._failures: dict[str, int] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Add the next sample."""
        with self._lock:
            self._counters.add(snapshot)
            self._latest = snapshot

    def start(self) -> None:
        """Start pushing; raise GpulseError if the package is missing."""
        exporters = load("opentelemetry.exporter.otlp.proto.http.metric_exporter", _PACKAGE)
        readers = load("opentelemetry.sdk.metrics.export", _PACKAGE)
        exporter = exporters.OTLPMetricExporter(endpoint=self._endpoint, timeout=self._patience)
        reader = readers.PeriodicExportingMetricReader(
            exporter, export_interval_millis=1000 * self._interval, export_timeout_millis=1000 * self._patience
        )
        resource = load("opentelemetry.sdk.resources", _PACKAGE).Resource.create(
            {
                "service.name": "gpulse",
                "service.version": __version__,
                "service.instance.id": instance_id(),
                "host.name": os.uname().nodename,
            }
        )
        # a separate provider: the global one belongs to the program
        self._provider = load("opentelemetry.sdk.metrics", _PACKAGE).MeterProvider(
            metric_readers=[reader], resource=resource, shutdown_on_exit=False
        )
        self._instruments(self._provider.get_meter("gpulse", __version__))

    def stop(self) -> None:
        """Push the remaining data and end the thread."""
        provider, self._provider = self._provider, None
        if provider is not None:
            provider.shutdown(timeout_millis=1000 * self._patience)

    def _instruments(self, meter: Any) -> None:
        for name, kind, unit, sources in _CONVENTIONS:
            self._observe(meter, kind, name, unit, "", _reading(sources))
        for metric in GPU_SERIES:
            if metric.key not in _TOLD:
                kind = "counter" if metric.kind == "counter" else "gauge"
                unit = _UNITS.get(metric.unit, "1")
                self._observe(meter, kind, f"gpulse.gpu.{metric.key}", unit, metric.help, _reading(((metric, "", ""),)))
        self._observe(meter, "counter", "hw.gpu.io", "By", "", self._moved("pcie"))
        self._observe(meter, "counter", "gpulse.gpu.nvlink.io", "By", "", self._moved("nvlink"))
        self._observe(meter, "counter", "hw.errors", "{error}", "", self._errors)
        self._observe(meter, "counter", "gpulse.gpu.throttle.time", "s", "", self._throttled)
        self._observe(meter, "up_down_counter", "hw.status", "1", "", _status, down=True)
        for metric in SERVER_SERIES:
            self._observe_servers(meter, metric)
        observation = load("opentelemetry.metrics", _PACKAGE).Observation
        help = "How often an instrument was left out because it failed."

        def failures(_: Any) -> list[Any]:
            return [observation(count, {"instrument": name}) for name, count in self._failures.items()]

        meter.create_observable_counter("gpulse.failed_instruments", [failures], unit="1", description=help)

    def _observe(
        self,
        meter: Any,
        kind: str,
        name: str,
        unit: str,
        help: str,
        points: Callable[[str, Gpu], Iterable[Point]],
        down: bool = False,
    ) -> None:
        """Create an instrument that reads `points` of each responding GPU, with `down` also of the others."""

        def read(snapshot: Snapshot) -> Iterator[Point]:
            for owner, gpu, whole in owners(snapshot):
                if down or (whole or gpu).state not in DOWN:
                    for value, attributes in points(owner, gpu):
                        yield value, {**_attributes(gpu, whole), **attributes}

        self._create(meter, kind, name, unit, help, read)

    def _observe_servers(self, meter: Any, metric: Metric) -> None:
        """Create an instrument that reads one metric of each model server."""

        def read(snapshot: Snapshot) -> Iterator[Point]:
            for server in snapshot.serving:
                if isinstance(value := server.get(metric.key), (int, float)):
                    attributes = {f"gpulse.{key}": text for key, text in server_labels(server)}
                    yield round(value * metric.unit.base, 9), attributes

        self._create(meter, "gauge", f"gpulse.serving.{metric.key}", _UNITS.get(metric.unit, "1"), metric.help, read)

    def _create(
        self, meter: Any, kind: str, name: str, unit: str, help: str, read: Callable[[Snapshot], Iterable[Point]]
    ) -> None:
        observation = load("opentelemetry.metrics", _PACKAGE).Observation

        def callback(_: Any) -> list[Any]:
            try:
                with self._lock:
                    return [] if self._latest is None else [observation(*point) for point in read(self._latest)]
            except Exception:  # noqa: BLE001
                # the SDK would go on too, but print a traceback with every push
                self._failures[name] = self._failures.get(name, 0) + 1
                return []

        getattr(meter, f"create_observable_{kind}")(name, [callback], unit=unit, description=help)

    def _moved(self, link: str) -> Callable[[str, Gpu], Iterator[Point]]:
        def points(owner: str, gpu: Gpu) -> Iterator[Point]:
            for way, direction in _DIRECTIONS:
                if (total := self._counters.moved(owner, gpu, f"{link}_{way}")) is not None:
                    yield total, {"network.io.direction": direction}

        return points

    def _errors(self, owner: str, gpu: Gpu) -> Iterator[Point]:
        for kind, count in (("corrected", gpu.ecc_corrected), ("uncorrected", gpu.ecc_uncorrected)):
            if count is not None:
                yield count, {"error.type": kind}
        for code, seen in self._counters.xids.get(owner, {}).items():
            yield seen, {"error.type": f"xid-{code}"}

    def _throttled(self, owner: str, gpu: Gpu) -> Iterator[Point]:
        if gpu.throttle_reasons is not None:
            for reason, seconds in self._counters.throttled[owner].items():
                yield seconds, {"gpulse.throttle.reason": reason}


def instance_id(root: str = "") -> str:
    """Return an id of gpulse on this machine that survives restarts: made from the machine's own, which is not sent."""
    import uuid

    try:
        with open(f"{root}/etc/machine-id", encoding="ascii") as file:
            machine = file.read().strip()
    except (OSError, ValueError):
        machine = ""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"gpulse.{machine or os.uname().nodename}"))


def _reading(sources: Iterable[tuple[Metric, str, str]]) -> Callable[[str, Gpu], Iterator[Point]]:
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
    told = {
        "hw.id": gpu.uuid,
        "hw.name": None if card.index is None else f"gpu{card.index:.0f}",
        "hw.model": gpu.name,
        "hw.vendor": card.vendor,
        "hw.parent": whole.uuid if whole else None,
        "hw.driver_version": card.driver_version,
        "hw.firmware_version": card.vbios,
        "hw.serial_number": card.serial,
    }
    # lone surrogates of a name that is not UTF-8 would fail the whole push
    texts = {key: text.encode(errors="backslashreplace").decode() for key, text in told.items() if text}
    return {"hw.type": "gpu", **texts}
