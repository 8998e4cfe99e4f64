"""The doctor: what was found, what is missing, and the remedy for each; as lines, or as a masked report to hand on."""

from __future__ import annotations

import os
import platform
import re
import sys

from .._version import __version__
from ..analysis.readings import below_maximum, in_use
from ..errors import GpulseError
from ..model.catalog import GPU_METRICS
from ..model.select import EVERYTHING
from ..model.snapshot import Check
from ..present.line import Line, line_of
from ..present.text import clean, wrap
from ..present.theme import Theme
from ..present.words import STATES, label, link_text, ranges
from ..sampling.sampler import Sampler
from ..sources.vendors import VENDORS, vendor_keys
from ..units import count_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ..model.catalog import Gpu
    from ..model.snapshot import Snapshot
    from ..sources.base import Source

_STYLES = {"ok": ("good", "ok"), "note": ("label", "note"), "warn": ("warn", "warn"), "fail": ("critical", "FAIL")}
_VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
    "NVIDIA_VISIBLE_DEVICES", "GPULSE_SOURCE", "NO_COLOR", "TERM", "LANG", "LC_ALL",
)  # fmt: skip
_QUIET = frozenset({"pending", "skipped"})


def diagnose(source: Source) -> list[Check]:
    """Look at everything: the machine, the source before it is opened, and what its GPUs answer."""
    checks = [*_ground(), *source.examine()]
    sampler = Sampler(source, EVERYTHING)
    try:
        sampler.open()
    except GpulseError as error:
        return [*checks, Check("fail", "gpus", error.message, error.remedy)]
    try:
        sampler.settle()
        snapshot = sampler.read()
    finally:
        sampler.close()
    return [*checks, *_answers(snapshot, sampler.dropped), *_surroundings()]


def lines(checks: Sequence[Check], theme: Theme, columns: int) -> list[str]:
    """Return one line a check and one for its remedy."""
    shown: list[str] = []
    for check in checks:
        style, word = _STYLES[check.level]
        line = Line().add(word, style, 6).add(check.about, "title", max(15, len(check.about) + 1))
        shown += _folded(line.add(clean(check.found), "calm"), theme, columns)
        if check.remedy:
            line = Line().add("", cells=21).add(theme.glyph("→ ", "> "), "accent")
            shown += _folded(line.add(clean(check.remedy), "label"), theme, columns)
    return shown


def report(checks: Sequence[Check]) -> str:
    """Return the checks as Markdown, with names, UUIDs, serial numbers and addresses masked."""
    rows = [f"| {check.level} | {check.about} | {_cell(check.found)} | {_cell(check.remedy)} |" for check in checks]
    return "\n".join(["| | | found | remedy |", "| --- | --- | --- | --- |", *rows])


def mask(text: str) -> str:
    """Replace what identifies a machine or a person: UUIDs, serial numbers, the host's and the user's name."""
    text = re.sub(r"(GPU|MIG)-[0-9a-fA-F-]{8,}", r"\1-…", text)
    text = re.sub(r"\b\d{10,}\b", "…", text)
    for name in {os.uname().nodename, os.environ.get("USER", ""), os.path.expanduser("~").rsplit("/", 1)[-1]}:
        if len(name) > 2:
            text = re.sub(rf"\b{re.escape(name)}\b", "…", text)
    return text


def _cell(text: str) -> str:
    return mask(clean(text)).replace("|", "\\|")


