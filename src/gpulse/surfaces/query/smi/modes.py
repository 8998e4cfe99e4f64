"""clocks, compute-policy, boost-slider, conf-compute and encodersessions: what is set and in use, in nvidia-smi's layout.

NVML has no call for synchronous boost groups, time slices and boost sliders: a list of these has N/A, or is refused.
"""

from __future__ import annotations

from ....model.select import Wanted
from ....present.text import clean
from ..scroll import gpu_index
from ..views import View
from .failure import INVALID, SmiExit
from .options import Options
from .refusal import changes_state, unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ....model.catalog import Gpu
    from ....model.snapshot import Snapshot

_COMMON = {"-h": "--help", "-i": "--id"}
# The options of each command that gpulse answers, those that change the machine, and those that NVML has no call for.
_FLAGS: dict[str, dict[str, str]] = {
    "clocks": _COMMON,
    "compute-policy": {**_COMMON, "-l": "--list"},
    "boost-slider": {**_COMMON, "-l": "--list"},
    "conf-compute": {
        **_COMMON, "-gc": "--get-cpu-caps", "-gg": "--get-gpus-caps", "-d": "--get-devtools-mode", "-e": "--get-environment",
        "-f": "--get-cc-feature", "-gm": "--get-mem-size-info", "-grs": "--get-gpus-ready-state",
        "-gkr": "--get-key-rotation-threshold-info", "-mgm": "--get-multigpu-mode", "-q": "--query-conf-compute",
    },
    "encodersessions": {**_COMMON, "-l": "--loop"},
}  # fmt: skip
_CHANGES = {
    "clocks": {"--sync-boost-add", "--sync-boost-remove", "-som", "--sparse-operation-mode"},
    "compute-policy": {"--set-timeslice"},
    "boost-slider": {"--vboost"},
    "conf-compute": {
        "-sm", "--set-unprotected-mem-size", "-srs", "--set-gpus-ready-state", "-skr", "--set-key-rotation-max-attacker-advantage",
    },
}  # fmt: skip
_UNREADABLE = {"clocks": {"--sync-boost-list"}}
COMMANDS = frozenset(_FLAGS)
_LISTS = {
    "compute-policy": (
        f"+{'-' * 37}+", f"| {'GPU compute policies:':<36}|", "| GPU     Name           Value        |", f"|{'=' * 37}|",
        "| {:>3}   Timeslice       {:<7}       |", f"+{'-' * 37}+",
    ),
    "boost-slider": (
        f"+{'-' * 49}+", f"| {'GPU Boost Slider':<48}|", "| GPU     Slider       Max Value    Current Value |", f"|{'=' * 49}|",
        "| {:>3}     vboost          {:<3}            {:<3}      |", f"+{'-' * 49}+",
    ),
}  # fmt: skip
_ON = ("OFF", "ON")
# Each option: the key of the value, what stands before it, what stands before it in the detailed list, and the words of its numbers.
_CONFIDENTIAL: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "--get-cc-feature": ("feature", "CC status: ", "CC State", _ON),
    "--get-devtools-mode": ("devtools", "DevTools Mode: ", "", _ON),
    "--get-multigpu-mode": ("multi_gpu", "Multi-GPU Mode: ", "Multi-GPU Mode", ("None", "Protected PCIe", "NVLE")),
    "--get-environment": ("environment", "CC Environment: ", "", ("UNAVAILABLE", "SIM", "PROD")),
    "--get-cpu-caps": (
        "cpu", "CPU CC capabilities: ", "CPU CC Capabilities", ("None", "AMD SEV", "INTEL TDX", "AMD SEV SNP", "AMD SNP VTOM"),
    ),
    "--get-gpus-caps": ("gpus", "GPU CC capabilities: ", "GPU CC Capabilities", ("CC Not Capable", "CC Capable")),
    "--get-gpus-ready-state": (
        "ready", "\nConfidential Compute GPUs Ready state: ", "CC GPUs Ready State", ("Not Ready", "Ready"),
    ),
}  # fmt: skip
_CODECS = ("H.264", "HEVC", "AV1")
_SESSIONS = (
    "# GPU Session    Process   Codec       H       V Average     Average",
    "# Idx      Id         Id    Type     Res     Res     FPS Latency(us)",
)
_WIDTHS = (5, 8, 11, 8, 8, 8, 8, 12)


