"""The state of the screen: what is shown and how. Keys change it, and the painter reads it."""

from __future__ import annotations

from ...model.verdict import Diagnosis
from ...present.theme import Theme
from .past import ProcessPast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...model.event import Event
    from ...model.snapshot import Snapshot
    from ...model.stacks import Stack
    from ...model.verdict import Concern
    from ...monitor.presence import Presence
    from ...sources.base import Relative
    from ...sources.replay.source import Player, Position
    from .history import History
    from .settings import ScreenSettings

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
        ] = ()  # columns that order processes equal in `sort`, each with its direction
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
        self.chart_gpu: int | None = (
            None  # index of the GPU under the cursor and in the charts; None for the mean of all
        )
        self.span = 0  # position in SPANS
        self.cursor: int | None = None  # column of a chart under the mouse
        self.hidden = {"host", "charts", "processes"} - set(settings.panels)  # hidden panels

    def sort_by(self, key: str, falling: bool) -> None:
        """Sort processes by a column; the one before orders those that are equal in it."""
        if key != self.sort:
            self.ties = ((self.sort, self.falling),)
        self.sort, self.falling = key, falling
