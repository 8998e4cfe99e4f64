"""The state of the screen, its settings, and which metrics it needs. Keys change the state, and the painter reads it."""

from __future__ import annotations

from ...model.catalog import EVIDENCE, GLANCE, HOST_CURVES, HOST_VIEW, PROCESS_EVIDENCE, PROCESS_METRICS, USERS
from ...model.condition import CONDITIONS
from ...model.process_filter import ProcessFilter
from ...model.select import Wanted
from ...model.verdict import Diagnosis
from ...present.theme import Theme
from ...settings.table import CHARTS as CHARTS
from ...settings.table import COLUMNS as COLUMNS
from ...settings.table import PANELS as PANELS
from ...settings.table import TERMINAL, TOP, shown
from ...units import duration_text
from .history import ProcessPast
from .processes import filter_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from ...model.stacks import Stack
    from ...model.verdict import Concern
    from ...monitor.presence import Presence
    from ...sources.base import Relative
    from ...sources.replay import Player, Position
    from .history import History

_STALE = 3  # intervals after which what is on screen is no longer what is
# Chart spans in seconds, and what they are called.
SPANS = ((60, "1 min"), (300, "5 min"), (900, "15 min"), (3600, "1 h"), (10800, "3 h"), (43200, "12 h"))


class State:
    """Everything the painter needs. Only the app and the actions change it."""

    def __init__(self, settings: ScreenSettings, history: History, theme: Theme | None = None) -> None:
        self.settings = settings
        self.history = history
        self.past = ProcessPast()
        self.theme = theme or Theme()
        self.columns, self.rows = 80, 24
        # the data
        self.live: Snapshot | None = None  # the newest sample
        self.shown: Snapshot | None = None  # the sample on screen: the newest or an earlier one
        self.now = 0.0  # seconds since 1970, for ages
        self.paused = False
        self.back = 0.0  # seconds the screen is behind the newest sample; 0 is live
        self.readonly = False
        self.player: Player | None = None  # the player, if the screen shows a recording
        self.position: Position | None = None  # the position in the recording
        # dialogs and messages
        self.dialog = ""  # "", help, filter, sort, signal, details, settings, why
        self.enlarged = ""  # "", gpus, charts, processes: the maximized panel
        self.events: list[Event] = []  # the latest events, newest first
        self.diagnosis = Diagnosis()  # what limits each GPU, judged over the last minute
        self.concerns: tuple[Concern, ...] = ()  # what is wrong now, the worst first
        self.message = ""  # a message for the user, cleared by the next key
        # the processes
        self.sort = settings.sort
        self.falling = settings.falling
        self.ties: tuple[
            tuple[str, bool], ...
        ] = ()  # columns that order what is equal in `sort`, with their directions
        self.filter = ""
        self.editing = ""  # the text in the filter line while it is typed
        self.tree = False
        self.relatives: Mapping[int, Relative] = {}  # processes and their ancestors, for the tree
        self.group = ""  # "", user, container, job
        self.selected: int | None = None  # pid under the cursor
        self.scrolled = 0  # first process row on screen
        self.tagged: set[int] = set()
        self.stacks: Sequence[Stack] = ()  # what the selected process executes now, while its details are open
        self.stack_problem = ""  # why that is not known
        self.run: Presence | None = None  # what a Monitor in the process whose details are open says of its run
        self.digits = ""  # the number being typed in the signal menu
        self.choice = 0  # the line under the cursor in a dialog
        # the GPUs and charts
        self.focus = "processes"  # the panel that the arrow keys and Enter act on: gpus, host, processes
        self.gpu_scrolled = 0  # first line of GPUs on screen
        self.chart_gpu: int | None = None  # index of the GPU under the cursor and in the charts; None: mean of all
        self.span = 0  # position in SPANS
        self.cursor: int | None = None  # column of a chart under the mouse
        self.hidden = {"host", "charts", "processes"} - set(settings.panels)  # hidden panels

    @property
    def stale(self) -> str:
        """How old the newest sample is, as text, when it is older than it should be; else empty."""
        if self.shown is None or self.back or self.paused:
            return ""
        age = self.now - self.shown.time
        return f"{duration_text(age)} old" if age > _STALE * self.settings.interval else ""

    def sort_by(self, key: str, falling: bool) -> None:
        """Sort processes by a column; the one before orders those that are equal in it."""
        if key != self.sort:
            self.ties = ((self.sort, self.falling),)
        self.sort, self.falling = key, falling


