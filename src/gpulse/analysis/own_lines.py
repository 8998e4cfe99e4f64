"""The user's own lines in stacks: which frame and which library call, with the seconds a GPU waited there, and as a flame graph."""

from __future__ import annotations

import re
from functools import lru_cache
from keyword import iskeyword
from typing import NamedTuple

from ..model.stacks import CodeLine
from ..value import Value, fresh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, Literal, TypeAlias

    from ..model.stacks import Frame, TimedStack

    Function: TypeAlias = tuple[str, str]

_INSTALLED = re.compile(r"/(?:site|dist)-packages/(.+)$")
_STANDARD = re.compile(r"/lib(?:64)?/python3[.\d]*t?/(?!(?:site|dist)-packages/)(.+)$|/python3\d*\.zip/(.+)$")
_GENERATED = re.compile(r"^<(?:frozen |__array_function__|attrs generated|eval_with_key|unknown)")
_NATIVE = re.compile(r"\.so\b")
_OURS = re.compile(r"/gpulse/(?:monitor|callbacks|surfaces|supervision|api|cli|sampling|queue_worker)\b")
# packages whose frames show that a thread gives work to a GPU
_GPU_PACKAGES = frozenset(
    {"torch", "jax", "tensorflow", "keras", "cupy", "numba", "triton", "tinygrad", "paddle", "vllm", "flax"}
)
_NOT_GPU = ("torch/utils/data/", "torch/serialization.py", "torch/utils/tensorboard/", "torch/multiprocessing/")
LOADS = ("DataLoader.__next__", "DataLoader.__iter__")  # calls that may wait for workers
_MODULE = "torch/nn/modules/module.py"
_WORKERS = ("torch/utils/data/_utils/worker.py", "multiprocessing/process.py", "concurrent/futures/process.py")
# frames of a program that is not at work: an interactive session between two cells
_INTERACTIVE = ("ipykernel/", "IPython/", "code.py", "_pyrepl/", "prompt_toolkit/")
# calls that wait for the GPU to finish what it was given, by the last word of the call
_WAITS_FOR_GPU = frozenset(
    {"item", "cpu", "tolist", "numpy", "synchronize", "to", "cuda", "__bool__", "__float__", "__format__", "__repr__"}
)
# What a library call is called, by the end of its file and by function where the function alone would not tell.
_NAMES: tuple[tuple[str, str, str], ...] = (
    ("torch/utils/data/dataloader.py", "__next__", "DataLoader.__next__"),
    ("torch/utils/data/dataloader.py", "__iter__", "DataLoader.__iter__"),
    ("torch/serialization.py", "save", "torch.save"),
    ("torch/serialization.py", "load", "torch.load"),
    ("torch/_tensor.py", "backward", "Tensor.backward"),
    ("torch/_tensor.py", "__repr__", "Tensor.__repr__"),
    ("torch/_tensor.py", "__format__", "Tensor.__format__"),
    ("torch/_tensor.py", "", "Tensor.{}"),
    ("torch/nn/modules/module.py", "_wrapped_call_impl", "Module.__call__"),
    ("torch/nn/modules/module.py", "_call_impl", "Module.__call__"),
    ("torch/nn/modules/module.py", "", "Module.{}"),
    ("torch/optim/lr_scheduler.py", "step", "LRScheduler.step"),
    ("torch/optim/optimizer.py", "wrapper", "Optimizer.step"),
    ("torch/optim/optimizer.py", "", "Optimizer.{}"),
    ("torch/cuda/memory.py", "", "torch.cuda.{}"),
    ("torch/cuda/__init__.py", "", "torch.cuda.{}"),
    ("torch/nn/functional.py", "", "torch.nn.functional.{}"),
    ("torch/distributed/distributed_c10d.py", "", "torch.distributed.{}"),
    ("torch/_dynamo/eval_frame.py", "", "torch.compile"),
    ("torch/_inductor/", "", "torch.compile"),
    ("importlib/__init__.py", "import_module", "import"),
)


class OwnLine(NamedTuple):
    """The user's line of a stack: its frame, the library call it was in, and the library call that had called it.

    `path` are the user's own frames up to it, outermost first. `launching`: the call gives work to the GPU. `worker`: a process
    that prepares data executed it.
    """

    frame: Frame
    call: str
    within: str
    path: tuple[Frame, ...]
    launching: bool
    worker: bool


