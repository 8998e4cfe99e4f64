"""From stacks with the seconds that a GPU waited and computed to the lines of the user's code, and to a flame graph."""

from __future__ import annotations

from ..model.stacks import CodeLine
from ..value import Value, fresh
from .own_lines import OwnLine, library_of, own_line, waits_for_gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, TypeAlias

    from ..model.stacks import Frame, TimedStack

    Function: TypeAlias = tuple[str, str]

_MOSTLY = 0.8  # of the waits of a function that one function it calls must have to be named instead
# Of the time of a function, and of the program's work, that may be work while it only keeps the GPU waiting
_IDLE = 0.5
_LAUNCHES = 0.02  # of the time of a function that may be in calls that give work to the GPU


def code_lines(stacks: Iterable[TimedStack]) -> tuple[CodeLine, ...]:
    """Return the user's lines of stacks with seconds waited and computed, the longest wait first.

    A function that only keeps the GPU waiting, a metric in Python for instance, is one entry: its line with the longest wait has the
    seconds of the whole function, with what it calls. Waits for launches count for the call that had waited for the GPU before, since
    without it the program would have launched ahead: at most as long as the program stood in that call.
    """
    timed = [_TimedLine(line, waited, computed) for frames, waited, computed in stacks if (line := own_line(frames))]
    groups: dict[object, list[_TimedLine]] = {}
    pure = _waiting_functions(timed)
    for one in timed:
        depth = next((at for at, frame in enumerate(one.line.path) if (frame.file, frame.function) in pure), None)
        if depth is None:
            groups.setdefault(one.line.frame[:3], []).append(one)
        else:
            one.depth = depth
            groups.setdefault(pure_name(one, depth), []).append(one)
    lines = [_entry(group) for group in groups.values()]
    _blame_waits_for_gpu(lines)
    return tuple(sorted((line.value for line in lines), key=lambda line: (-line.waited, -line.computed, line[:2])))


class _TimedLine(Value):
    """A stack with its seconds; `depth` is the place of the outermost function that only keeps the GPU waiting."""

    line: OwnLine
    waited: float
    computed: float
    depth: int = -1


def pure_name(one: _TimedLine, depth: int) -> Function:
    """Return the function at a depth of the user's frames."""
    return one.line.path[depth].file, one.line.path[depth].function


def _waiting_functions(timed: Sequence[_TimedLine]) -> set[Function]:
    """Return the functions that only keep the GPU waiting: they launch nothing, and hardly any of the program's work runs meanwhile."""
    spent: dict[Function, list[float]] = {}
    work = sum(one.computed for one in timed)
    for one in timed:
        for name in {(frame.file, frame.function) for frame in one.line.path}:
            times = spent.setdefault(name, [0.0, 0.0, 0.0])
            times[0] += one.waited
            times[1] += one.computed
            times[2] += one.waited + one.computed if one.line.launching else 0.0
    return {
        name
        for name, (waited, computed, launching) in spent.items()
        if name[1] != "<module>"
        and computed <= _IDLE * min(waited + computed, work)
        and launching <= _LAUNCHES * (waited + computed)
    }


class _Entry(Value):
    """An entry of the table while waits for launches are moved."""

    value: CodeLine
    launching: float


def _entry(group: Sequence[_TimedLine]) -> _Entry:
    """Return one entry for lines that belong together, at the line with the longest wait."""
    waited, computed = sum(one.waited for one in group), sum(one.computed for one in group)
    chosen = _deepest(group)
    lines: dict[tuple[str, int, str], float] = {}
    for one in chosen:
        frame = one.line.path[one.depth]
        lines[frame[:3]] = lines.get(frame[:3], 0.0) + one.waited + 1e-3 * one.computed
    file, number, function = max(lines, key=lambda line: lines[line])
    here = [one for one in chosen if one.line.path[one.depth][:3] == (file, number, function)]
    usual = max(here, key=lambda one: one.waited + 1e-3 * one.computed)
    place = usual.depth % len(usual.line.path)
    caller = usual.line.path[place - 1] if place else None
    value = CodeLine(
        file,
        number,
        function,
        waited,
        computed,
        usual.line.call if place == len(usual.line.path) - 1 else usual.line.path[place].call,
        usual.line.within,
        "worker" if usual.line.worker else "main",
        "" if caller is None else f"{caller.file}:{caller.line}",
    )
    return _Entry(value, sum(one.waited for one in group if one.line.launching))


