"""What a model server says of itself at one moment: gauges, counts and histograms under gpulse's names, before they become rates."""

from __future__ import annotations

from bisect import bisect_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .metric import Gap

# What is counted: tokens and requests become rates, the two of the prefix cache a share.
COUNTS = ("prompt_tokens", "generation_tokens", "requests", "errors", "preemptions", "prefix_queries", "prefix_found")
LATENCIES = ("first_token", "inter_token", "request")


class Histogram:
    """Counts by upper bound, each including the ones below it, as Prometheus has them; the last bound is infinite."""

    __slots__ = ("bounds", "counts")

    def __init__(self, bounds: Sequence[float], counts: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = tuple(counts)

    def since(self, before: Histogram | None) -> Histogram:
        """Return what was counted after an earlier moment; all of it if the buckets differ or a count fell, as after a restart."""
        if before is None or before.bounds != self.bounds:
            return self
        grown = [now - then for now, then in zip(self.counts, before.counts, strict=True)]
        return self if min(grown, default=0.0) < 0 else Histogram(self.bounds, grown)

    def quantile(self, share: float) -> float | None:
        """Return the value below which this share of all lies, evenly spread inside a bucket; None without any.

        In the last, endless bucket it is the highest bound that is known.
        """
        total = self.counts[-1] if self.counts else 0.0
        if not total > 0:
            return None
        wanted = share * total
        at = min(bisect_left(self.counts, wanted), len(self.counts) - 1)
        upper = self.bounds[at]
        lower, below = (self.bounds[at - 1], self.counts[at - 1]) if at else (min(0.0, upper), 0.0)
        if upper == float("inf"):
            return lower if at else None
        inside = self.counts[at] - below
        return upper if inside <= 0 else lower + (upper - lower) * (wanted - below) / inside

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and (self.bounds, self.counts) == (other.bounds, other.counts)

    def __hash__(self) -> int:
        return hash((self.bounds, self.counts))

    def __repr__(self) -> str:
        return f"Histogram({dict(zip(self.bounds, self.counts, strict=False))})"


class ServerSample:
    """One answer of a server about one model. `at` is in seconds of the clock of the sampler.

    `gauges` have catalog keys, `counts` and `latencies` the names above. `gap` says why there is no answer, of a server that is
    known from earlier. `pids` are its processes on GPUs; `gpus` their UUIDs, if whoever asked knows them.
    """

    __slots__ = ("at", "counts", "endpoint", "gap", "gauges", "gpus", "latencies", "model", "pid", "pids", "server")

    def __init__(
        self,
        server: str,
        model: str,
        endpoint: str,
        at: float,
        *,
        gauges: Mapping[str, float] | None = None,
        counts: Mapping[str, float] | None = None,
        latencies: Mapping[str, Histogram] | None = None,
        pid: int | None = None,
        pids: tuple[int, ...] = (),
        gpus: tuple[str, ...] = (),
        gap: Gap | None = None,
    ) -> None:
        self.server = server
        self.model = model
        self.endpoint = endpoint
        self.at = at
        self.gauges = dict(gauges or {})
        self.counts = dict(counts or {})
        self.latencies = dict(latencies or {})
        self.pid = pid
        self.pids = pids
        self.gpus = gpus
        self.gap: Gap | None = gap

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from every other."""
        return self.server, self.endpoint, self.model

    def __repr__(self) -> str:
        return f"<ServerSample {self.server} {self.model} at {self.endpoint}>"