class ModeView(View):
    """The answer to one of these commands; `interval` is None for a single answer."""

    interval: float | None = None

    def __init__(self, command: str, words: Sequence[str]) -> None:
        """Read the options; raise SmiExit as nvidia-smi would end."""
        flags = {word.partition("=")[0] for word in words}
        if flags & _CHANGES.get(command, set()):
            raise changes_state([command, *words])
        if flags & _UNREADABLE.get(command, set()):
            raise unreadable([command, *words])
        switches = frozenset(_FLAGS[command].values()) - {"--id", "--loop"}
        self._options = options = Options(command, _FLAGS[command], words, switches, strict=True)
        self._command = command
        self.ids = options.ids
        self.wanted = Wanted({"index", "uuid", "name", "confidential_compute"})
        if command == "encodersessions":
            self.wanted = Wanted({"index", "uuid", "encoder_session_list"})
            self.interval = _seconds(options.get("--loop") or "1")
        elif not any(name in options for name in switches - {"--help"}):
            raise SmiExit(options.usage(), 0)

    def head(self) -> list[str]:
        """Return the header of the sessions."""
        return [*_SESSIONS] if self._command == "encodersessions" else []

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Return the lines of one snapshot."""
        if self._command == "encodersessions":
            return [line for gpu in snapshot.gpus for line in _sessions(gpu)]
        if self._command in _LISTS:
            *head, row, end = _LISTS[self._command]
            return [*head, *(row.format(gpu_index(gpu), "N/A", "N/A") for gpu in snapshot.gpus), end]
        return self._confidential(snapshot)

    def _confidential(self, snapshot: Snapshot) -> list[str]:
        told = [(gpu, dict(pair.split(":", 1) for pair in gpu.confidential_compute or ())) for gpu in snapshot.gpus]
        known = next((words for _, words in told if words), {})
        lines: list[str] = []
        if "--get-mem-size-info" in self._options:
            for gpu, words in told:
                lines.append(f"GPU {gpu_index(gpu)}: {clean(gpu.name or 'Unknown')} (UUID: {clean(gpu.uuid or 'N/A')})")
                lines.append(f"Protected memory size:   {_kibibytes(words, 'protected')}")
                lines.append(f"Unprotected memory size: {_kibibytes(words, 'unprotected')}")
        if "--get-key-rotation-threshold-info" in self._options:
            threshold = known.get("key_rotation", "?").replace("?", "N/A")
            lines += ["", f"Confidential Compute Key Rotation Threshold Attacker Advantage: {threshold}", ""]
        for option, (key, label, _, names) in _CONFIDENTIAL.items():
            if option in self._options:
                word = _word(known, key, names)
                lines += [f"{label}{word.lower().replace(' ', '-')}\n" if key == "ready" else f"{label}{word}"]
        if "--query-conf-compute" in self._options:
            rows = [(label, _word(known, key, names)) for key, _, label, names in _CONFIDENTIAL.values() if label]
            lines += ["", "==============NVSMI CONF-COMPUTE LOG==============", ""]
            lines += [*(f"    {label:<27}: {word}" for label, word in rows), ""]
        return lines


def _word(known: Mapping[str, str], key: str, words: Sequence[str]) -> str:
    number = known.get(key, "")
    return words[int(number)] if number.isdecimal() and int(number) < len(words) else "N/A"


def _kibibytes(known: Mapping[str, str], key: str) -> str:
    return f"{known[key]} KiB" if known.get(key, "?") != "?" else "N/A"


def _sessions(gpu: Gpu) -> list[str]:
    """Return a row per session: id, process, codec, width, height, frames per second and latency; or one without."""
    rows = []
    for word in gpu.encoder_session_list or ():
        number, pid, codec, *rest = word.split(":")
        named = _CODECS[int(codec)] if int(codec) < len(_CODECS) else codec
        rows.append((number, pid, named, *rest))
    empty = ("-",) * (len(_WIDTHS) - 1)
    return [
        "".join(f"{cell:>{wide}}" for wide, cell in zip(_WIDTHS, (gpu_index(gpu), *row), strict=True))
        for row in rows or [empty]
    ]


def _seconds(text: str) -> float:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 10):
        wrong = "Provided [-l(sec) | --loop(sec)=] value is incorrect. Loop frequency must be between 1 and 10.\n"
        raise SmiExit(wrong, INVALID)
    return float(text)