def own_line(frames: Sequence[Frame]) -> OwnLine | None:
    """Return the innermost line of a stack that is the user's own; None for an interactive session that waits for input.

    Where all frames are of libraries, as in a program that is installed, it is the outermost one of a package.
    """
    return _own_line(tuple(frames))


@lru_cache(maxsize=8192)
def _own_line(frames: tuple[Frame, ...]) -> OwnLine | None:
    kinds = [_kind(frame) for frame in frames]
    places = [at for at, kind in enumerate(kinds) if kind is None]
    if not places:
        if any(kind is not None and kind.path.startswith(_INTERACTIVE) for kind in kinds):
            return None
        packages = [at for at, kind in enumerate(kinds) if kind is not None and kind.package]
        places = packages[:1] or [*range(len(frames))][:1]
    while len(places) > 1 and _is_nameless(frames[places[-1]]) and frames[places[-2]].file == frames[places[-1]].file:
        places.pop()  # an expression of the function around it
    if not places:
        return None
    at, before = places[-1], places[-2] if len(places) > 1 else -1
    inner = [(frame, kind) for frame, kind in zip(frames[at + 1 :], kinds[at + 1 :], strict=True) if kind is not None]
    outer = [(frame, kind) for frame, kind in zip(frames[:at], kinds[:at], strict=True) if kind is not None]
    between = [(frames[place], kind) for place in range(before + 1, at) if (kind := kinds[place]) is not None]
    return OwnLine(
        frame=frames[at],
        call=_call(frames[at], inner),
        within=next((name for frame, kind in between if (name := _name(kind.path, frame.function))), ""),
        path=tuple(frames[place] for place in places),
        launching=any(kind.path == _MODULE for _, kind in outer) or any(kind.feeds for _, kind in inner),
        worker=any(kind.path in _WORKERS for _, kind in outer),
    )


def worker_frames(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return what a worker itself executes: the frames below its loop, without those that it was forked with."""
    kinds = [_kind(frame) for frame in frames]
    starts = [at for at, kind in enumerate(kinds) if kind is not None and kind.path in _WORKERS]
    return tuple(frames[starts[-1] :]) if starts else tuple(frames)


class Library(NamedTuple):
    """A file of a library: its path from where libraries are, its package (empty for the standard library), and whether it feeds a GPU."""

    path: str
    package: str
    feeds: bool


@lru_cache(maxsize=4096)
def library_of(file: str) -> Library | None:
    """Return the library that a file belongs to; None for the user's own code."""
    path = file.replace("\\", "/")
    if found := _INSTALLED.search(path):
        inside = found[1]
        package = inside.split("/", 1)[0].removesuffix(".py")
        return Library(inside, package, package in _GPU_PACKAGES and not inside.startswith(_NOT_GPU))
    if found := _STANDARD.search(path):
        return Library(found[1] or found[2], "", False)
    if _GENERATED.match(path) or _NATIVE.search(path):
        return Library(path, "", False)
    if _OURS.search(path):
        return Library("gpulse/" + path.rsplit("/gpulse/", 1)[1], "gpulse", False)
    return None


def feeds_gpu(frames: Sequence[Frame]) -> bool:
    """Tell whether a thread is seen to give work to a GPU: one of its frames is in a library that does."""
    return any(kind is not None and kind.feeds for kind in map(library_of, (frame.file for frame in frames)))


def waits_for_gpu(call: str) -> bool:
    """Tell whether a call waits until the GPU has finished what it was given."""
    return call.rpartition(".")[2] in _WAITS_FOR_GPU


def _kind(frame: Frame) -> Library | None:
    if frame.file == "<string>" and frame.function.startswith("__"):
        return Library("<string>", "", False)  # a method that a dataclass generated, not the text of python -c
    return library_of(frame.file)


def _is_nameless(frame: Frame) -> bool:
    """Tell whether a frame is a comprehension or a lambda, in the words of the function around it."""
    return frame.function.startswith("<") and frame.function != "<module>"


def _call(frame: Frame, inner: Sequence[tuple[Frame, Library]]) -> str:
    """Return what a line was in: a library call with a name of its own, else the call as it is written, else the function."""
    if not inner:
        return frame.call
    called, library = inner[0]
    if library.path.startswith("<frozen importlib"):
        return "import"
    named = next((name for one, kind in inner if (name := _name(kind.path, one.function))), "")
    if named and not (frame.call and named == "Module.__call__"):
        return named
    if library.path.startswith("<"):
        return frame.call
    package = library.package or library.path.split("/", 1)[0].removesuffix(".py")
    return frame.call or (package if called.function == "<module>" else f"{package}.{called.function}")


@lru_cache(maxsize=4096)
def _name(path: str, function: str) -> str:
    for end, expected, name in _NAMES:
        if path.startswith(end) and expected in ("", function):
            return name.format(function)
    return ""


_CALL = re.compile(r"([A-Za-z_][\w.]*)\s*\(")
_NAME = re.compile(r"([A-Za-z_][\w.]*)\s*$")
# The last words of calls in which a thread waits, and so is seen.
_WAITS = frozenset(
    {"item", "cpu", "tolist", "numpy", "synchronize", "empty_cache", "to", "cuda", "save", "load", "print"}
    | {"sleep", "acquire", "wait", "join", "get", "result", "read", "write", "recv"}
)


def called(expression: str) -> str:
    """Return what an expression calls last: "loss.item" for "loss.item()", "item" for "f(x).item()"; empty if it is no call."""
    text = expression.strip().removeprefix("await ").strip()
    if not text.endswith(")"):
        return ""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] in ")]}") - (text[at] in "([{")
        if depth == 0:
            name = _NAME.search(text[:at])
            return name[1].strip(".") if name and not iskeyword(name[1]) else ""
    return ""


