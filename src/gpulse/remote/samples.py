"""Samples in what a remote command prints: JSON lines of `gpulse record`, logs of `nvidia-smi -q -x`, or files of AMD's driver."""

from __future__ import annotations

import os
import re
import shutil
import tempfile

from ..errors import GpulseError
from ..model.catalog import Gpu
from ..model.codec import from_line
from ..model.select import EVERYTHING, Wanted
from ..sources.files import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..model.snapshot import Snapshot
    from ..sampling.sampler import Sampler
    from ..sources.smi.source import GivenSmiSource

MOST = 1 << 24  # bytes of one sample; a host that prints more without an end is not a gpulse
_XML_START, _XML_END = b"<nvidia_smi_log", b"</nvidia_smi_log>"


class TooMuch(Exception):
    """A machine that prints without end."""


class SampleReader:
    """Turns the bytes of one machine into snapshots. What is no sample, such as a greeting of the login shell, is skipped."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rest = b""
        self._smi: tuple[GivenSmiSource, Sampler] | None = None
        self._sysfs: SysfsReader | None = None
        self._files: list[bytes] | None = None  # lines of kernel files, whose end has not come yet
        self._size = 0
        self._first: float | None = None  # when what prints the samples has started

    def feed(self, piece: bytes) -> Iterator[Snapshot]:
        """Yield the samples that this piece completes; raises TooMuch.

        A GPU that was lost before the first of them has no `since`: what prints them was started by us, and has not seen it happen.
        """
        for snapshot in self._samples(piece):
            self._first = snapshot.time if self._first is None else self._first
            yield _undated(snapshot, self._first)

    def _samples(self, piece: bytes) -> Iterator[Snapshot]:
        data = self._rest + piece
        if _XML_START in data:
            yield from self._logs(data)
            return
        *lines, self._rest = data.split(b"\n")
        self._bound()
        for line in lines:
            if self._files is not None or line == START:
                yield from self._kernel(line)
            elif line.startswith(b"{"):
                try:
                    yield from_line(line.decode("utf-8", "replace"))
                except GpulseError:
                    continue  # a line of JSON that is something else

    def close(self) -> None:
        """Release what reads nvidia-smi's logs."""
        if self._smi is not None:
            self._smi[1].close()
        if self._sysfs is not None:
            self._sysfs.close()

    def _kernel(self, line: bytes) -> Iterator[Snapshot]:
        """Take one line of kernel files; yield the sample if it is the last."""
        if line == START or self._files is None:
            self._files, self._size = [], 0
        elif line != END:
            self._files.append(line)
            self._size += len(line)
            if self._size > MOST:
                raise TooMuch
        else:
            lines, self._files = self._files, None
            self._sysfs = self._sysfs or SysfsReader()
            try:
                yield self._sysfs.read(lines)
            except GpulseError:
                return  # no GPU in it

    def _logs(self, data: bytes) -> Iterator[Snapshot]:
        *logs, self._rest = data.split(_XML_END)
        self._bound()
        for log in logs:
            try:
                yield self._read(log + _XML_END)
            except GpulseError:
                continue  # half a log, or one without a GPU

    def _read(self, log: bytes) -> Snapshot:
        """Return the sample of a log, with the rates since the one before."""
        if self._smi is None:
            from ..sampling.sampler import Sampler
            from ..sources.smi.source import GivenSmiSource

            source = GivenSmiSource(self._name)
            source.given = log
            self._smi = (source, Sampler(source, EVERYTHING).open())
        else:
            self._smi[0].given = log
        return self._smi[1].read()

    def _bound(self) -> None:
        if len(self._rest) > MOST:
            self._rest = b""
            raise TooMuch


