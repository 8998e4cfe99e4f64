"""Model servers: the programs that are known as such, what one reports before that becomes rates, and the prices of what it uses."""

from __future__ import annotations

from bisect import bisect_left

from ..value import Value, fresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from .catalog import Process
    from .metric import Gap

# What is counted: tokens and requests become rates, the two of the prefix cache a share.
COUNTS = ("prompt_tokens", "generation_tokens", "requests", "errors", "preemptions", "prefix_queries", "prefix_found")
LATENCIES = ("first_token", "inter_token", "request")


class Histogram(Value, frozen=True):
    """Counts by upper bound, each including the ones below it, as Prometheus has them; the last bound is infinite."""

    bounds: Sequence[float]
    counts: Sequence[float]

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


class ServerSample(Value):
    """One answer of a server about one model. `at` is in seconds of the clock of the sampler.

    `gauges` have catalog keys, `counts` and `latencies` the names above. `gap` says why there is no answer, of a server that is
    known from earlier. `pids` are its processes on GPUs; `gpus` their UUIDs, if the caller knows them.
    """

    server: str
    model: str
    endpoint: str
    at: float
    gauges: dict[str, float] = fresh(factory=dict)
    counts: dict[str, float] = fresh(factory=dict)
    latencies: dict[str, Histogram] = fresh(factory=dict)
    pid: int | None = None
    pids: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()
    gap: Gap | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from every other."""
        return self.server, self.endpoint, self.model


# Words of command lines. Where a server says of itself how it is doing, its kind: the name of a module of `serving.kinds`.
# True for servers that reserve nearly all of the memory at their start, or step by step, whatever they need of it.
_SERVERS = {
    "vllm": (True, "vllm"),
    "sglang": (True, "sglang"),
    "tritonserver": (True, "triton"),
    "triton_python_backend_stub": (True, "triton"),
    "tensorflow_model_server": (True, ""),
    "trtllm": (True, ""),
    "text-generation": (True, "tgi"),
    "lmdeploy": (True, ""),
    "nim_llm": (True, "nim"),
    "ollama": (False, "ollama"),
    "llama-server": (False, "llama.cpp"),
    "uvicorn": (False, ""),
    "gunicorn": (False, ""),
    "api_server": (False, ""),
    "serve": (False, ""),
    "servereplica": (False, "vllm"),  # of Ray Serve
    "raylet": (False, "vllm"),
}
_FRAMEWORKS = ("tensorflow", "jax")  # reserve memory at the start of any program


def mentions_server(text: str) -> bool:
    """Return whether a text may be the command line of a server that tells how it is doing; costs less than to know."""
    lowered = text.lower()
    return any(name in lowered for name in _GROUPS["tell"])


def server_kind(words: str) -> str:
    """Return the kind of the server that a name or command line is of; empty if it is of none that tells how it is doing."""
    return next((kind for word in _whole("tell").findall(words.lower()) if (kind := _SERVERS[word][1])), "")


def serves(process: Process | None) -> bool:
    """Return whether a process looks like a server of models, which waits for requests."""
    return _whole("serve").search(_words(process)) is not None


def preallocates(process: Process | None) -> bool:
    """Return whether a process looks like one that reserves memory ahead of need, so that a full GPU says nothing."""
    return _whole("reserve").search(_words(process)) is not None


def shareable_words(process: Process) -> str:
    """Return what a command line says about its kind of program, and nothing else of it."""
    return " ".join(dict.fromkeys(_whole("known").findall(_words(process))))


def _words(process: Process | None) -> str:
    return "" if process is None else f"{process.name or ''} {process.command or ''}".lower()


def _whole(group: str) -> re.Pattern[str]:
    """Return a pattern for the words of a group: observe.py does not serve, and train_triton.py is no tritonserver."""
    if group not in _patterns:
        import re  # a glance at the GPUs does without

        names = "|".join(map(re.escape, _GROUPS[group]))
        _patterns[group] = re.compile(rf"(?<![a-z0-9])(?:{names})(?![a-z0-9])")
    return _patterns[group]


_patterns: dict[str, re.Pattern[str]] = {}
_GROUPS = {
    "serve": [*_SERVERS],
    "known": [*_SERVERS, *_FRAMEWORKS],
    "tell": [name for name, (_, kind) in _SERVERS.items() if kind],
    "reserve": [*(name for name, (reserves, _) in _SERVERS.items() if reserves), *_FRAMEWORKS],
}


_HOUR, _KWH = 3600.0, 3.6e6  # in seconds and joules


class Tariff(Value):
    """Prices: `price` per kWh, `gpu_price` per GPU hour, `carbon` in grams of CO2e per kWh; None if not given."""

    price: float | None = None
    gpu_price: float | None = None
    carbon: float | None = None
    currency: str = ""

    def __bool__(self) -> bool:
        return any(value is not None for value in (self.price, self.gpu_price, self.carbon))

    def per_million(self, tokens: float | None, gpu_seconds: float, joules: float | None) -> float | None:
        """Return what a million tokens cost if some took this much; None without tokens or prices, or with one for an unknown amount."""
        if not tokens or (self.price is None and self.gpu_price is None) or (self.price is not None and joules is None):
            return None
        return (
            ((self.gpu_price or 0.0) * gpu_seconds / _HOUR + (self.price or 0.0) * (joules or 0.0) / _KWH)
            / tokens
            * 1e6
        )
