"""Which frame of a stack is the user's own line of code, which library call it was in, and what a line of source calls."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.stacks import Frame

_INSTALLED = re.compile(r"/(?:site|dist)-packages/(.+)$")
_STANDARD = re.compile(r"/lib(?:64)?/python3[.\d]*t?/(?!(?:site|dist)-packages/)(.+)$|/python3\d*\.zip/(.+)$")
_GENERATED = re.compile(r"^<(?:frozen |__array_function__|attrs generated|eval_with_key|unknown)")
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
    if _GENERATED.match(path):
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
_WORDS = frozenset(
    [
        "if",
        "elif",
        "while",
        "for",
        "in",
        "with",
        "return",
        "yield",
        "await",
        "and",
        "or",
        "not",
        "def",
        "class",
        "assert",
    ]
)

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
            return name[1].strip(".") if name and name[1] not in _WORDS else ""
    return ""


def call_in(line: str) -> str:
    """Return the call in a line of source; of several the one in which a thread waits, and none if there is no such call."""
    calls = dict.fromkeys(name for name in _CALL.findall(line.split("#", 1)[0]) if name not in _WORDS)
    waits = [name for name in calls if name.rpartition(".")[2] in _WAITS]
    return next(iter(calls)) if len(calls) == 1 else waits[0] if waits else ""
