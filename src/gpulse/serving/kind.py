"""A kind of server as data: under which names it reports what, and how the series of several ranks and engines become one figure.

Of Prometheus' text format only the named series are parsed: 40 KB with 20 of 600 series cost 0.15 ms, not 3.
"""

from __future__ import annotations

import re
from itertools import pairwise

from ..model.serving import Histogram
from ..value import Value, fresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from ..model.metric import Gap

    Labels: TypeAlias = dict[str, str]
    Samples: TypeAlias = "dict[str, list[tuple[Labels, float]]]"

MOST_MODELS = 16  # of one endpoint; more would be a mistake of ours or an attack


class Series:
    """Names of one figure, newest first: the first that is there counts. `where` are labels that a sample must have.

    `scale` turns the server's unit into ours. A value of `where` that ends in * is compared up to there.
    """

    __slots__ = ("names", "scale", "where")

    def __init__(self, *names: str, scale: float = 1.0, where: Mapping[str, str] | None = None) -> None:
        self.names = names
        self.scale = scale
        self.where = dict(where or {})

    def matches(self, labels: Labels) -> bool:
        """Return whether a sample has the labels."""
        return all(_alike(labels.get(key, ""), value) for key, value in self.where.items())


class Figures(Value):
    """What one answer says about one model; gauges have catalog keys, counts and latencies those of `model.serving`.

    `server`, `endpoint` and `gap` are set where the one who answers reports others.
    """

    model: str
    server: str = ""
    endpoint: str = ""
    gap: Gap | None = None
    gauges: dict[str, float] = fresh(factory=dict)
    counts: dict[str, float] = fresh(factory=dict)
    latencies: dict[str, Histogram] = fresh(factory=dict)


class SecondPage(Value):
    """Another page of a server, asked where its figures lack the gauge `key`.

    `read` returns the gauge from an answer and the command line of the server, which is empty if not known; None if they do not tell.
    """

    path: str
    key: str
    read: Callable[[bytes, str], float | None]


class Kind(Value):
    """One kind of server. An answer is of this kind if a line begins with one of the `prefixes` followed by `mark`.

    `model` is the label with the name of the model; without one, the caller names it. Of series that differ only in `ranks`,
    which compute the same requests together, the highest counts; all others are added up, but for `means`, which are shares.
    `capacity` is the number of tokens that the cache has room for. `read`, of a kind that answers something else than the text
    format, turns an answer into figures. `second` is another page with what `path` may lack.
    `remedy` says what to do where `path` is missing.
    """

    name: str
    mark: str = ""
    prefixes: Sequence[str] = ("",)
    path: str = "/metrics"
    ports: Sequence[int] = ()
    model: str = "model_name"
    gauges: Mapping[str, Series] = fresh(factory=dict)
    counts: Mapping[str, Series] = fresh(factory=dict)
    latencies: Mapping[str, Series] = fresh(factory=dict)
    capacity: Callable[[Samples, str], float | None] | None = None
    capacity_names: Sequence[str] = ()
    means: Collection[str] = ("kv_cache",)
    ranks: Collection[str] = ()
    read: Callable[[bytes], list[Figures]] | None = None
    second: SecondPage | None = None
    remedy: str = ""

    def prefix_in(self, body: bytes) -> str | None:
        """Return the prefix with which an answer is of this kind; None if it is of another."""
        text = b"\n" + body
        return next((prefix for prefix in self.prefixes if f"\n{prefix}{self.mark}".encode() in text), None)

    def names(self, prefix: str, whole: bool = True) -> list[str]:
        """Return the series to parse: all, or only gauges and counts, which are a third of the price."""
        found = [name for table in (self.gauges, self.counts) for series in table.values() for name in series.names]
        if whole:
            found += self.capacity_names
            found += [f"{name}_bucket" for series in self.latencies.values() for name in series.names]
        return list(dict.fromkeys(_full(prefix, name) for name in found))

    def figures(self, samples: Samples, prefix: str) -> list[Figures]:
        """Return the figures of each model of an answer; those with most requests if there are too many."""
        found: dict[str, Figures] = {}
        for table, fill in ((self.gauges, self._gauge), (self.counts, self._count), (self.latencies, self._latency)):
            for key, series in table.items():
                for model, chosen in self._by_model(samples, prefix, series, table is self.latencies).items():
                    fill(found.setdefault(model, Figures(model)), key, series, chosen)
        if "" in found and len(found) > 1:
            shared = found.pop("")  # what a server says of all its models together is nobody's, unless it has only one
            if len(found) == 1:
                only = next(iter(found.values()))
                only.gauges = shared.gauges | only.gauges
                only.counts = shared.counts | only.counts
        if self.capacity is not None and len(found) == 1:
            tokens = self.capacity(samples, prefix)
            if tokens is not None:
                next(iter(found.values())).gauges["capacity"] = tokens
        busiest = sorted(found.values(), key=lambda one: -sum(one.counts.values()))
        used = [one for one in busiest if any(one.counts.values())] or busiest[
            :1
        ]  # Triton lists what nobody ever asked
        return used[:MOST_MODELS]

    def _by_model(
        self, samples: Samples, prefix: str, series: Series, buckets: bool
    ) -> dict[str, list[tuple[Labels, float]]]:
        for name in series.names:
            full = _full(prefix, f"{name}_bucket" if buckets else name)
            chosen = [sample for sample in samples.get(full, ()) if series.matches(sample[0])]
            if chosen or full in samples:  # a counter without the labels asked for is 0: there were none of these
                by_model: dict[str, list[tuple[Labels, float]]] = {}
                for labels, value in chosen:
                    by_model.setdefault(labels.get(self.model, ""), []).append((labels, value))
                if not chosen and series.where:
                    models = {labels.get(self.model, "") for labels, _ in samples[full]}
                    by_model = {model: [({}, 0.0)] for model in models}
                return by_model
        return {}

    def _gauge(self, figures: Figures, key: str, series: Series, samples: list[tuple[Labels, float]]) -> None:
        values = self._of_engines(samples)
        if values:
            total = sum(values) / len(values) if key in self.means else sum(values)
            figures.gauges[key] = total * series.scale

    def _count(self, figures: Figures, key: str, series: Series, samples: list[tuple[Labels, float]]) -> None:
        values = self._of_engines(samples)
        if values:
            figures.counts[key] = sum(values) * series.scale

    def _latency(self, figures: Figures, key: str, series: Series, samples: list[tuple[Labels, float]]) -> None:
        buckets: dict[float, list[tuple[Labels, float]]] = {}
        for labels, value in samples:
            try:
                bound = float(labels.get("le", ""))
            except ValueError:
                continue
            buckets.setdefault(bound, []).append((labels, value))
        bounds = sorted(buckets)
        if not bounds or bounds[-1] != float("inf"):
            return
        counts = [sum(self._of_engines(buckets[bound])) for bound in bounds]
        if all(low <= high for low, high in pairwise(counts)):
            scaled = [bound * series.scale for bound in bounds]
            figures.latencies[key] = Histogram(scaled, counts)

    def _of_engines(self, samples: list[tuple[Labels, float]]) -> list[float]:
        """Return one value per engine: the highest of its ranks. A value that is not a number is nothing."""
        if not self.ranks:
            return [value for _, value in samples if _sound(value)]
        highest: dict[tuple[tuple[str, str], ...], float] = {}
        for labels, value in samples:
            if _sound(value):
                engine = tuple(sorted(pair for pair in labels.items() if pair[0] not in self.ranks))
                highest[engine] = max(value, highest.get(engine, 0.0))
        return list(highest.values())


