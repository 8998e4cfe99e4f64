"""Lines of code and stacks as text: where a run lost GPU time, what to change there, and what threads execute."""

from __future__ import annotations

import re

from ..analysis.own_lines import library_of
from .figures import ADVICE
from .line import Line
from .text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..model.stacks import CodeLine, Frame, Stack

SHOWN = 3  # lines under a verdict
_TOLD = 0.03  # of the time below which a line is not worth naming
_SEVERAL = 1.2  # of the time of a run from which seconds are those of several GPUs
_SHORTEST = 0.5  # seconds of waiting below which nothing is said
HEADER = ("line", "function", "in", "waited", "computed")
_CELL = re.compile(r"/ipykernel_\d+/\d+\.py$|^<ipython-input-|^<python-input-|^<stdin>$")
_MARKUP = re.compile(r"[\\`*|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")  # what Markdown would not show as it is
_LOADING = re.compile(r"^DataLoader\.__(?:next|iter)__$")
# Which advice fits a line: what the call or the text of the call must look like, the first match wins.
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("save_in_loop", re.compile(r"(?:^|\.)(?:save|save_pretrained|save_checkpoint|save_state|write_bytes)$")),
    ("empty_cache", re.compile(r"(?:^|\.)(?:empty_cache|ipc_collect)$|^gc\.collect$")),
    ("compile_in_loop", re.compile(r"^torch\.(?:compile|jit\.\w+)$")),
    ("module_in_loop", re.compile(r"^(?:torch\.)?nn\.[A-Z]\w*$|^Module\.(?:_apply|to|cuda|load_state_dict)$")),
    ("module_in_loop", re.compile(r"^(?:Module|Optimizer)\.__init__$")),
    ("sync", re.compile(r"(?:^|\.)(?:item|tolist|numpy|synchronize|__bool__|__float__|__format__|__repr__)$")),
    ("download", re.compile(r"(?:^|\.)cpu$")),
    ("pageable", re.compile(r"(?:^|\.)(?:to|cuda)$")),
    ("print_in_loop", re.compile(r"^print$|^log(?:ger|ging)?\.\w+$|(?:^|\.)(?:add_images?|add_figure|savefig|log_images?)$|^wandb\.")),
    ("lock", re.compile(r"\w\.(?:acquire|wait|join|get|result|recv|select|poll|sleep|barrier)$|^sleep$")),
    ("decode", re.compile(r"^(?:PIL|cv2|imageio|torchvision\.io|soundfile|torchaudio|librosa)\b|(?:^|\.)(?:imread|decode_\w+)$")),
    ("read", re.compile(r"^(?:open|pd\.read_\w+|pandas\.\w+|np\.load|numpy\.load|requests\.\w+|json\.load|torch\.load)$")),
    ("import", re.compile(r"^import$")),
    ("launches", re.compile(r"^(?:model|net|self\.\w+|Module\.__call__|Tensor\.backward|Optimizer\.\w+|\w+\.backward|\w+\.step)$")),
)  # fmt: skip
_ADVICE = {
    "no_workers": "The training process prepares the data itself: DataLoader(num_workers=N), N up to the number of free cores.",
    "worker": "The loader workers are too slow: make this line cheaper, or add workers (num_workers) while cores are free.",
    "workers": "The loader workers do not keep up: add workers (num_workers) while cores are free, or make them do less.",
    "save_in_loop": "Save less often, or in the background: torch.distributed.checkpoint.async_save, or a thread that saves a CPU copy.",
    "empty_cache": "Remove it from the loop: it waits for the GPU and makes the allocator ask the driver for all memory again.",
    "compile_in_loop": "Compile once before the loop, and keep shapes the same: torch.compile(dynamic=True) or padding to a few sizes.",
    "module_in_loop": "Create modules and move them to the GPU once, before the loop.",
    "sync": "It waits until the GPU has finished: add up on the GPU and fetch the value every N steps.",
    "download": ADVICE["async_copy"],
    "pageable": ADVICE["pin_memory"],
    "print_in_loop": ADVICE["log_async"],
    "lock": "It waits for something else: prepare that ahead in a thread or process, or wait for it after the next step is launched.",
    "decode": "Decode in loader workers (num_workers), ahead of training, or on the GPU (DALI, nvJPEG).",
    "read": "Read ahead in loader workers (num_workers), or once before the loop.",
    "import": "Import at the top of the program, not in the loop.",
    "launches": ADVICE["cuda_graphs"],
    "python": "This is Python at work while the GPU waits: vectorize it on tensors, do it every N steps, or in another process.",
}  # fmt: skip


def place_text(line: CodeLine) -> str:
    """Return where a line is: "train.py:84", or in a notebook "In [3], line 5", "cell:5" where the number of the cell is unknown."""
    if line.file.startswith("In ["):
        return f"{clean(line.file)}, line {line.line}"
    name = "cell" if _CELL.search(line.file) else clean(line.file.replace("\\", "/").rpartition("/")[2])
    return f"{name}:{line.line}"


def line_text(line: CodeLine) -> str:
    """Return a line as sentences name it: "train.py:84 compute_f1(…)"; "train.py:12" outside of functions."""
    named = line.function and not line.function.startswith("<")
    return f"{place_text(line)} {clean(line.function)}(…)" if named else place_text(line)


def call_text(line: CodeLine) -> str:
    """Return what a line is in: "loss.item()", "DataLoader.__next__", "torch.save"; empty for Python code of its own."""
    if line.role == "worker":
        return "a loader worker" + (f", {clean(line.call)}" if line.call else "")
    if _LOADING.match(line.within):
        return clean(line.within)  # whatever it does there, the training process does it
    call = clean(line.call)
    return f"{call}()" if call and not call.rpartition(".")[2].startswith("_") else call


