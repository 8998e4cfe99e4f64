"""Keys and their actions, one line per action; help and hints are generated from this table."""

from __future__ import annotations

from ...value import Value
from .signals import USUAL
from .state import SPANS, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

GROUPS = ("", "user", "container", "job")
PANELS = ("", "processes", "gpus", "charts")
FOCUS = ("processes", "gpus", "host")
_FOCUSED = {
    "processes": "arrow keys select a process; Enter shows its details",
    "gpus": "arrow keys select a GPU; Enter shows all about it",
    "host": "Enter shows the host: CPUs, paging, disks, ports, top processes",
}


class Action(Value):
    """An action and its keys: `what` is its description for the help, `hint` its label in the bottom line, if any."""

    keys: tuple[str, ...]
    what: str
    run: Callable[[State], str | None]
    hint: str = ""


def _dialog(name: str) -> Callable[[State], str | None]:
    def run(state: State) -> None:
        state.dialog = "" if state.dialog == name else name
        state.choice = 0

    return run


def _open(state: State) -> None:
    """Open what the keys act on: a process, a GPU or the host."""
    _dialog({"gpus": "gpu", "host": "host"}.get(state.focus, "details"))(state)


def _next_focus(state: State) -> None:
    panels = [panel for panel in FOCUS if panel not in state.hidden]
    at = panels.index(state.focus) if state.focus in panels else -1
    state.focus = panels[(at + 1) % len(panels)]
    first = next((gpu.index for gpu in (state.shown.gpus if state.shown else ())), None)
    if state.focus == "gpus" and state.chart_gpu is None and first is not None:
        state.chart_gpu = int(first)
    state.message = _FOCUSED[state.focus]


def _filter(state: State) -> None:
    state.dialog, state.editing = "filter", state.filter


def _escape(state: State) -> None:
    if state.dialog:
        state.dialog = ""
    elif state.enlarged:
        state.enlarged = ""
    elif state.focus != "processes" or state.chart_gpu is not None:
        state.focus, state.chart_gpu = "processes", None
    elif state.filter:
        state.filter = ""
    else:
        state.tagged.clear()


def _toggle_tree(state: State) -> None:
    state.tree = not state.tree
    state.group = ""


def _next_group(state: State) -> None:
    state.group = GROUPS[(GROUPS.index(state.group) + 1) % len(GROUPS)]
    state.tree = False
    state.message = f"grouped by {state.group}" if state.group else "not grouped"


def _reverse(state: State) -> None:
    state.falling = not state.falling


def _sort_step(step: int) -> Callable[[State], str | None]:
    def run(state: State) -> None:
        columns = [key for key in state.settings.columns if key != "command"] or ["command"]
        at = columns.index(state.sort) if state.sort in columns else 0
        state.sort_by(columns[(at + step) % len(columns)], state.falling)

    return run


def _tag(state: State) -> str | None:
    if state.selected is not None:
        state.tagged ^= {state.selected}
    return "down"


def _signal(state: State) -> None:
    if state.readonly:
        state.message = "signals are disabled: gpulse was started with --readonly"
    elif state.back:
        state.message = "not live: press l to return to live data"
    elif state.selected is None and not state.tagged:
        state.message = "no process selected"
    else:
        state.dialog, state.choice, state.digits = "signal", USUAL, ""


def _pause(state: State) -> None:
    state.paused = not state.paused
    if not state.paused:
        state.back = 0.0


def _step_back(seconds: float) -> Callable[[State], str | None]:
    def run(state: State) -> None:
        moments = state.history.moments()
        if not moments or state.live is None:
            return
        longest = state.live.time - moments[0]
        state.back = min(longest, max(0.0, state.back + seconds))
        state.paused = state.paused or state.back > 0

    return run


def _live(state: State) -> None:
    state.back, state.paused = 0.0, False


def _enlarge(state: State) -> None:
    state.enlarged = PANELS[(PANELS.index(state.enlarged) + 1) % len(PANELS)]


def _panel(name: str) -> Callable[[State], str | None]:
    def run(state: State) -> None:
        state.hidden ^= {name}

    return run


def _next_span(state: State) -> None:
    state.span = (state.span + 1) % len(SPANS)


def _next_chart_gpu(state: State) -> None:
    indices = [int(gpu.index) for gpu in (state.live.gpus if state.live else ()) if gpu.index is not None]
    order: list[int | None] = [None, *indices]
    at = order.index(state.chart_gpu) if state.chart_gpu in order else 0
    state.chart_gpu = order[(at + 1) % len(order)]


def _move(name: str) -> Callable[[State], str | None]:
    return lambda state: name


