"""Find samples in what a remote command prints: JSON lines of `gpulse record`, logs of `nvidia-smi -q -x`, or AMD's kernel files."""

from __future__ import annotations

from ..errors import GpulseError
from ..model.codec import from_line
from .sysfs import END, START, SysfsReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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

    def feed(self, piece: bytes) -> Iterator[Snapshot]:
        """Yield the samples that this piece completes; raises TooMuch."""
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
            from ..model.select import EVERYTHING
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
