"""A flame graph as a value: stacks as a tree, each frame with the seconds of GPU time that were lost in it and in what it called."""

from __future__ import annotations

from .own_lines import library_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from ..model.stacks import Frame, TimedStack

DEEPEST = 60  # frames
_MOST = 600  # frames of one that is kept or sent
_SMALLEST = 0.001  # of the whole below which a frame is left out


class FlameNode:
    """A frame with the seconds lost in it and in what it called; `own` is code of the user, not of a library."""

    __slots__ = ("inner", "name", "own", "seconds")

    def __init__(self, name: str, own: bool = False) -> None:
        self.name = name
        self.own = own
        self.seconds = 0.0
        self.inner: dict[str, FlameNode] = {}

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
