"""mig, clocks, compute-policy, boost-slider, conf-compute and encodersessions: what is set and in use, in nvidia-smi's layout.

Nothing is changed. NVML has no call for synchronous boost groups, time slices and boost sliders: a list of these has N/A, or is
refused.
"""

from __future__ import annotations

from ....model.select import Wanted
from ....present.text import clean
from ..field import gpu_index, gpu_title, whole_or
from ..views import View
from .failure import INVALID, SmiExit
from .grammar import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ....model.catalog import Gpu
    from ....model.snapshot import Snapshot


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

    def __init__(self, command: str, words: Sequence[str]) -> None:
        """Read the options; raise SmiExit as nvidia-smi would end."""
        self._options = options = Options(command, words)
        self._command = command
        self.ids = options.ids
        self.wanted = Wanted({"index", "uuid", "name", "confidential_compute"})
        if command == "encodersessions":
            self.wanted = Wanted({"index", "uuid", "encoder_session_list"})
            self.interval = _seconds(options.get("--loop") or "1")

    def head(self) -> list[str]:
        return [*_SESSIONS] if self._command == "encodersessions" else []

    def lines(self, snapshot: Snapshot) -> list[str]:
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
                lines.append(gpu_title(gpu))
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
    if not (text.isascii() and text.isdecimal() and len(text) < 3 and 1 <= int(text) <= 10):
        wrong = "Provided [-l(sec) | --loop(sec)=] value is incorrect. Loop frequency must be between 1 and 10.\n"
        raise SmiExit(wrong, INVALID)
    return float(text)


_WIDE = f"+{'-' * 79}+"
_PROFILES = (
    _WIDE,
    f"| {'GPU instance profiles:':<78}|",
    "| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |",
    "|                                Free/Total   GiB              CE    JPEG  OFA  |",
    f"|{'=' * 79}|",
)
_INSTANCES = (
    f"+{'-' * 57}+",
    f"| {'GPU instances:':<56}|",
    "| GPU   Name               Profile  Instance   Placement  |",
    "|                            ID       ID       Start:Size |",
    f"|{'=' * 57}|",
)
_COMPUTE = (
    f"+{'-' * 69}+",
    f"| {'Compute instances:':<68}|",
    "| GPU     GPU       Name               Profile   Instance   Placement |",
    "|       Instance                         ID        ID       Start:Size|",
    f"|{'=' * 69}|",
)


class MigLists(View):
    """The answer to one mig command."""

    def __init__(self, words: Sequence[str]) -> None:
        """Read the options; raise SmiExit as nvidia-smi would end."""
        self._options = Options("mig", words)
        self.ids = self._options.ids
        self.wanted = Wanted({"index", "uuid", "mig_mode", "mig_profiles", "memory_total"})

    def lines(self, snapshot: Snapshot) -> list[str]:
        if "--list-gpu-instance-profiles" in self._options:
            rows = [line for gpu in snapshot.gpus for line in _profiles(gpu)]
            return [*_PROFILES, *rows] if rows else ["No MIG-supported devices found."]
        divided = [gpu for gpu in snapshot.gpus if gpu.mig_mode]
        if not divided:
            return ["No MIG-enabled devices found."]
        whole = "--list-gpu-instances" in self._options
        what, head, row = ("GPU", _INSTANCES, _instance) if whole else ("compute", _COMPUTE, _compute)
        parts = [(gpu, part) for gpu in divided for part in gpu.instances]
        if whole:  # several compute instances may share a GPU instance
            parts = list({(gpu.uuid, part.gpu_instance): (gpu, part) for gpu, part in parts}.values())
        if not parts:
            return [f"No {what} instances found: Not Found"]
        return [*head, *(line for gpu, part in parts for line in (row(gpu, part), head[0]))]


def _profiles(gpu: Gpu) -> Iterator[str]:
    for parts in sorted((clean(word).split(":") for word in gpu.mig_profiles or ()), key=_size):
        if len(parts) != 12:
            continue
        number, name, free, total, size, p2p, sms, copies, decoders, encoders, jpegs, ofas = parts
        memory, peers = f"{int(size) / 1024:.2f}" if size.isdecimal() else "N/A", "Yes" if p2p == "1" else "No"
        yield (
            f"|{gpu_index(gpu):>4}  {'MIG ' + name:<17}{number:>5}{free:>6}/{total:<8} {memory:<10} {peers:<6} {sms:<6}"
            f" {decoders:<5} {encoders:<4}|"
        )
        yield f"|{'':63}{copies:<5} {jpegs:<5} {ofas:<4}|"
        yield _WIDE


def _size(parts: list[str]) -> tuple[int, int, str]:
    """Return what nvidia-smi orders profiles by: slices, memory, and those with extras last."""
    name, memory = (*parts, "", "", "", "", "")[1], (*parts, "", "", "", "", "")[4]
    slices = name.partition("g.")[0]
    return int(slices) if slices.isdecimal() else 0, int(memory) if memory.isdecimal() else 0, name


def _instance(gpu: Gpu, part: Gpu) -> str:
    name = clean(part.name or "MIG")
    return f"|{gpu_index(gpu):>4}  {name:<17}{_profile_id(gpu, name):>6}{whole_or(part.gpu_instance, '-'):>9}{'-':>11}{'':8}|"


def _compute(gpu: Gpu, part: Gpu) -> str:
    name = clean(part.name or "MIG")
    return (
        f"|{gpu_index(gpu):>4}{whole_or(part.gpu_instance, '-'):>7}{'':7}{name:<18}{'-':>7}{whole_or(part.compute_instance, '-'):>11}"
        f"{'-':>10}{'':5}|"
    )


def _profile_id(gpu: Gpu, name: str) -> str:
    """Return the number of the profile with this name, which the driver says only by name."""
    plain = name.removeprefix("MIG ")
    return next((word.split(":")[0] for word in gpu.mig_profiles or () if word.split(":")[1:2] == [plain]), "-")
