"""The process list: one row per process and GPU, filtered, sorted and grouped."""

from __future__ import annotations

from ...model.catalog import PROCESS_METRICS, Process
from ...model.metric import Text
from ...model.process_filter import ProcessFilter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...model.catalog import Gpu
    from ...model.metric import Value
    from ...model.snapshot import Snapshot
    from ...sources.base import Relative
    from .state import State


_GROUPS = ("user", "container", "job")
_TEXTS = frozenset(key for key, metric in PROCESS_METRICS.items() if isinstance(metric, Text))
_PER_GPU = ("memory_used", "sm_utilization")  # different on each GPU
_PER_PROCESS = ("cpu_percent", "host_memory")  # the same on each GPU, so counted once
_SUMS = frozenset((*_PER_GPU, *_PER_PROCESS))


class ProcessRow:
    """One process on one GPU, or the head of a group, whose `process` has the totals and whose `pid` is None.

    `gpu` is its label as 0 or 1:2, `place` the same in numbers with -1 for no instance, `branch` the lines of the tree before it.
    A head has its name in `head` and the number of different processes in `count`. A `launcher` uses no GPU itself and
    has no `pid` either, so it cannot be selected, tagged or signaled.
    """

    __slots__ = ("branch", "count", "gpu", "head", "launcher", "pid", "place", "process")

    def __init__(self, process: Process, gpu: str, place: tuple[int, int], pid: int | None) -> None:
        self.process = process
        self.gpu = gpu
        self.place = place
        self.pid = pid
        self.branch = ""
        self.launcher = False
        self.head = ""
        self.count = 1

    def __repr__(self) -> str:
        return f"ProcessRow({self.head or self.pid} on {self.gpu})"


class _Last:
    """A cache of the last rows: painter, keys and mouse need the same ones within a frame."""

    snapshot: Snapshot | None = None
    asked: tuple[str, bool, tuple[tuple[str, bool], ...], str, bool, str] = ("", False, (), "", False, "")
    relatives: object = None
    rows: list[ProcessRow] = []


def rows(snapshot: Snapshot | None, state: State) -> list[ProcessRow]:
    """Return the rows to show, in order; do not modify the list, which is shared.

    Missing values come last in either direction; equal ones are ordered by `state.ties`, then by PID. A filter applies while it is
    being typed.
    """
    if snapshot is None:
        return []
    asked = (state.sort, state.falling, state.ties, filter_text(state), state.tree, state.group)
    if _Last.snapshot is not snapshot or _Last.asked != asked or _Last.relatives is not state.relatives:
        _Last.rows = _arranged(_matching(all_rows(snapshot), filter_text(state)), state)
        _Last.snapshot, _Last.asked, _Last.relatives = snapshot, asked, state.relatives
    return _Last.rows


def _matching(found: list[ProcessRow], text: str) -> list[ProcessRow]:
    wanted = ProcessFilter(text)
    return [row for row in found if wanted.fits(row.process, row.place)] if wanted else found


def filter_text(state: State) -> str:
    """Return the active filter: the one being typed, else the one that was set."""
    return state.editing if state.dialog == "filter" else state.filter


def pids(shown: Iterable[ProcessRow]) -> list[int]:
    """Return each process once, at its first position: the order in which the cursor moves."""
    return list(dict.fromkeys([row.pid for row in shown if row.pid is not None]))


def all_rows(snapshot: Snapshot) -> list[ProcessRow]:
    """Return every process on every GPU and instance, as the driver lists them."""
    found: list[ProcessRow] = []
    for at, gpu in enumerate(snapshot.gpus):
        index = _index(gpu, at)
        found += _on(gpu, str(index), (index, -1))
        for inner, instance in enumerate(gpu.instances):
            number = _index(instance, inner)
            found += _on(instance, f"{index}:{number}", (index, number))
    return found


def _on(gpu: Gpu, label: str, place: tuple[int, int]) -> list[ProcessRow]:
    return [ProcessRow(process, label, place, int(process.pid or 0)) for process in gpu.processes]


def _index(gpu: Gpu, at: int) -> int:
    return at if gpu.index is None else int(gpu.index)


def _arranged(found: list[ProcessRow], state: State) -> list[ProcessRow]:
    ordered = sorted(found, key=lambda row: (row.pid or 0, row.place))
    for key, falling in reversed(((state.sort, state.falling), *state.ties)):
        ordered = _sorted(ordered, key, falling)
    if state.group in _GROUPS:
        return _grouped(ordered, state)
    if not state.tree:
        return ordered

    return family_rows(ordered, state.relatives)


def _sorted(found: list[ProcessRow], key: str, falling: bool) -> list[ProcessRow]:
    """Return the rows by one column, those that are equal in the order they had."""
    if key == "gpu":
        return sorted(found, key=lambda row: row.place, reverse=falling)
    values = [(value, row) for row in found if (value := row.process.get(key)) is not None]
    missing = [row for row in found if row.process.get(key) is None] if len(values) < len(found) else []
    if key in _TEXTS:
        values = [(str(value).lower(), row) for value, row in values]
    values.sort(key=_first, reverse=falling)
    return [row for _, row in values] + missing


def _first(pair: tuple[Value, ProcessRow]) -> float | str:
    return pair[0]  # type: ignore[return-value]  # values of one metric are all text or all numbers