def call_in(line: str) -> str:
    """Return the call in a line of source; of several the one in which a thread waits, and none if there is no such call."""
    calls = dict.fromkeys(name for name in _CALL.findall(line.split("#", 1)[0]) if not iskeyword(name))
    waits = [name for name in calls if name.rpartition(".")[2] in _WAITS]
    return next(iter(calls)) if len(calls) == 1 else waits[0] if waits else ""


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
            groups.setdefault(one.function(depth), []).append(one)
    lines = _blame_waits_for_gpu([_entry(group) for group in groups.values()])
    return tuple(sorted(lines, key=lambda line: (-line.waited, -line.computed, line[:2])))


class _TimedLine(Value):
    """A stack with its seconds; `depth` is the place of the outermost function that only keeps the GPU waiting."""

    line: OwnLine
    waited: float
    computed: float
    depth: int = -1

    def function(self, depth: int) -> Function:
        """Return the function at a depth of the user's frames."""
        return self.line.path[depth].file, self.line.path[depth].function


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


def _entry(group: Sequence[_TimedLine]) -> tuple[CodeLine, float]:
    """Return one entry for lines that belong together, at the line with the longest wait, and its waits for launches."""
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
    call = usual.line.call if place == len(usual.line.path) - 1 else usual.line.path[place].call
    role: Literal["worker", "main"] = "worker" if usual.line.worker else "main"
    around = "" if caller is None else f"{caller.file}:{caller.line}"
    line = CodeLine(file, number, function, waited, computed, call, usual.line.within, role, around)
    return line, sum(one.waited for one in group if one.line.launching)


def _deepest(group: Sequence[_TimedLine]) -> Sequence[_TimedLine]:
    """Go from the outermost function of a group to the one that has most of its waits; return the lines in it."""
    while True:
        if any(one.depth < 0 for one in group):
            return group
        total = sum(one.waited for one in group)
        inner: dict[Function, list[_TimedLine]] = {}
        for one in group:
            if one.depth + 1 < len(one.line.path):
                inner.setdefault(one.function(one.depth + 1), []).append(one)
        most = max(inner.values(), key=lambda ones: sum(one.waited for one in ones), default=[])
        if not most or sum(one.waited for one in most) < _MOSTLY * total:
            return group
        for one in most:
            one.depth += 1
        group = most


def _blame_waits_for_gpu(entries: Sequence[tuple[CodeLine, float]]) -> list[CodeLine]:
    """Move waits for launches to the calls that had waited for the GPU, as far as these explain them."""
    lines = [line for line, _ in entries]
    stood = [line.computed if waits_for_gpu(line.call) else 0.0 for line in lines]
    launches = [0.0 if time else launching for (_, launching), time in zip(entries, stood, strict=True)]
    moved = min(sum(stood), sum(launches))
    if moved <= 0:
        return lines
    changes = [moved * (a / sum(stood) - b / sum(launches)) for a, b in zip(stood, launches, strict=True)]
    return [line._replace(waited=max(0.0, line.waited + more)) for line, more in zip(lines, changes, strict=True)]


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
