"""What model servers did over a run: tokens, queue, cache and latencies, with the energy of their GPUs."""

from __future__ import annotations

from .series import WeightedSeries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..model.catalog import Gpu, Server
    from ..model.snapshot import Snapshot

_MEANS = ("generation_rate", "prompt_rate", "running", "waiting", "kv_cache", "first_token_p95", "inter_token_p95")


class ServedRun:
    """One server over a run. Tokens are its rates times the seconds; joules those of its GPUs while it answered."""

    __slots__ = ("_joules", "_means", "gpus", "highest", "seconds", "server")

    def __init__(self, server: Server) -> None:
        self.server = server  # as it last answered
        self.gpus: tuple[str, ...] = ()
        self.seconds = 0.0
        self.highest: dict[str, float] = {}
        self._means = {key: WeightedSeries() for key in _MEANS}
        self._joules: float | None = 0.0

    def add(self, server: Server, gpus: Sequence[Gpu], seconds: float) -> None:
        """Add a sample that stands for some seconds."""
        self.server = server
        self.gpus = server.gpus or self.gpus
        self.seconds += seconds
        for key, series in self._means.items():
            if isinstance(value := server.get(key), (int, float)):
                series.add(value, seconds)
                self.highest[key] = max(value, self.highest.get(key, value))
        powers = [gpu.power_draw for gpu in gpus if gpu.uuid in self.gpus]
        known = powers and len(powers) == len(self.gpus) and None not in powers
        if self._joules is not None:
            self._joules = self._joules + seconds * sum(power or 0.0 for power in powers) if known else None

    def mean(self, key: str) -> float | None:
        """Return the mean of a metric over the time in which it is known."""
        return self._means[key].mean

    @property
    def tokens(self) -> float | None:
        """Tokens generated."""
        rate = self._means["generation_rate"]
        return None if rate.mean is None else rate.mean * rate.seconds

    @property
    def joules(self) -> float | None:
        """Energy of its GPUs by their power; None where it is not known for all of them all the time."""
        return self._joules if self.gpus else None

    @property
    def tokens_per_joule(self) -> float | None:
        """Tokens generated per joule."""
        tokens, joules = self.tokens, self.joules
        return tokens / joules if tokens is not None and joules else None

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        names = {key: self.server.get(key) for key in ("server", "model", "endpoint")}
        means = {key: self.mean(key) for key in _MEANS}
        figures = {"tokens": self.tokens, "energy": self.joules, "tokens_per_joule": self.tokens_per_joule}
        return {**names, "gpus": list(self.gpus), "seconds": self.seconds, **means, **figures}


class ServingTally:
    """All servers of a run, by what tells them apart."""

    def __init__(self) -> None:
        self._runs: dict[str, ServedRun] = {}

    def add(self, snapshot: Snapshot, seconds: float) -> None:
        """Add a snapshot that stands for some seconds."""
        for server in snapshot.serving:
            if server.key not in self._runs:
                self._runs[server.key] = ServedRun(server)
            self._runs[server.key].add(server, snapshot.gpus, seconds)

    def sorted(self) -> list[ServedRun]:
        """Return the servers, the one with most tokens first."""
        return sorted(self._runs.values(), key=lambda run: -(run.tokens or 0.0))


def together(runs: Iterable[ServedRun], key: str) -> float | None:
    """Return a figure of all servers of a run: rates add up, tokens per joule are those of all, latencies the highest."""
    found = list(runs)
    if key == "tokens_per_joule":
        tokens, joules = sum(one.tokens or 0.0 for one in found), sum(one.joules or 0.0 for one in found)
        return _rounded(tokens / joules) if joules else None
    known = [value for one in found if (value := one.mean(key)) is not None]
    if not known:
        return None
    return _rounded(max(known) if key.endswith("p95") or key == "kv_cache" else sum(known))


def _rounded(value: float) -> float:
    """Return four digits: two runs that differ by less are alike."""
    return float(f"{value:.4g}")