def _pace(factor: float) -> Callable[[State], str | None]:
    def run(state: State) -> str:
        now = state.settings.interval
        state.settings.interval = min(max(10.0, now), max(min(0.2, now), now * factor))
        state.message = f"every {state.settings.interval:g} s"
        return "interval"

    return run


ACTIONS = (
    Action(("f1", "?", "h"), "show this help", _dialog("help"), "help"),
    Action(("f2", "S"), "settings", _dialog("settings"), "setup"),
    Action(("/", "f3", "f4"), "filter processes, as explained below", _filter, "filter"),
    Action(("f5", "t"), "show processes as a tree", _toggle_tree, "tree"),
    Action(("g",), "group by user, container, job", _next_group, "group"),
    Action(("f6", "o"), "choose the sort column", _dialog("sort"), "sort"),
    Action(("<", ","), "sort by the previous column; in settings: move column", _sort_step(-1)),
    Action((">", "."), "sort by the next column; in settings: move column", _sort_step(1)),
    Action(("r", "I"), "reverse the order", _reverse),
    Action(("f9", "K"), "send a signal to the selected or tagged processes", _signal, "kill"),
    Action(("space",), "tag a process", _tag),
    Action(("enter",), "all about the selected process, GPU or host", _open),
    Action(("tab",), "arrow keys and Enter act on: processes, GPUs, host", _next_focus),
    Action(("left",), "", _move("left")),
    Action(("right",), "left, right: select a GPU; charts follow", _move("right")),
    Action(("d",), "all about the selected GPU: metrics, verdict, events", _dialog("gpu")),
    Action(("n",), "the host: CPUs, paging, disks, ports, top processes", _dialog("host"), "host"),
    Action(("y",), "what limits each GPU, and what to try", _dialog("why"), "why"),
    Action(("e",), "maximize a panel", _enlarge),
    Action(("H",), "show or hide the host", _panel("host")),
    Action(("C",), "show or hide charts", _panel("charts")),
    Action(("P",), "show or hide processes", _panel("processes")),
    Action(("m",), "charts of the next GPU or all", _next_chart_gpu, "gpu"),
    Action(("s",), "change the time span of charts", _next_span, "span"),
    Action(("p", "z"), "pause", _pause, "pause"),
    Action(("[",), "5 seconds back", _step_back(5)),
    Action(("]",), "5 seconds forward", _step_back(-5)),
    Action(("{",), "1 minute back", _step_back(60)),
    Action(("}",), "1 minute forward", _step_back(-60)),
    Action(("l",), "back to live", _live),
    Action(("+", "="), "shorter interval", _pace(0.5)),
    Action(("-",), "longer interval", _pace(2.0)),
    Action(("w",), "save the settings", _move("save")),
    Action(("up", "k"), "cursor up; also PgUp and Home", _move("up")),
    Action(("down", "j"), "cursor down; also PgDn and End", _move("down")),
    Action(("pageup",), "", _move("pageup")),
    Action(("pagedown",), "", _move("pagedown")),
    Action(("home",), "", _move("home")),
    Action(("end", "G"), "", _move("end")),
    Action(("escape",), "close; clear filter and tags", _escape),
    Action(("ctrl-l",), "redraw", _move("redraw")),
    Action(("f10", "q", "ctrl-c"), "quit", _move("quit"), "quit"),
)
BY_KEY = {key: action for action in ACTIONS for key in action.keys}


def action_for(state: State, key: str) -> Action | None:
    """Return the action of a key; in a recording, playback keys take precedence."""
    return next((action for action in _now(state.player is not None) if key in action.keys), None)


def help_table(recording: bool = False) -> list[tuple[str, str]]:
    """Return the keys and their descriptions, for the help."""
    return [(" ".join(action.keys), action.what) for action in _now(recording) if action.what]


def help_lines(recording: bool = False) -> list[tuple[str, str]]:
    """Return the lines of the help: the keys, then the words of a filter."""
    from ...model.process_filter import FILTER_HELP

    return [*help_table(recording), ("/ words", "filter: every word must match a process"), *FILTER_HELP]


def hints(recording: bool = False) -> list[tuple[str, str]]:
    """Return key and label of the actions shown in the bottom line."""
    shown = [(action.keys[0], action.hint) for action in _now(recording) if action.hint]
    return [(key.upper() if key.startswith("f") else key, hint) for key, hint in shown]


def _now(recording: bool) -> tuple[Action, ...]:
    """Return the current actions, each with the keys that no earlier action has taken."""
    if not recording:
        return ACTIONS
    from .feeds import REPLAY

    taken = {key for action in REPLAY for key in action.keys}
    left = [(action, tuple(key for key in action.keys if key not in taken)) for action in ACTIONS]
    return (*REPLAY, *(Action(keys, action.what, action.run, action.hint) for action, keys in left if keys))