def _folded(line: Line, theme: Theme, columns: int) -> Iterator[str]:
    """Break the last piece of a line over as many lines as it needs."""
    *head, (text, style) = line.pieces
    start = line_of(head)
    for row in wrap(text, max(20, columns - start.width)):
        yield start.add(row, style).render(theme, columns)
        start = Line().add(" " * min(23, columns // 3))


def _ground() -> list[Check]:
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    return [Check("ok", "gpulse", f"version {__version__}, Python {platform.python_version()}, {system}.")]


def _answers(snapshot: Snapshot, dropped: dict[str, int]) -> Iterator[Check]:
    driver = ", ".join(f"{word} {version}" for word, version in snapshot.driver.items())
    yield Check("ok", "gpus", f"{len(snapshot.gpus)} found{f' ({driver})' if driver else ''}.")
    yield from _joined([(gpu, check) for gpu in snapshot.gpus for check in _gpu(gpu)])
    for problem in snapshot.problems:
        yield Check("warn", problem.source, problem.message, problem.remedy)
    for key, count in dropped.items():
        remedy = "The driver reports invalid values; updating it may help."
        yield Check("warn", key, f"dropped {count_text(count, 'impossible value')}.", remedy)


def _joined(found: list[tuple[Gpu, Check]]) -> Iterator[Check]:
    """Say once what is true of several GPUs."""
    same: dict[tuple[str, str], tuple[Check, list[str]]] = {}
    for gpu, check in found:
        same.setdefault((check.found, check.remedy), (check, []))[1].append(label(gpu))
    for check, labels in same.values():
        yield Check(check.level, f"gpu {ranges(dict.fromkeys(labels))}", check.found, check.remedy)


def _gpu(gpu: Gpu) -> Iterator[Check]:
    about = "gpu"
    name = gpu.name or "without a name"
    if gpu.state == "lost":
        remedy = "Check `dmesg | grep -i xid`; resetting the GPU or rebooting usually helps."
        yield Check("fail", about, f"{name}: {STATES[gpu.state]} (fell off the bus).", remedy)
        return
    if gpu.state == "timeout":
        yield Check("fail", about, f"{name}: {STATES[gpu.state]}.", "Check `dmesg | tail`; reset the GPU or reboot.")
        return
    if gpu.state == "asleep":
        yield Check("note", about, f"{name}: asleep; gpulse does not wake it.")
        return
    activity = _activity(gpu)
    yield Check("ok", about, f"{name}: {activity}.")
    own = vendor_keys(gpu.vendor) if gpu.vendor in VENDORS else GPU_METRICS.keys()
    for gap in sorted(set(gpu.gaps.values()) - _QUIET):
        # what no GPU of this vendor has is not worth a word
        keys = sorted(key for key, reason in gpu.gaps.items() if reason == gap and (gap != "unsupported" or key in own))
        if keys:
            text, remedy = f"{gap}: {', '.join(keys)}.", _REMEDIES.get(gap, "")
            yield Check("note" if gap == "unsupported" else "warn", about, text, remedy)
    if low := below_maximum(gpu):
        busy = in_use(gpu)
        if busy or "pcie_width" in low:
            text = f"{link_text(low)}{' under load' if busy else ''}."
            remedy = "Reseat the card, and check the slot, its risers and the BIOS settings for the slot."
            yield Check("warn" if busy else "note", about, text, remedy)
    if gpu.persistence_mode is False:
        text = "persistence mode is off: the driver is loaded again for every first sample."
        yield Check("note", about, text, "Keep it loaded with `sudo nvidia-smi -pm 1`.")


def _activity(gpu: Gpu) -> str:
    if gpu.vendor not in (None, "nvidia"):
        return f"{gpu.vendor}, {sum(1 for _ in gpu.items())} values"
    if gpu.sm_active is not None:
        return "SM, tensor and DRAM activity"
    return "no activity counters (Hopper and later have them)"


_REMEDIES = {
    "denied": "Request this permission, or run as a user who has it.",
    "failed": "Check whether `nvidia-smi -q` fails, too; updating the driver may help.",
    "lost": "Check `dmesg | grep -i xid`.",
}


def _surroundings() -> Iterator[Check]:
    found = [f"{name}={os.environ[name]}" for name in _VARIABLES if name in os.environ]
    yield Check("ok", "environment", f"{', '.join(found) or 'no special environment'}.")
    yield Check("ok", "output", f"{'a terminal' if sys.stdout.isatty() else 'not a terminal'}, {sys.stdout.encoding}.")


def plugin_checks() -> list[Check]:
    """Return one check per installed plug-in: loaded here to see whether it can be, and never called."""
    from ..plugins import SERVING, SINKS, SOURCES
    from ..serving.kinds import KINDS
    from ..sinks.base import BUILT_IN as OWN_SINKS
    from ..sources.registry import BUILT_IN as OWN_SOURCES

    return [
        *_plugged_in(SOURCES, "source", OWN_SOURCES),
        *_plugged_in(SINKS, "sink", OWN_SINKS),
        *_plugged_in(SERVING, "kind of model server", [kind.name for kind in KINDS]),
    ]


def _plugged_in(group: str, kind: str, own: Collection[str]) -> Iterator[Check]:
    from ..plugins import plugins

    seen: dict[str, str] = {}
    for plugin in plugins(group):
        what = f"{kind} {plugin.name!r} of {plugin.package}"
        remedy = f"Rename it, or uninstall {plugin.package.partition(' ')[0]}."
        if plugin.name in own:
            yield Check("warn", "plug-in", f"{what} is never used: gpulse has a {kind} of that name.", remedy)
        elif plugin.name in seen:
            yield Check("warn", "plug-in", f"{what} is never used: {seen[plugin.name]} comes first.", remedy)
        else:
            seen[plugin.name] = plugin.package
            try:
                found = plugin.load()
                if not callable(found):
                    raise plugin.broken(f"it names a {type(found).__name__}, which cannot be called")
                yield Check("ok", "plug-in", f"{what}.")
            except GpulseError as error:
                yield Check("warn", "plug-in", error.message, error.remedy)
