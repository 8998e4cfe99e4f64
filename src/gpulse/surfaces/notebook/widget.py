"""The live widget: charts under a cell that move while it runs, in JupyterLab, Notebook, VS Code and Colab."""

from __future__ import annotations

import os

from ...errors import UsageError
from ...extras import missing_extra
from ...live import wire
from ...live.hub import wanted
from ...model.codec import to_plain
from ...model.select import metric_named
from .feed import KernelFeed
from .still import StillPicture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...model.snapshot import Snapshot

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


def _widget_class() -> Any:
    """Return the widget class, created on first use because its base class is in an extra."""
    if not _CLASSES:
        try:
            import anywidget
            import traitlets
        except ImportError as error:
            raise missing_extra("gpulse.widget()", str(error.name), "notebook") from None
        _CLASSES.append(_made(anywidget.AnyWidget, traitlets))
    return _CLASSES[0]


def _made(base: Any, traitlets: Any) -> Any:
    class GpuWidget(base):  # type: ignore[misc]
        """A live chart of the GPUs."""

        _esm = _text("widget.js")
        start = traitlets.Dict().tag(sync=True)
        metrics = traitlets.List().tag(sync=True)
        seconds = traitlets.Float().tag(sync=True)
        still = traitlets.Unicode().tag(sync=True)

        def __init__(
            self, metrics: list[str], interval: float, seconds: float, gpus: Sequence[str] | None, source: str | None
        ) -> None:
            self._last = feed = KernelFeed(wanted(commands=False), interval, source, gpus)
            self._feed: KernelFeed | None = feed
            self._still = StillPicture()
            start = _start(feed.latest, interval)
            super().__init__(start=start, metrics=metrics, seconds=seconds, still=self._still.name)
            feed.run(self._take)

        def __repr__(self) -> str:
            return f"gpulse.widget of {', '.join(self.metrics)}"

        def _take(self, snapshot: Snapshot) -> None:
            samples: list[Any] = self.start["samples"]
            samples.append(wire.sample(snapshot))  # in place: a page that is reloaded gets it, and nothing is sent now
            del samples[:-_KEPT]
            self.send({"sample": samples[-1]})
            if self._still.is_due(self._last.seconds):
                self._still.draw(self, snapshot)

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            self._still.show()
            return super()._repr_mimebundle_(**kwargs)

        def stop(self) -> None:
            """Stop sampling; the chart stays."""
            feed, self._feed = self._feed, None
            if feed is not None:
                feed.close()
                self.send({"ended": feed.seconds})
                self.send_state("start")  # a notebook that is saved with the state of its widgets has all samples
                self._still.draw(self, feed.latest)

        def close(self) -> None:
            """Stop sampling and remove the widget."""
            if (feed := getattr(self, "_feed", None)) is not None:
                feed.close()
            super().close()

        def __enter__(self) -> Any:
            from IPython.display import display

            display(self)
            return self

        def __exit__(self, *error: object) -> None:
            self.stop()

    return GpuWidget


def _start(snapshot: Snapshot, interval: float) -> dict[str, Any]:
    """Return what a page needs to begin with."""
    server = {"interval": interval, "history": False}
    first = {**to_plain(snapshot), "time": round(snapshot.time, 3), "server": server}
    return {"catalog": wire.catalog(), "snapshot": first, "samples": [wire.sample(snapshot)]}


def _text(name: str) -> str:
    with open(os.path.join(_STATIC, name), encoding="utf-8") as file:
        return file.read()
