"""Sinks by name: `csv:gpu.csv`, `tensorboard:runs`, or the name of a plug-in with what it needs after a colon."""

from __future__ import annotations

from ..errors import UsageError
from ..model.select import did_you_mean
from .base import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..plugins import Plugin
    from .base import Sample

# name: its class, and what follows the colon (in brackets where it may be left out, empty where nothing may follow)
BUILT_IN = {
    "csv": ("CsvSink", "FILE"),
    "jsonl": ("JsonlSink", "FILE"),
    "tensorboard": ("TensorBoardSink", "[FOLDER]"),
    "wandb": ("WandbSink", ""),
    "mlflow": ("MlflowSink", "[RUN]"),
    "comet": ("CometSink", ""),
    "clearml": ("ClearmlSink", ""),
    "swanlab": ("SwanlabSink", ""),
    "trackio": ("TrackioSink", ""),
    "history": ("HistorySink", "[FILE]"),
}


def sink_named(text: str) -> Sink:
    """Return the sink that a text such as `csv:gpu.csv` or `wandb` names; raise UsageError when there is none.

    A plug-in is loaded when the sink is opened, so that a broken one is reported like any sink that cannot be opened.
    """
    name, _, detail = text.partition(":")
    if name in BUILT_IN:
        return _built_in(name, detail)
    from ..plugins import SINKS, plugins

    found = plugins(SINKS)
    for plugin in found:
        if plugin.name == name:
            return PluginSink(plugin, detail)
    names = list(dict.fromkeys([*BUILT_IN, *(plugin.name for plugin in found)]))
    guess = did_you_mean(name, names)
    folder = "" if guess or ":" in text else f"write tensorboard:{text} for a folder of TensorBoard, or "
    raise UsageError(f"unknown sink {text!r}{guess}", f"{folder}choose one of {', '.join(names)}.")


def _built_in(name: str, detail: str) -> Sink:
    kind, needs = BUILT_IN[name]
    if needs.isupper() and not detail and not needs.startswith("["):
        raise UsageError(f"the sink {name!r} needs a file;", f"write it as {name}:{needs}.")
    if detail and not needs:
        raise UsageError(f"the sink {name!r} takes nothing after its name;", f"write it as {name}.")
    made: type[Sink] = getattr(__import__("gpulse.sinks", fromlist=[kind]), kind)
    return made(detail) if detail else made()  # type: ignore[call-arg]


class PluginSink(Sink):
    """A sink of another package: loaded and made by `open`, which raises BrokenPlugin when that fails."""

    def __init__(self, plugin: Plugin, detail: str) -> None:
        self.name = plugin.name
        self._plugin = plugin
        self._detail = detail
        self._sink: Sink | None = None

    def open(self) -> None:
        sink = self._plugin.call(self._detail)
        if not isinstance(sink, Sink):
            raise self._plugin.broken(f"it made a {type(sink).__name__} instead of a gpulse.sinks.Sink")
        self.processes, self.stacks = sink.processes, sink.stacks
        sink.open()
        self._sink = sink

    def write(self, sample: Sample) -> None:
        assert self._sink is not None
        self._sink.write(sample)

    def continued(self) -> str:
        return "" if self._sink is None else self._sink.continued()

    def summarize(self, text: str) -> None:
        if self._sink is not None:
            self._sink.summarize(text)

    def flush(self) -> None:
        if self._sink is not None:
            self._sink.flush()

    def close(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.close()
