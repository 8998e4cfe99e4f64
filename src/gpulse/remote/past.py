"""What machines did before, from Prometheus or from `gpulse serve` on the machine; and the series that exporters write."""

from __future__ import annotations

import json
import math
import re

from ..analysis.fleet_usage import KEYS, UNKNOWN, FleetUsage, share_byte
from ..model.catalog import GPU_METRICS
from ..model.plausible import plausible
from ..present.exposition import series_name
from .settings import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Protocol, TypeAlias

    from .settings import Url

    Values: TypeAlias = list[float | None]

    class Past(Protocol):
        """Answers about the past of some machines, in the calling thread; each raises Refused or OSError.

        `history` has the values of one machine at some times by UUID and metric, None for a machine of another past. `shares` is how
        much of each machine worked in each interval, one byte each. `usage` adds the GPU seconds of a period to what it is given.
        """

        def history(self, host: str, times: Sequence[float], step: float) -> dict[tuple[str, str], Values] | None: ...

        def shares(self, times: Sequence[float], step: float) -> dict[str, bytearray]: ...

        def usage(self, times: Sequence[float], step: float) -> FleetUsage: ...

    from collections.abc import Iterable

_MIB = float(1 << 20)
EXPORTED = ("utilization", "sm_active", "memory_used", "memory_total", "memory_free", "power_draw", "temperature")

# gpulse's own series.
_GPULSE = {series_name(GPU_METRICS[key], "gpu"): (key, 1 / GPU_METRICS[key].unit.base) for key in EXPORTED}
# DCGM has memory in MiB, and shares that are measured (PROF) as 0 to 1.
_DCGM = {
    (name := GPU_METRICS[key].dcgm): (key, _MIB if key.startswith("memory") else 100.0 if "_PROF_" in name else 1.0)
    for key in EXPORTED
}
# nvidia_gpu_exporter
_SMI = {
    "nvidia_smi_utilization_gpu_ratio": ("utilization", 100.0),
    "nvidia_smi_memory_used_bytes": ("memory_used", 1.0),
    "nvidia_smi_memory_total_bytes": ("memory_total", 1.0),
    "nvidia_smi_power_draw_watts": ("power_draw", 1.0),
    "nvidia_smi_temperature_gpu": ("temperature", 1.0),
}
# AMD's device-metrics-exporter
_AMD = {
    "gpu_gfx_activity": ("utilization", 1.0),
    "gpu_used_vram": ("memory_used", _MIB),
    "gpu_total_vram": ("memory_total", _MIB),
    "gpu_package_power": ("power_draw", 1.0),
    "gpu_edge_temperature": ("temperature", 1.0),
    "gpu_junction_temperature": ("temperature", 1.0),
}
SERIES: Mapping[str, tuple[str, float]] = {**_AMD, **_SMI, **_DCGM, **_GPULSE}
# Series that only have labels: the identity of a GPU and its owner.
INFO = ("gpulse_gpu_info", "nvidia_smi_gpu_info")
OWNER = "gpulse_gpu_job_info"
# Labels in the order in which they are believed. A DCGM exporter's `instance` is its pod; its Hostname is the machine.
HOST_LABELS = ("Hostname", "hostname", "node", "instance")
UUID_LABELS = ("uuid", "UUID", "gpu_uuid", "serial_number")
INDEX_LABELS = ("gpu", "gpu_id", "index")
NAME_LABELS = ("name", "modelName", "card_model")
# The pod that a GPU was given to. Prometheus renames it if the scraped exporter is a pod itself, whose own name `pod` is then.
POD_LABELS = ("exported_pod", "pod")
_EXPORTERS = ("exporter", "dcgm-exporter", "nvidia-dcgm-exporter", "gpulse")
_MOST_GPUS = 1 << 16  # of one machine
_PORT = re.compile(r":\d+$")