def _full(prefix: str, name: str) -> str:
    """Return a name with its prefix; one that begins with = has none, whatever the others have."""
    return name[1:] if name.startswith("=") else f"{prefix}{name}"


def _sound(value: float) -> bool:
    return 0.0 <= value < 1e18  # NaN, which some say before the first request, is neither


def _alike(value: str, wanted: str) -> bool:
    return value.startswith(wanted[:-1]) if wanted.endswith("*") else value == wanted


_LABEL = re.compile(rb'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}
_MOST_KNOWN = 4096  # label sets kept between two answers


class TextFormat:
    """Parses the answers of one server. The labels of a series are parsed once and then known by their text."""

    def __init__(self, names: Iterable[str]) -> None:
        self._starts = {name: b"\n" + name.encode() for name in names}
        self._labels: dict[bytes, Labels] = {}

    def parse(self, body: bytes, names: Iterable[str] | None = None) -> Samples:
        """Return the samples of the names, or of some of them, each with its labels, in order.

        Lines that make no sense are left out.
        """
        text = b"\n" + body + b"\n"
        found: Samples = {}
        for name in self._starts if names is None else names:
            start = self._starts[name]
            at = text.find(start)
            while at >= 0:
                begin, end = at + len(start), text.find(b"\n", at + 1)
                if text[begin : begin + 1] in (b"{", b" ", b"\t"):
                    sample = self._sample(text[begin:end])
                    if sample is not None:
                        found.setdefault(name, []).append(sample)
                at = text.find(start, end)
        return found

    def _sample(self, line: bytes) -> tuple[Labels, float] | None:
        labels: Labels = {}
        rest = line
        if line[:1] == b"{":
            close = line.rfind(b"}") + 1
            written, rest = line[:close], line[close:]
            known = self._labels.get(written) or _labels(written)
            if known is None:
                return None
            if len(self._labels) < _MOST_KNOWN:
                self._labels[written] = known
            labels = known
        words = rest.split()
        try:
            return (labels, float(words[0])) if 1 <= len(words) <= 2 else None  # the second is a timestamp
        except ValueError:
            return None


def _labels(written: bytes) -> Labels | None:
    """Parse {name="value",...}; None if it is something else."""
    labels: Labels = {}
    at, end = 1, len(written) - 1
    while at < end:
        found = _LABEL.match(written, at, end)
        if found is None:
            return None if written[at:end].strip() else labels
        value = found[2].decode("utf-8", "replace")
        labels[found[1].decode()] = _ESCAPE.sub(_unescaped, value) if "\\" in value else value
        at = found.end()
    return labels


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPED.get(found[1], found[0])
