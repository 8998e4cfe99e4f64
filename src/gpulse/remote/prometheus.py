"""Machines whose GPUs are in Prometheus or VictoriaMetrics: a handful of queries for any number of them."""

from __future__ import annotations

import re
import time
from types import MappingProxyType

from ..model.catalog import GPU_METRICS, Gpu, Host, Process, memory_percent
from ..model.plausible import drop_implausible
from ..model.snapshot import Snapshot
from ..value import Value, fresh
from .fleet import PollingFeed
from .past import (
    EXPORTED,
    HOST_LABELS,
    INDEX_LABELS,
    INFO,
    NAME_LABELS,
    OWNER,
    SERIES,
    UUID_LABELS,
    PrometheusClient,
    PrometheusPast,
    first_of,
    granted,
    host_of,
    job_label,
    matcher,
)
from .settings import Refused, why_refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .fleet import Fleet
    from .settings import Url

_IDENTITIES_EVERY = 10  # refreshes between two queries for names of GPUs, which hardly ever change
# One query each, so that the answers of 8,000 GPUs are never all in memory: 3 MB for each key.
_QUERIES = (
    ("utilization",),
    ("sm_active",),
    ("memory_used",),
    ("memory_total", "memory_free"),
    ("power_draw", "temperature"),
)


class _Card(Value):
    """What is known of one GPU."""

    values: dict[str, Any] = fresh(factory=dict)
    index: float | None = None
    uuid: str = ""
    name: str = ""
    owner: Mapping[str, str] = MappingProxyType({})
    grant: Mapping[str, str] = MappingProxyType({})

    def gpu(self, place: int) -> Gpu:
        """Return the GPU; `place` is its index if no label tells it."""
        values = {**self.values, "index": place if self.index is None else self.index, "uuid": self.uuid}
        if self.name:
            values["name"] = self.name
        used, free = values.get("memory_used"), values.get("memory_free")
        if "memory_total" not in values and isinstance(used, (int, float)) and isinstance(free, (int, float)):
            # older DCGM exporters do not tell; what the driver reserves is missing
            values["memory_total"] = used + free
        gaps: dict[str, Any] = {key: "unsupported" for key in EXPORTED if key not in values}
        drop_implausible(values, gaps, GPU_METRICS)
        if (share := memory_percent(values)) is not None:
            values["memory_percent"] = share
        if not self.owner:
            return Gpu(values, {**gaps, "processes": "unsupported"})
        return Gpu(values, gaps, processes=(Process(dict(self.owner)),))