def _deepest(group: Sequence[_TimedLine]) -> Sequence[_TimedLine]:
    """Go from the outermost function of a group to the one that has most of its waits; return the lines in it."""
    while True:
        if any(one.depth < 0 for one in group):
            return group
        total = sum(one.waited for one in group)
        inner: dict[Function, list[_TimedLine]] = {}
        for one in group:
            if one.depth + 1 < len(one.line.path):
                inner.setdefault(pure_name(one, one.depth + 1), []).append(one)
        most = max(inner.values(), key=lambda ones: sum(one.waited for one in ones), default=[])
        if not most or sum(one.waited for one in most) < _MOSTLY * total:
            return group
        for one in most:
            one.depth += 1
        group = most


def _blame_waits_for_gpu(lines: Sequence[_Entry]) -> None:
    """Move waits for launches to the calls that had waited for the GPU, as far as these explain them."""
    stood = [line.value.computed if waits_for_gpu(line.value.call) else 0.0 for line in lines]
    launches = [0.0 if time else line.launching for line, time in zip(lines, stood, strict=True)]
    moved = min(sum(stood), sum(launches))
    if moved <= 0:
        return
    for line, time, launching in zip(lines, stood, launches, strict=True):
        change = moved * (time / sum(stood) - launching / sum(launches))
        line.value = line.value._replace(waited=max(0.0, line.value.waited + change))


DEEPEST = 60  # frames
_MOST = 600  # frames of one that is kept or sent
_SMALLEST = 0.001  # of the whole below which a frame is left out


class FlameNode(Value):
    """A frame with the seconds lost in it and in what it called; `own` is code of the user, not of a library."""

    name: str
    own: bool = False
    seconds: float = 0.0
    inner: dict[str, FlameNode] = fresh(factory=dict)

    def trunk(self) -> FlameNode:
        """Return the innermost frame that all stacks share: what starts every program tells nothing."""
        node = self
        while (
            len(node.inner) == 1
            and (only := next(iter(node.inner.values()))).seconds >= 0.999 * self.seconds
            and only.inner
        ):
            node = only
        return node

    def largest(self) -> list[FlameNode]:
        """Return what it called, the longest first."""
        return sorted(self.inner.values(), key=lambda one: -one.seconds)

    def to_plain(self) -> dict[str, Any]:
        """Return the tree as plain data, of bounded size: `name`, `own`, `seconds`, and what it called under `inner`."""
        least = max(
            _SMALLEST * self.seconds, *sorted((one.seconds for one in self._all()), reverse=True)[_MOST:][:1], 1e-9
        )
        return self._plain(least)

    def _all(self) -> Iterator[FlameNode]:
        yield self
        for one in self.inner.values():
            yield from one._all()

    def _plain(self, least: float) -> dict[str, Any]:
        inner = [one._plain(least) for one in self.largest() if one.seconds >= least]
        plain = {"name": self.name, "own": self.own, "seconds": round(self.seconds, 3)}
        return plain | ({"inner": inner} if inner else {})


def flame_of(stacks: Sequence[TimedStack]) -> FlameNode:
    """Return the tree of stacks without the frames that all of them share; its `seconds` are 0 where the GPU never waited."""
    root = FlameNode("all")
    for stack, waited, _ in stacks:
        if waited <= 0:
            continue
        node = root
        node.seconds += waited
        for frame in stack[:DEEPEST]:
            name = frame_name(frame)
            node = node.inner.setdefault(name, FlameNode(name, library_of(frame.file) is None))
            node.seconds += waited
    return root.trunk()


def frame_name(frame: Frame) -> str:
    """Return a frame as viewers name it: the file from where libraries are, the line, and the function."""
    library = library_of(frame.file)
    file = frame.file.replace("\\", "/").rpartition("/")[2] if library is None else library.path
    return f"{file}:{frame.line} {frame.function}"