def matcher(*keys: str) -> str:
    """Return what selects all series of these keys, no matter which exporter wrote them."""
    names = [name for name, (key, _) in SERIES.items() if key in keys]
    return f'__name__=~"{"|".join(names)}"'


def first_of(labelled: Mapping[str, str], names: Iterable[str]) -> str:
    """Return the first label that has a value, empty if none has."""
    return next((labelled[name] for name in names if labelled.get(name)), "")


def host_of(labelled: Mapping[str, str]) -> str:
    """Return the machine of a series."""
    return _PORT.sub("", first_of(labelled, HOST_LABELS)) or "unknown"


def job_label(labelled: Mapping[str, str]) -> str:
    """Return the job of a series with its scheduler: slurm:42; empty if it has none."""
    return f"{labelled.get('scheduler', '')}:{labelled['job_id']}" if labelled.get("job_id") else ""


def granted(labelled: Mapping[str, str]) -> Mapping[str, str]:
    """Return the pod that Kubernetes has given a GPU to, as the DCGM exporter tells; nothing if it does not."""
    pod = first_of(labelled, POD_LABELS)
    if not pod or ("exported_pod" not in labelled and labelled.get("container") in _EXPORTERS):
        return {}
    space = labelled.get("exported_namespace") or labelled.get("namespace", "")
    return {"pod": f"{space}/{pod}" if space else pod}


_HOSTS = ", ".join(HOST_LABELS)
_OWNERS = ("user", "scheduler", "job_id", "pod", "container")


class PrometheusClient:
    """Asks a Prometheus. `limit` are matchers that all selected series must fit; `queries` counts how often it was asked."""

    def __init__(self, url: Url, limit: str) -> None:
        self.url = url
        self.queries = 0
        self._limit = limit

    def selected(self, *matchers: str) -> str:
        """Return a selector of these matchers and the one that limits the fleet."""
        return f"{{{', '.join(one for one in (*matchers, self._limit) if one)}}}"

    def instant(self, query: str) -> Iterator[tuple[Mapping[str, str], float, float]]:
        """Yield the labels, the value and the time of each series of a query now; raises Refused or OSError."""
        for labelled, pairs in self._series("query", "value", query=query):
            yield from ((labelled, value, at) for value, at in pairs)

    def range(self, query: str, times: Sequence[float], step: float) -> Iterator[tuple[Mapping[str, str], Values]]:
        """Yield the labels and the value at each time of the series of a query; raises Refused or OSError."""
        asked = {"query": query, "start": f"{times[0]:.3f}", "end": f"{times[-1]:.3f}", "step": f"{step:.3f}"}
        for labelled, pairs in self._series("query_range", "values", **asked):
            values: Values = [None] * len(times)
            for value, at in pairs:
                place = round((at - times[0]) / step)
                if 0 <= place < len(times):
                    values[place] = value
            yield labelled, values

    def _series(
        self, path: str, key: str, **asked: str
    ) -> Iterator[tuple[Mapping[str, str], list[tuple[float, float]]]]:
        """Yield the labels of each series with its finite values and their times."""
        from urllib.parse import urlencode

        self.queries += 1
        body = self.url.fetched(f"/api/v1/{path}?{urlencode(asked)}")
        try:
            for series in json.loads(body)["data"]["result"]:
                pairs = series[key] if key == "values" else [series[key]]
                numbers = [(float(text), float(at)) for at, text in pairs]
                finite = [(value, at) for value, at in numbers if math.isfinite(value) and math.isfinite(at)]
                yield {str(label): str(text) for label, text in series["metric"].items()}, finite
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            raise Refused("failed", "its answer is not one of Prometheus") from None