INTERVALS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class ScreenSettings:
    """What is kept between runs; every attribute except `theme` and `unknown` is a key of the [top] table of the settings file."""

    def __init__(self) -> None:
        self.interval: float = TOP["interval"].default
        self.columns: list[str] = list(TOP["columns"].default)
        self.charts: list[str] = list(TOP["charts"].default)
        self.sort: str = TOP["sort"].default
        self.falling: bool = TOP["falling"].default
        self.theme: str = TERMINAL["theme"].default  # of all commands, so kept in [terminal]
        self.fahrenheit: bool = TOP["fahrenheit"].default
        self.decimal: bool = TOP["decimal"].default  # MB instead of MiB
        self.panels: list[str] = list(TOP["panels"].default)
        self.unknown: dict[str, Any] = {}  # keys of another version, which stay in the file

    @classmethod
    def load(cls, values: Any) -> tuple[ScreenSettings, list[str]]:
        """Return the settings a [top] table makes, and a sentence for everything in it that cannot be.

        What cannot be is replaced by its default; of a list, only the words that cannot be are left out.
        """
        settings, wrong = cls(), []
        if not isinstance(values, dict):  # the file may hold `top = 3`
            return settings, [f"top: {shown(values)} is not a table."]
        for key, value in values.items():
            if key not in TOP:
                settings.unknown[key] = value
                continue
            taken, sentences = TOP[key].check(value)
            wrong += [f"{key}: {sentence}" for sentence in sentences]
            if taken is not None:
                setattr(settings, key, taken)
        return settings, wrong

    def values(self) -> dict[str, Any]:
        """Return the settings as a [top] table; lists are copies."""
        found = {key: getattr(self, key) for key in TOP}
        return {key: list(value) if isinstance(value, list) else value for key, value in found.items()}


def column_title(column: str, short: bool = False) -> str:
    """Return what a process column is called in a menu, or with `short` at its head."""
    if column == "gpu":
        return "GPU"
    return PROCESS_METRICS[column].short if short else PROCESS_METRICS[column].title


_HOST = (
    "name", "cpu_count", "cpu_per_core", "load", "memory_total", "swap_used", "swap_total", *HOST_CURVES,
    "port_rx", "port_tx", *CONDITIONS["port_flaps"].needs,
)  # fmt: skip
# for the verdict
_JUDGED = ("sm_occupancy", "fp32_active", "pcie_rx", "pcie_tx", "clock_sm_max", "power_default_limit")
_WATCHED = [key for name in ("nvlink_down", "slower_than_peers") for key in CONDITIONS[name].needs]  # for events
_ENGINES = ("encoder_utilization", "decoder_utilization", "video_utilization")  # shown only while used


# what is needed besides what is shown, to judge; the first frame does without
_BESIDES = Wanted({*_JUDGED, *EVIDENCE, *_WATCHED}, PROCESS_EVIDENCE)


def wanted(state: State) -> Wanted:
    """Return what the screen shows now, and what it needs to judge."""
    return shown_metrics(state) | _BESIDES


def shown_metrics(state: State) -> Wanted:
    """Return what the screen shows now."""
    charts = () if "charts" in state.hidden else state.settings.charts
    gpu = {*GLANCE, *_ENGINES, "xid_last", "xids", "fan_speed", *charts}
    process = {*USERS, "command"}
    if "processes" not in state.hidden:
        process |= {key for key in (*state.settings.columns, state.sort, *dict(state.ties)) if key != "gpu"}
        process |= ProcessFilter(filter_text(state)).keys
    host = {"name"} if "host" in state.hidden else {*_HOST}
    if state.dialog == "gpu":
        from .panels.views import view_keys

        gpu |= view_keys()
    elif state.dialog == "host":
        host |= {*_HOST, *HOST_VIEW}
    return Wanted(gpu, process, host, serving=True)
