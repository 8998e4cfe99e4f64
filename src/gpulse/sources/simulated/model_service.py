"""What the model server of a scene says of itself: counts with exact integrals, so that rates are right at any interval."""

from __future__ import annotations

from ...model.serving import Histogram, ServerSample
from .noise import scatter
from .wave import Wave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .scene import Worker

_INFINITE = float("inf")
# Upper bounds in seconds, and the share of all that lies below each.
_FIRST_TOKEN = ((0.1, 0.06), (0.2, 0.41), (0.3, 0.78), (0.4, 0.94), (0.6, 0.985), (1.0, 1.0), (_INFINITE, 1.0))
_INTER_TOKEN = ((0.005, 0.0), (0.01, 0.22), (0.015, 0.71), (0.02, 0.93), (0.03, 0.99), (0.05, 1.0), (_INFINITE, 1.0))
_REQUEST = ((1.0, 0.03), (2.5, 0.21), (5.0, 0.66), (10.0, 0.97), (20.0, 1.0), (_INFINITE, 1.0))


class ModelService:
    """A server whose batch follows the beats of its GPU: each beat is (seconds, generated tokens per second, running, waiting)."""

    def __init__(
        self,
        server: str,
        model: str,
        endpoint: str,
        beats: Sequence[tuple[float, float, float, float]],
        *,
        prompt_share: float,
        answer: float,
        weights: float,
        cache: float,
        cache_used: float,
        age: float,
    ) -> None:
        """Take prompt tokens per generated one, tokens per answer, bytes of weights and cache, the share of it in use in percent."""
        self._names = server, model, endpoint
        self._tokens = Wave([(seconds, rate) for seconds, rate, _, _ in beats])
        self._running = Wave([(seconds, running) for seconds, _, running, _ in beats])
        self._waiting = Wave([(seconds, waiting) for seconds, _, _, waiting in beats])
        self._prompt_share = prompt_share
        self._answer = answer
        self._memory = {"memory_weights": weights, "memory_cache": cache}
        self._cache_used = cache_used
        self._age = age

    def tokens(self, at: float) -> float:
        """Return the tokens generated until a time of the scene."""
        return self._tokens.area(at + self._age)

    def sample(self, at: float, moment: float, worker: Worker) -> ServerSample:
        """Return what the server says at a time of the scene, which is the monotonic time `moment`."""
        generated = self.tokens(at)
        requests = generated / self._answer
        noise = scatter(worker.pid, int(at))
        batch = self._running.mean(at, 0.5)
        return ServerSample(
            *self._names,
            moment,
            gauges={
                "running": round(batch + noise),
                "waiting": max(0, round(self._waiting.mean(at, 0.5) + noise)),
                "kv_cache": min(99.5, self._cache_used + 1.5 * noise),
                **self._memory,
            },
            counts={
                "prompt_tokens": generated * self._prompt_share,
                "generation_tokens": generated,
                "requests": requests,
                "errors": requests * 0.0004,
                "preemptions": requests * 0.002,
                "prefix_queries": generated * self._prompt_share,
                "prefix_found": generated * self._prompt_share * 0.62,
            },
            latencies={
                "first_token": _histogram(_FIRST_TOKEN, requests),
                "inter_token": _histogram(_INTER_TOKEN, generated),
                "request": _histogram(_REQUEST, requests),
            },
            pid=worker.pid,
            pids=(worker.pid,),
        )


def _histogram(shares: Sequence[tuple[float, float]], count: float) -> Histogram:
    return Histogram([bound for bound, _ in shares], [share * count for _, share in shares])
