"""The still picture of a widget: what is left of it in a saved notebook, where no kernel moves it."""

from __future__ import annotations

import secrets

from ...model.catalog import GPU_METRICS
from ...monitor.report import gpu_line
from ...present.cells import value_text
from ...present.quantities import moment_text
from .chart import CellChart, CellLine, ChartImage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...model.metric import Metric
    from ...model.snapshot import Snapshot

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