def code_sentence(lines: Sequence[CodeLine], seconds: float | None = None) -> str:
    """Return where a run lost GPU time: "The GPU waited 71 of 300 s; 58 s of it in train.py:84 compute_f1(…)."; empty if it did not.

    `seconds` is how long the run was, which tells whether these are seconds of several GPUs.
    """
    waited = sum(line.waited for line in lines)
    total = waited + sum(line.computed for line in lines)
    if not lines or waited < max(_SHORTEST, _TOLD * total):
        return ""
    first = lines[0]
    several = seconds is not None and total > _SEVERAL * seconds
    who, unit = ("The GPUs", "GPU seconds") if several else ("The GPU", "s")
    called = f", in {call_text(first)}" if call_text(first) else ""
    return f"{who} waited {_seconds(waited)} of {_seconds(total)} {unit}; {_seconds(first.waited)} s of it in {line_text(first)}{called}."


def told_lines(lines: Sequence[CodeLine], most: int = SHOWN) -> list[CodeLine]:
    """Return at most `most` lines, each with a notable part of the time; none where the GPU hardly waited."""
    total = sum(line.waited + line.computed for line in lines)
    return [line for line in lines[:most] if line.waited >= max(_SHORTEST, _TOLD * total)]


def code_rows(lines: Sequence[CodeLine], most: int = 10) -> list[tuple[str, str, str, str, str]]:
    """Return the rows of a table under HEADER, the longest wait first, without lines that hardly count."""
    total = sum(line.waited + line.computed for line in lines)
    counts = [line for line in lines if line.waited + line.computed >= 0.01 * total][:most]
    return [
        (place_text(line), clean(line.function), call_text(line), f"{_seconds(line.waited)} s", f"{_seconds(line.computed)} s")
        for line in counts
    ]  # fmt: skip


def advised(lines: Sequence[CodeLine], most: int = SHOWN) -> list[str]:
    """Return one line of text for each line of code worth telling: seconds, place, call, and what to change."""
    return [
        f"{_seconds(line.waited)} s in {line_text(line)}{f', in {call_text(line)}' if call_text(line) else ''}: {code_advice(line)}"
        for line in told_lines(lines, most)
    ]


def code_markdown(lines: Sequence[CodeLine], seconds: float | None = None) -> str:
    """Return sentence, table and advice as Markdown, for experiment trackers; empty where the GPU hardly waited."""
    sentence = code_sentence(lines, seconds)
    if not sentence:
        return ""
    rows = [HEADER, ["---"] * 3 + ["---:"] * 2, *([_escaped(cell) for cell in row] for row in code_rows(lines))]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return "\n\n".join([_escaped(sentence), table, "\n".join(f"- {_escaped(text)}" for text in advised(lines))]) + "\n"


def code_advice(line: CodeLine) -> str:
    """Return what to change at a line, one sentence."""
    return _ADVICE[kind_of(line)]


def kind_of(line: CodeLine) -> str:
    """Return what kind of line it is, as the advice is kept."""
    if line.role == "worker":
        return "worker"
    if _LOADING.match(line.within):
        return "no_workers"
    if _LOADING.match(line.call):
        return "workers"
    return next((kind for kind, pattern in _KINDS if pattern.search(line.call)), "python")


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", text.replace("<", "&lt;"))


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"


def stack_lines(stacks: Sequence[Stack], most: int | None = None) -> list[Line]:
    """Return the threads of one process; threads with the same stack are told once. `most` is the number of frames to show of each."""
    lines = []
    for frames, names in _alike(stacks):
        title = names[0] if len(names) == 1 else f"{len(names)} threads: {', '.join(sorted(set(names)))}"
        lines.append(Line().add(clean(title), "title"))
        lines += [Line().add("  ").extend(frame_line(frame)) for frame in [*reversed(frames)][:most]]
        if not frames:
            lines.append(Line().add("  no Python code", "label"))
        elif most is not None and len(frames) > most:
            lines.append(Line().add(f"  and {len(frames) - most} more", "label"))
    return lines


def frame_line(frame: Frame) -> Line:
    """Return one frame: the function, and where it is; the user's own code stands out."""
    own = bool(frame.file) and library_of(frame.file) is None
    place = f" {frame_place(frame)}" if frame.file else ""
    return Line().add(clean(frame.function or "?"), "accent" if own else "").add(place, "" if own else "label")


def frame_place(frame: Frame) -> str:
    """Return the file and line of a frame; a file of a library begins with the name of its package."""
    library = library_of(frame.file)
    file = clean(frame.file if library is None else library.path)
    return f"{file}:{frame.line}" if frame.line else file


def plain_stacks(stacks: Iterable[Stack]) -> list[dict[str, Any]]:
    """Return threads as JSON has them, the innermost frame first; texts are as the process gave them."""
    return [
        {
            "thread": stack.thread or None,
            "main": stack.role == "main",
            "frames": [
                {"file": frame.file, "line": frame.line or None, "function": frame.function}
                for frame in reversed(stack.frames)
            ],
        }
        for stack in stacks
    ]


def _alike(stacks: Iterable[Stack]) -> list[tuple[tuple[Frame, ...], list[str]]]:
    groups: dict[tuple[Frame, ...], list[str]] = {}
    for stack in stacks:
        name = stack.thread or ("MainThread" if stack.role == "main" else "a thread without a name")
        groups.setdefault(stack.frames, []).append(name)
    return [*groups.items()]