class PrometheusPast:
    """Range queries. `names` has the name in the fleet of each machine, `labels` by which labels it is found; both may grow."""

    def __init__(
        self, client: PrometheusClient, names: Mapping[str, str], labels: Mapping[str, set[tuple[str, str]]]
    ) -> None:
        self._client = client
        self._names = names
        self._labels = labels

    def history(self, host: str, times: Sequence[float], step: float) -> dict[tuple[str, str], Values] | None:
        own = next((machine for machine, name in self._names.items() if name == host), None)
        if own is None:
            return None
        selectors = [
            self._client.selected(matcher(*KEYS), f'{label}="{_quoted(value)}"')
            for label, value in sorted(self._labels.get(own, ()))
        ]
        found: dict[tuple[str, str], Values] = {}
        for labelled, values in self._client.range(" or ".join(selectors), times, step) if selectors else ():
            if "mig" in labelled or labelled.get("GPU_I_ID"):
                continue
            key, scale = SERIES[labelled["__name__"]]
            uuid = first_of(labelled, UUID_LABELS) or first_of(labelled, INDEX_LABELS)
            found[uuid, key] = [in_range(key, value, scale) for value in values]
        return found

    def shares(self, times: Sequence[float], step: float) -> dict[str, bytearray]:
        found: dict[str, bytearray] = {}
        for key in ("utilization", "sm_active"):  # the second is believed where it is measured
            query = f"avg by (__name__, {_HOSTS}) ({self._client.selected(matcher(key))})"
            for labelled, values in self._client.range(query, times, step):
                if (name := self._named(labelled)) is None:
                    continue
                scale = SERIES[labelled["__name__"]][1]
                row = found.setdefault(name, bytearray([UNKNOWN]) * len(times))
                for at, value in enumerate(values):
                    if (share := in_range(key, value, scale)) is not None:
                        row[at] = share_byte(share)
        return found

    def usage(self, times: Sequence[float], step: float) -> FleetUsage:
        """GPU seconds of all machines; owners are known where gpulse exports them, GPUs without one count as held by nobody."""
        found = FleetUsage()
        owned = self._owned(found, times, step)
        busy = self._sums("utilization", times, step)
        watts = self._sums("power_draw", times, step)
        query = f"count by ({_HOSTS}) ({self._client.selected(matcher('utilization'))})"
        for labelled, counts in self._client.range(query, times, step):
            if (name := self._named(labelled)) is None:
                continue
            for at, count in enumerate(counts):
                held, held_busy, held_watts = owned.get((name, at), (0.0, 0.0, 0.0))
                if 0.01 < (rest := (count or 0.0) - held) <= _MOST_GPUS:
                    share = _less(busy.get((name, at)), held_busy)
                    power = _less(watts.get((name, at)), held_watts)
                    found.record(times[at], name, None).add(rest * step, *_each(share, power, rest))
        return found

    def _owned(
        self, found: FleetUsage, times: Sequence[float], step: float
    ) -> dict[tuple[str, int], tuple[float, float, float]]:
        """Add what is held by somebody; return how many GPUs that is at each time, their utilization and their power."""
        by = f"{_HOSTS}, {', '.join(_OWNERS)}"
        owner = self._client.selected(f'__name__="{OWNER}"', 'mig=""')
        groups = f"on (instance, uuid) group_left ({', '.join(_OWNERS)})"

        def joined(key: str) -> dict[tuple[tuple[str, ...], int], float]:
            name, scale = next(
                (name, scale) for name, (known, scale) in SERIES.items() if known == key and "gpulse" in name
            )
            measured = self._client.selected(f'__name__="{name}"')
            query = f"sum by ({by}) ({measured} * {groups} {owner})"
            try:
                answers = list(self._client.range(query, times, step))
            except Refused:
                return {}  # GPUs that are scraped twice cannot be joined; their hours still count
            return {
                (self._owner(labelled), at): value * scale
                for labelled, values in answers
                for at, value in enumerate(values)
                if value is not None
            }

        busy, watts = joined("utilization"), joined("power_draw")
        sums: dict[tuple[str, int], tuple[float, float, float]] = {}
        for labelled, counts in self._client.range(f"sum by ({by}) ({owner})", times, step):
            whose = self._owner(labelled)
            for at, count in enumerate(counts) if whose[0] else ():
                if not count or not 0 < count <= _MOST_GPUS:
                    continue
                share, power = busy.get((whose, at)), watts.get((whose, at))
                record = found.record(times[at], whose[0], (whose[1], whose[2]))
                record.add(count * step, *_each(share, power, count))
                before = sums.get((whose[0], at), (0.0, 0.0, 0.0))
                sums[whose[0], at] = before[0] + count, before[1] + (share or 0.0), before[2] + (power or 0.0)
        return sums

    def _owner(self, labelled: Mapping[str, str]) -> tuple[str, str, str]:
        """Return the machine, the user and the job of a series; no machine if the fleet does not have it."""
        job = job_label(labelled) or labelled.get("pod") or labelled.get("container") or ""
        return self._named(labelled) or "", labelled.get("user", ""), job

    def _sums(self, key: str, times: Sequence[float], step: float) -> dict[tuple[str, int], float]:
        query = f"sum by (__name__, {_HOSTS}) ({self._client.selected(matcher(key))})"
        found: dict[tuple[str, int], float] = {}
        for labelled, values in self._client.range(query, times, step):
            if (name := self._named(labelled)) is not None:
                scale = SERIES[labelled["__name__"]][1]
                found.update({(name, at): value * scale for at, value in enumerate(values) if value is not None})
        return found

    def _named(self, labelled: Mapping[str, str]) -> str | None:
        return self._names.get(host_of(labelled))


