"""The live widget: charts under a cell that move while it runs; in a saved notebook a picture stands for them."""

from __future__ import annotations

import os
import secrets

from ...errors import UsageError
from ...live import STATIC, wire
from ...live.hub import wanted
from ...model.catalog import GPU_METRICS
from ...model.codec import to_plain
from ...model.select import metric_named
from ...monitor.report import gpu_line
from ...plugins import missing_extra
from ...present.cells import moment_text, value_text
from .chart import CellChart, CellLine, ChartImage
from .live_table import KernelFeed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...model.metric import Metric
    from ...model.snapshot import Snapshot

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

        _esm, _css = _text("charts.js"), _text("lab.css")  # the default export is the widget
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
    with open(os.path.join(STATIC, name), encoding="utf-8") as file:
        return file.read()


_FIRST, _EVERY = 5.0, 30.0  # seconds; drawing one takes 50 to 150 ms of the kernel
_FEWEST = 2  # samples


class StillPicture:
    """A picture beside a widget, wherever that is shown. The widget hides it by its `name` while there is a kernel."""

    def __init__(self) -> None:
        self.name = secrets.token_hex(8)
        self._shown: list[Any] = []
        self._due = _FIRST

    def show(self) -> None:
        """Make a place for it in the output of the cell that runs."""
        from IPython.display import display

        place = display(self._output("", "gpulse.widget"), raw=True, display_id=True)
        self._shown += [] if place is None else [place]

    def is_due(self, seconds: float) -> bool:
        """Tell whether it is to be drawn again, `seconds` after the start of the widget."""
        if not self._shown or seconds < self._due:
            return False
        self._due = seconds + _EVERY
        return True

    def draw(self, widget: Any, latest: Snapshot) -> None:
        """Draw the charts of a widget; where no image is shown, the last values stand for them."""
        if not self._shown:
            return
        lines = [gpu_line(gpu, int(gpu.index or 0)) for gpu in latest.gpus]
        text = "\n".join([f"{widget!r} at {moment_text(latest.time)}", *lines])
        image = widget_image(widget.start["samples"], widget.metrics, widget.seconds)
        output = self._output("" if image is None else image.html(text), text)
        for place in self._shown:
            place.update(output, raw=True)

    def _output(self, picture: str, text: str) -> dict[str, str]:
        return {"text/html": f'<div data-gpulse-still="{self.name}">{picture}</div>', "text/plain": text}


def widget_image(samples: Sequence[dict[str, Any]], keys: Sequence[str], seconds: float) -> ChartImage | None:
    """Return the last `seconds` of some samples as charts, one for each metric; None while there are too few."""
    shown = [sample for sample in samples if sample["time"] >= samples[-1]["time"] - seconds]
    if len(shown) < _FEWEST:
        return None
    times = [sample["time"] - shown[0]["time"] for sample in shown]
    charts = [_chart(shown, GPU_METRICS[key]) for key in keys]
    return ChartImage(times, charts)


def _chart(samples: Sequence[dict[str, Any]], metric: Metric) -> CellChart:
    by_uuid = [{gpu.get("uuid"): gpu for gpu in sample["gpus"]} for sample in samples]
    lines = [
        CellLine(
            f"GPU {gpu.get('index', at)}",
            int(gpu.get("index", at)),
            [_number(one.get(gpu.get("uuid")), metric) for one in by_uuid],
        )
        for at, gpu in enumerate(samples[-1]["gpus"])
    ]
    known = [value for line in lines for value in line.values if value is not None]
    top = 100.0 if metric.unit.symbol == "%" else max(known, default=0.0) or 1.0
    return CellChart(metric.title, lines, top, value_text(metric, top))


def _number(gpu: dict[str, Any] | None, metric: Metric) -> float | None:
    value = None if gpu is None else gpu.get(metric.key)
    return value if isinstance(value, (int, float)) else None