def _grouped(ordered: list[ProcessRow], state: State) -> list[ProcessRow]:
    """Group rows by user, container or job; groups are ordered by their totals or by their first row."""
    members: dict[str, list[ProcessRow]] = {}
    for row in ordered:
        members.setdefault(str(row.process.get(state.group) or ""), []).append(row)
    heads = {_head(state.group, name, below): below for name, below in members.items()}
    shown: list[ProcessRow] = []
    for head in _sorted(list(heads), state.sort, state.falling) if state.sort in _SUMS else heads:
        below = heads[head]
        for row in below:
            row.branch = "└ " if row is below[-1] else "├ "
        shown += [head, *below]
    return shown


def _head(group: str, name: str, members: list[ProcessRow]) -> ProcessRow:
    once = {row.pid: row for row in members}
    values: dict[str, Value] = {}
    for keys, below in ((_PER_GPU, members), (_PER_PROCESS, list(once.values()))):
        for key in keys:
            numbers = [value for row in below if isinstance(value := row.process.get(key), (int, float))]
            if numbers:
                values[key] = sum(numbers)
    if name:
        values[group] = name
    head = ProcessRow(Process(values), _labels(members), (-1, -1), None)
    head.head = name or f"no {group}"
    head.count = len(once)
    return head


def _labels(members: list[ProcessRow]) -> str:
    """Return the GPUs of a group in short form: 0-3,6."""
    labels = {row.place: row.gpu for row in members}
    spans: list[list[tuple[int, int]]] = []
    for place in sorted(labels):
        if spans and place[1] == -1 and spans[-1][-1] == (place[0] - 1, -1):
            spans[-1].append(place)
        else:
            spans.append([place])
    return ",".join(
        labels[span[0]] + (f"{'-' if len(span) > 2 else ','}{labels[span[-1]]}" if len(span) > 1 else "")
        for span in spans
    )


_DEEPEST = 64
_ROOT = -1  # stands for no parent
_FORK, _LAST, _LINE, _SPACE = "├ ", "└ ", "│ ", "  "


def family_rows(ordered: Sequence[ProcessRow], relatives: Mapping[int, Relative]) -> list[ProcessRow]:
    """Return the rows as a tree, siblings in the given order, the rows of one process together.

    A launcher that uses no GPU gets a row of its own if it started several branches with GPU processes; it has no `pid`,
    so that it cannot be selected. Other ancestors are left out.
    """
    rows: dict[int, list[ProcessRow]] = {}
    for row in ordered:
        rows.setdefault(row.pid or 0, []).append(row)
    chains = {pid: _chain(pid, rows, relatives) for pid in rows}
    shown = {*rows, *_launchers(chains, set(rows))}
    below: dict[int, list[int]] = {}
    for pid, chain in chains.items():  # in order, so a launcher stands where its first process would
        for child in (pid, *chain):
            parent = next((one for one in _above(child, chain) if one in shown), _ROOT)
            if child in shown and child not in below.setdefault(parent, []):
                below[parent].append(child)
    for pid in shown - set(rows):
        rows[pid] = [_launcher(pid, relatives)]
    return _drawn(rows, below)


def _chain(pid: int, rows: Mapping[int, list[ProcessRow]], relatives: Mapping[int, Relative]) -> list[int]:
    """Return the ancestors of a process, nearest first, as far as they are known; without init."""
    chain: list[int] = []
    while len(chain) < _DEEPEST:
        if pid in relatives:
            parent = relatives[pid].parent
        elif pid in rows:
            parent = int(rows[pid][0].process.parent or 0)  # recorded with the sample
        else:
            break
        if parent <= 1 or parent in chain or parent == pid:
            break
        chain.append(parent)
        pid = parent
    return chain


def _launchers(chains: Mapping[int, list[int]], listed: set[int]) -> set[int]:
    """Return the ancestors below which the paths to processes part."""
    branches: dict[int, set[int]] = {}
    for pid, chain in chains.items():
        for child, parent in zip((pid, *chain), chain, strict=False):
            branches.setdefault(parent, set()).add(child)
    return {pid for pid, children in branches.items() if len(children) > 1 and pid not in listed}


def _above(pid: int, chain: list[int]) -> list[int]:
    return chain[chain.index(pid) + 1 :] if pid in chain else chain


def _launcher(pid: int, relatives: Mapping[int, Relative]) -> ProcessRow:

    known = relatives.get(pid)
    values: dict[str, Value] = {"pid": pid, "command": "not recorded"}
    if known is not None:
        values |= {"name": known.name, "user": known.user, "command": known.command or known.name}
    row = ProcessRow(Process(values), "", (-1, -1), None)
    row.launcher = True
    return row


def _drawn(rows: Mapping[int, list[ProcessRow]], below: Mapping[int, list[int]]) -> list[ProcessRow]:
    """Return the rows from the roots down, each with its `branch`: the lines before its command."""
    found: list[ProcessRow] = []
    # all as roots, the real ones last, where they are taken first: a loop of reused PIDs must not hide a process
    roots = below.get(_ROOT, [])
    waiting = [(pid, "", "") for pid in (*rows, *reversed(roots))]
    drawn: set[int] = set()
    while waiting:
        pid, first, rest = waiting.pop()
        if pid in drawn:
            continue
        drawn.add(pid)
        children = [child for child in below.get(pid, []) if child not in drawn]
        for at, row in enumerate(rows[pid]):
            # a process on a second GPU is the same process: its other rows continue the lines
            row.branch = first if at == 0 else rest + (_LINE if children else "")
        found += rows[pid]
        for at, child in reversed(list(enumerate(children, 1))):
            end = at == len(children)
            waiting.append((child, rest + (_LAST if end else _FORK), rest + (_SPACE if end else _LINE)))
    return found