class UrlPast:
    """The histories that machines with `gpulse serve` record themselves."""

    def __init__(self, urls: Mapping[str, Url]) -> None:
        self._urls = urls

    def history(self, host: str, times: Sequence[float], step: float) -> dict[tuple[str, str], Values] | None:
        from urllib.parse import urlencode

        url = self._urls.get(host)
        if url is None:
            return None
        asked = {"metrics": ",".join(KEYS), "from": times[0], "to": times[-1] + step, "points": len(times)}
        try:
            answer = json.loads(url.fetched(f"/api/history?{urlencode(asked)}"))
            found: dict[tuple[str, str], Values] = {}
            for series in answer["series"]:
                if series["key"] in KEYS:
                    at = series.get("times") or answer["times"]
                    placed = _placed(at, series["mean"], times, step)
                    found[str(series["uuid"])[:100], series["key"]] = [in_range(series["key"], one) for one in placed]
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError, Refused, OSError):
            return {}  # it records none, or cannot be asked now
        return found

    def shares(self, times: Sequence[float], step: float) -> dict[str, bytearray]:
        return {}

    def usage(self, times: Sequence[float], step: float) -> FleetUsage:
        return FleetUsage()


def _placed(given: Sequence[Any], values: Sequence[Any], times: Sequence[float], step: float) -> Values:
    """Return values at other times: the mean of those that fall into each interval."""
    sums: list[list[float]] = [[] for _ in times]
    for at, value in zip(given, values, strict=True):
        place = int((float(at) - times[0]) // step)
        if value is not None and 0 <= place < len(times) and math.isfinite(float(value)):
            sums[place].append(float(value))
    return [sum(known) / len(known) if known else None for known in sums]


def _less(whole: float | None, part: float) -> float | None:
    return None if whole is None else max(0.0, whole - part)


def _each(busy: float | None, watts: float | None, count: float) -> tuple[float | None, float | None]:
    """Return the share at work (0-1) and the power of each of some GPUs from their sums; None for what no GPU can have."""
    share = in_range("utilization", busy, 1 / count)
    return None if share is None else share / 100, in_range("power_draw", watts, 1 / count)


def in_range(key: str, value: float | None, scale: float = 1.0) -> float | None:
    """Return the value of a series in the unit of its metric; None if no GPU can have it."""
    found = None if value is None else plausible(GPU_METRICS[key], value * scale)
    return found if isinstance(found, (int, float)) else None


def _quoted(text: str) -> str:
    """Return a text for a quoted string of PromQL."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