START, END = b"gpulse-sysfs", b"gpulse-sysfs-end"
# One grep and one od per GPU and sample. A GPU that sleeps is asked for nothing that would wake it. It has no single quotes, because
# it is part of a command in single quotes, and only paths below / (in tests: $GPULSE_ROOT), which keeps names short.
SCRIPT = (
    'if cd "$GPULSE_ROOT/" 2>/dev/null && cat sys/class/drm/card*/device/vendor 2>/dev/null | grep -q 0x1002; then '
    "while :; do echo gpulse-sysfs; "
    "for d in sys/class/drm/card*[0-9]/device; do "
    "case $(cat $d/vendor 2>/dev/null) in 0x1002) ;; *) continue ;; esac; "
    'f="uevent vendor device revision power/runtime_status unique_id product_name serial_number vbios_version"; '
    "case $(cat $d/power/runtime_status 2>/dev/null) in suspend*) ;; *) "
    'f="$f gpu_busy_percent mem_busy_percent vcn_busy_percent mem_info_*_used mem_info_*_total pp_dpm_sclk pp_dpm_mclk pp_dpm_vclk '
    "pp_dpm_pcie pcie_replay_count current_link_* max_link_* current_*_partition ras/*_err_count ras/gpu_vram_bad_pages "
    "ip_discovery/die/0/GC/0/major ip_discovery/die/0/GC/0/minor ip_discovery/die/0/GC/0/revision hwmon/hwmon*/name "
    'hwmon/hwmon*/*_input hwmon/hwmon*/*_label hwmon/hwmon*/*_crit hwmon/hwmon*/power1_* hwmon/hwmon*/pwm1 hwmon/hwmon*/pwm1_max"; '
    "echo hex $d/gpu_metrics; od -An -v -tx1 $d/gpu_metrics 2>/dev/null ;; esac; "
    'g=; for n in $f; do g="$g $d/$n"; done; grep -sH "" $g; done; '
    'grep -sH "" sys/class/drm/card*-*/enabled sys/class/kfd/kfd/topology/nodes/*/gpu_id sys/class/kfd/kfd/topology/nodes/*/properties '
    "sys/class/kfd/kfd/topology/nodes/*/mem_banks/0/properties sys/class/kfd/kfd/topology/nodes/*/mem_banks/0/used_memory "
    "sys/module/amdgpu/version proc/sys/kernel/osrelease proc/sys/kernel/hostname proc/stat proc/loadavg proc/meminfo; "
    "echo gpulse-sysfs-end; sleep INTERVAL; done; fi; "
)
# What a machine prints is not trusted: nothing outside of these folders is written, and not much.
_PATH = re.compile(
    r"^(?:sys/class/drm/card\d{1,4}(?:-[\w-]{1,40})?|sys/class/kfd/kfd/topology/nodes/\d{1,4}|sys/module/amdgpu|proc|proc/sys/kernel)"
    r"(?:/[A-Za-z0-9_][\w-]{0,60}){1,7}$",
    re.ASCII,
)
_MOST_FILES, _MOST_BYTES = 8192, 1 << 23
_HOST = ("cpu_count", "cpu_percent", "cpu_per_core", "load", "memory_used", "memory_total", "swap_used", "swap_total")
_WANTED = Wanted(EVERYTHING.gpu, None, _HOST)


class SysfsReader:
    """Reads what SCRIPT prints, one copy of the files per machine in a private folder; closed by its creator."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="gpulse-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self._sampler: Sampler | None = None
        self._written: set[str] = set()

    def read(self, lines: Iterable[bytes]) -> Snapshot:
        """Return the sample of one print; raises GpulseError if there is no GPU in it."""
        self._write(parse(lines))
        snapshot = (self._sampler or self._open()).read()
        name = read_text(f"{self._folder}/proc/sys/kernel/hostname", 256)
        host = snapshot.host.replace(name=name or None)  # not ours
        return snapshot.replace(gpus=tuple(map(_unlisted, snapshot.gpus)), host=host)

    def _open(self) -> Sampler:
        from ..sampling.sampler import Sampler  # only for machines that print files
        from ..sources.amd.source import AmdSource

        sampler = Sampler(AmdSource(self._folder), _WANTED)
        try:
            self._sampler = sampler.open()
        except GpulseError:
            sampler.close()
            raise
        return sampler

    def close(self) -> None:
        """Remove the copy."""
        if self._sampler is not None:
            self._sampler.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, files: dict[str, bytes]) -> None:
        """Write files in place, because they are kept open; what is no longer there becomes empty and is removed."""
        for path in self._written - files.keys():
            whole = f"{self._folder}/{path}"
            os.truncate(whole, 0)
            os.unlink(whole)
            while (whole := os.path.dirname(whole)) != self._folder and not os.listdir(whole):
                os.rmdir(whole)  # a folder that is gone means a GPU that is gone
        for path, content in files.items():
            whole = f"{self._folder}/{path}"
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            with open(whole, "wb") as file:
                file.write(content)
        self._written = set(files)


def parse(lines: Iterable[bytes]) -> dict[str, bytes]:
    """Return the files of one print by path: lines of `path:text`, and `hex path` followed by lines of hex digits."""
    found: dict[str, bytearray] = {}
    binary, size = "", 0
    for line in lines:
        size += len(line)
        if size > _MOST_BYTES or len(found) > _MOST_FILES:
            break
        if line.startswith(b" ") and binary:
            try:
                found.setdefault(binary, bytearray()).extend(bytes.fromhex(line.decode("ascii", "replace")))
            except ValueError:
                continue
        elif line.startswith(b"hex "):
            path = line[4:].decode("utf-8", "replace")
            binary = path if _PATH.match(path) else ""
        else:
            name, colon, text = line.partition(b":")
            path = name.decode("utf-8", "replace")
            if colon and _PATH.match(path):
                found.setdefault(path, bytearray()).extend(text + b"\n")
    return {path: bytes(content) for path, content in found.items()}


_EDGE = 1.0  # seconds between the start of a sampler and its first sample, at most


def _undated(snapshot: Snapshot, first: float) -> Snapshot:
    """Return a snapshot in which states that the `first` sample found already began nobody knows when."""
    if all(gpu.since is None for gpu in snapshot.gpus):
        return snapshot
    gpus = [
        gpu.replace(since=None) if gpu.since is not None and gpu.since <= first + _EDGE else gpu
        for gpu in snapshot.gpus
    ]
    return snapshot.replace(gpus=tuple(gpus))


def _unlisted(gpu: Gpu) -> Gpu:
    """Return a GPU whose processes nobody has asked for."""
    return gpu.replace(gaps={**gpu.gaps, "processes": "skipped"}, processes=())
