"""The process tree: each process below the one that started it, with the lines that connect them."""

from __future__ import annotations

from ...model.catalog import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...model.metric import Value
    from ...sources.base import Relative
    from .processes import ProcessRow

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
    from .processes import ProcessRow

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
