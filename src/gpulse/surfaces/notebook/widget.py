"""The live widget: charts under a cell that move while it runs, in JupyterLab, Notebook, VS Code and Colab."""

from __future__ import annotations

import os
import threading
import time

from ...errors import GpulseError, UsageError
from ...model.select import metric_named
from ...monitor.report import gpu_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...sampling.bus import Bus, Subscription
    from ...sampling.sampler import Sampler

_STATIC = os.path.join(os.path.dirname(__file__), "static")
_SHORTEST = 0.1  # seconds
_KEPT = 600  # samples for a page that is reloaded
_CLASSES: list[Any] = []


def widget(
    metrics: Sequence[str] = ("utilization", "memory_used"),
    *,
    interval: float = 1.0,
    seconds: float = 120.0,
    gpus: Sequence[str | int] | None = None,
    source: str | None = None,
) -> Any:
    """Return a live chart of some metrics, one line for each GPU, that shows the last `seconds`.

    It is sampled every `interval` seconds in a thread, also while a cell runs, until `stop()` or `close()`; as a context manager,
    `with gpulse.widget():` shows it and stops with the block. Raises GpulseError where anywidget is missing or there is no GPU.
    """
    keys = [metric_named(name).key for name in metrics]
    if not keys:
        raise UsageError("a widget needs at least one metric;", 'for instance gpulse.widget(["utilization"]).')
    if not interval >= _SHORTEST:
        raise UsageError(f"{interval:g} seconds is too short an interval;", f"{_SHORTEST:g} is the shortest.")
    return _widget_class()(keys, interval, seconds, None if gpus is None else [str(gpu) for gpu in gpus], source)


class WidgetFeed:
    """Samples in a thread and passes each sample on as plain data until it is closed."""

    def __init__(self, interval: float, gpus: Sequence[str] | None, source: str | None) -> None:
        from ...live import wire
        from ...live.hub import wanted
        from ...model.codec import to_plain
        from ...sampling.bus import Bus
        from ...sampling.sampler import Sampler
        from ...sources.registry import make_source

        name = source or os.environ.get("GPULSE_SOURCE") or "auto"
        self._sample = wire.sample
        self._sampler: Sampler = Sampler(make_source(name), wanted(commands=False)).open()
        if gpus is not None:
            self._sampler.choose(gpus)
        self._sampler.settle()
        self.latest = snapshot = self._sampler.read()
        self.start: dict[str, Any] = {
            "catalog": wire.catalog(),
            "snapshot": {
                **to_plain(snapshot),
                "time": round(snapshot.time, 3),
                "server": {"interval": interval, "history": False},
            },
            "samples": [wire.sample(snapshot)],
        }
        self.began = time.monotonic()
        self._bus: Bus = Bus(self._sampler, interval)
        self._subscription: Subscription = self._bus.subscribe()
        self._thread: threading.Thread | None = None

    def run(self, send: Any) -> None:
        """Start calling `send` with each sample."""

        def pump() -> None:
            samples: list[Any] = self.start["samples"]
            for snapshot in self._subscription:
                self.latest = snapshot
                plain = self._sample(snapshot)
                samples.append(plain)  # in place: a page that is reloaded gets it, and nothing is sent now
                del samples[:-_KEPT]
                send({"sample": plain})

        self._thread = threading.Thread(target=pump, name="gpulse-widget", daemon=True)
        self._thread.start()
        self._bus.start()

    def close(self) -> float:
        """Stop; return how many seconds it ran."""
        self._bus.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2.0)
        self._sampler.close()
        return time.monotonic() - self.began


def _widget_class() -> Any:
    """Return the widget class, created on first use because its base class is in an extra."""
    if not _CLASSES:
        try:
            import anywidget
            import traitlets
        except ImportError as error:
            raise GpulseError(f"gpulse.widget() needs {error.name};", "pip install 'gpulse[notebook]'.") from None
        _CLASSES.append(_made(anywidget.AnyWidget, traitlets))
    return _CLASSES[0]


def _made(base: Any, traitlets: Any) -> Any:
    class GpuWidget(base):  # type: ignore[misc]
        """A live chart of the GPUs."""

        _esm = _text("widget.js")
        start = traitlets.Dict().tag(sync=True)
        metrics = traitlets.List().tag(sync=True)
        seconds = traitlets.Float().tag(sync=True)

        def __init__(
            self, metrics: list[str], interval: float, seconds: float, gpus: Sequence[str] | None, source: str | None
        ) -> None:
            self._feed: WidgetFeed | None = WidgetFeed(interval, gpus, source)
            self._last = self._feed
            super().__init__(start=self._feed.start, metrics=metrics, seconds=seconds)
            self._feed.start = self.start
            self._feed.run(self.send)

        def __repr__(self) -> str:
            """Return the last values of each GPU: what is left of the widget in a saved notebook."""
            lines = [gpu_line(gpu, int(gpu.index or 0)) for gpu in self._last.latest.gpus]
            return "\n".join([f"gpulse.widget of {', '.join(self.metrics)}", *lines])

        def stop(self) -> None:
            """Stop sampling; the chart stays."""
            feed, self._feed = self._feed, None
            if feed is not None:
                self.send({"ended": feed.close()})

        def close(self) -> None:
            """Stop sampling and remove the widget."""
            feed, self._feed = getattr(self, "_feed", None), None
            if feed is not None:
                feed.close()
            super().close()

        def __enter__(self) -> Any:
            from IPython.display import display

            display(self)
            return self

        def __exit__(self, *error: object) -> None:
            self.stop()

    return GpuWidget


def _text(name: str) -> str:
    with open(os.path.join(_STATIC, name), encoding="utf-8") as file:
        return file.read()
