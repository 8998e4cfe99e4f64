"""mig: the profiles and instances of GPUs in MIG mode, in nvidia-smi's layout."""

from __future__ import annotations

from ....model.select import Wanted
from ....present.text import clean
from ..field import gpu_index, whole_or
from ..views import View
from .grammar import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ....model.catalog import Gpu
    from ....model.snapshot import Snapshot


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