class PrometheusFeed(PollingFeed):
    """Asks one Prometheus for all machines, in a thread of its own."""

    def __init__(self, url: Url, interval: float = 5.0, matcher: str = "") -> None:
        super().__init__(interval)
        self._client = PrometheusClient(url, matcher)
        self._names: dict[str, str] = {}  # name in the fleet, by machine
        self._server = ""
        self._identities: dict[tuple[str, str], tuple[str, float | None]] = {}
        self._rounds_done = 0
        self._labels: dict[str, set[tuple[str, str]]] = {}  # by which each machine is found
        self.past: PrometheusPast = PrometheusPast(self._client, self._names, self._labels)

    @property
    def queries(self) -> int:
        """How often Prometheus was asked."""
        return self._client.queries

    def start(self, fleet: Fleet) -> None:
        self._server = fleet.expect(self._client.url.name, "prometheus")  # until it has told what machines there are
        self._begin(self._poll, fleet)

    def _poll(self, fleet: Fleet) -> None:
        for _ in self._rounds():
            try:
                self._refresh(fleet)
            except (Refused, OSError) as error:
                state, reason = why_refused(error)
                for name in [*self._names.values(), *([self._server] if self._server else [])]:
                    fleet.fail(name, state, f"Prometheus: {reason}")

    def _refresh(self, fleet: Fleet) -> None:
        """Ask for everything and hand each machine its sample; a machine that is no longer scraped is stale."""
        ages = self._ages()
        owners = self._describe()
        cards = self._cards(owners)
        if self._server and not ages:
            fleet.fail(self._server, "no_gpu", "Prometheus holds no series of GPUs")
            return
        if self._server:
            fleet.forget(self._server)
            self._server = ""
        grants: dict[str, dict[int, Mapping[str, str]]] = {}
        now = time.time()
        for host, age in sorted(ages.items()):
            name = self._names.get(host) or self._names.setdefault(host, fleet.expect(host, "prometheus"))
            if age is None:
                fleet.fail(name, "unreachable", "Prometheus cannot scrape it")
                continue
            found = sorted(
                cards.get(host, {}).values(), key=lambda card: (card.index is None, card.index or 0.0, card.uuid)
            )
            gpus = tuple(card.gpu(place) for place, card in enumerate(found))
            if given := {int(gpu.index or 0): card.grant for gpu, card in zip(gpus, found, strict=True) if card.grant}:
                grants[name] = given
            fleet.put(name, Snapshot(max(0.0, now - age), gpus, Host({"name": host})), age)
        fleet.grant(self._client.url.name, grants)
        for host in self._names.keys() - ages.keys():
            fleet.fail(self._names[host], "stale", "Prometheus has no recent sample of it")

    def _ages(self) -> dict[str, float | None]:
        """Return the age of the newest sample of each machine; None for one that cannot be scraped."""
        labels = ", ".join((*HOST_LABELS, "job"))
        found: dict[str, float | None] = {}
        jobs: set[str] = set()
        for labelled, at, now in self._client.instant(
            f"max by ({labels}) (timestamp({self._client.selected(matcher('utilization'))}))"
        ):
            jobs.add(labelled.get("job", ""))
            host, age = host_of(labelled), max(0.0, now - at)
            if label := next((label for label in HOST_LABELS if labelled.get(label)), ""):
                self._labels.setdefault(host, set()).add((label, labelled[label]))
            known = found.get(host)
            found[host] = age if known is None else min(known, age)
        names = "|".join(sorted(_escaped(job) for job in jobs if job))
        for labelled, _, _ in self._client.instant(f'up{{job=~"{names}"}} == 0') if names else ():
            found.setdefault(host_of(labelled), None)
        return found

    def _describe(self) -> dict[tuple[str, str], dict[str, str]]:
        """Return the owner of each GPU, by machine and UUID, where an exporter tells; occasionally also read their names."""
        names = (OWNER, *INFO) if self._rounds_done % _IDENTITIES_EVERY == 0 else (OWNER,)
        self._rounds_done += 1
        owners = {}
        for labelled, _, _ in self._client.instant(self._client.selected(f'__name__=~"{"|".join(names)}"')):
            if "mig" in labelled:
                continue
            where = host_of(labelled), first_of(labelled, UUID_LABELS)
            if labelled["__name__"] != OWNER:
                self._identities[where] = (first_of(labelled, NAME_LABELS), _index(labelled))
                continue
            owners[where] = {key: labelled[key] for key in ("user", "container", "pod") if labelled.get(key)}
            if job := job_label(labelled):
                owners[where]["job"] = job
        return owners

    def _cards(self, owners: Mapping[tuple[str, str], dict[str, str]]) -> dict[str, dict[str, _Card]]:
        cards: dict[str, dict[str, _Card]] = {}
        for keys in _QUERIES:
            for labelled, value, _ in self._client.instant(self._client.selected(matcher(*keys))):
                if "mig" in labelled or labelled.get("GPU_I_ID"):
                    continue  # of an instance; the whole GPU has series of its own
                key, scale = SERIES[labelled["__name__"]]
                host, uuid = host_of(labelled), first_of(labelled, UUID_LABELS) or first_of(labelled, INDEX_LABELS)
                card = cards.setdefault(host, {}).setdefault(uuid, _Card())
                if not card.uuid:
                    name, index = self._identities.get((host, uuid), ("", None))
                    card.uuid, card.name = uuid, name or first_of(labelled, NAME_LABELS)
                    card.index = _index(labelled) if index is None else index
                    card.owner = owners.get((host, uuid), {})
                card.values[key] = value * scale
                card.grant = card.grant or (granted(labelled) if labelled["__name__"].startswith("DCGM_") else {})
        return cards


def _index(labelled: Mapping[str, str]) -> float | None:
    text = first_of(labelled, INDEX_LABELS)
    return float(text) if text.isascii() and text.isdecimal() else None


def _escaped(text: str) -> str:
    """Return a text as a part of a regular expression in a quoted string of PromQL, where a backslash stands for itself only if doubled."""
    return re.escape(text).replace("\\", "\\\\").replace('"', '\\"')
