"""The nvidia-smi source: reads a file that nvidia-smi wrote, or runs it where the driver's library may not be used.

Output may be UTF-16 (Windows) and hold names that break the XML.
"""

from __future__ import annotations

import os
import re
import time

from ...errors import GpulseError, SourceUnavailable
from ...model.snapshot import Problem
from ..base import Facts, Machine, Source
from ..processes import LinuxMachine
from .device import KEYS, SmiDevice, text_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from xml.etree.ElementTree import Element

    from ..base import Key

__all__ = ["KEYS", "SmiSource"]
_EVERY = 1.0  # seconds between two runs: each costs 20 to 600 ms
_PATIENCE = 30.0
_LATE, _MISSED = 10.0, 3  # seconds and samples without a new log; one run is started by one sample and read by the next
_MOST = 1 << 26  # bytes of a log
_RECORD = "Record it with `nvidia-smi -q -x > FILE`."


class ElsewhereMachine(Machine):
    """The machine that a log was recorded on; only its GPUs are known."""

    def __init__(self, name: str = "recorded") -> None:
        self.name = name

    def host(self, keys: Key) -> Facts:
        facts = Facts()
        facts.values["name"] = self.name
        facts.gaps.update(dict.fromkeys(keys - facts.values.keys(), "unsupported"))
        return facts

    def processes(self, pids: Collection[int], keys: Key) -> dict[int, Facts]:
        return {}


class SmiSource(Source):
    """The GPUs of `nvidia-smi -q -x`: of a file where one is named, else of this machine, by running the program."""

    name = "smi"
    patience = 30.0  # without persistence mode nvidia-smi loads the driver first

    def __init__(self, place: str = "") -> None:
        self._file = place
        self._run: SmiRun | None = None
        self._stamp: tuple[int, int] | None = None
        self._ran = float("-inf")
        self._came = time.monotonic()  # when the last log was read
        self._missed = 0  # how often there was none since
        self.machine = ElsewhereMachine() if place else LinuxMachine()
        self.devices: list[SmiDevice] = []

    def open(self) -> None:
        self._stamp, self._ran = None, float("-inf")
        log = self._next()
        if log is None:
            raise SourceUnavailable(f"nvidia-smi: {self._file} cannot be read.", _RECORD)
        version = text_at(log, "driver_version")
        told = (("version", version), ("cuda", text_at(log, "cuda_version")))
        self.driver = {word: text for word, text in told if text}
        self._came, self._missed = time.monotonic(), 0
        self.devices = [SmiDevice(gpu, index, version) for index, gpu in enumerate(log.findall("gpu"))]
        if not self.devices:
            remedy = "`gpulse doctor` lists what else was found."
            raise SourceUnavailable("nvidia-smi: its output lists no GPU.", remedy)

    def refresh(self) -> None:
        """Read the next log, if there is one; a log that cannot be read leaves the last one standing, with a problem until one can.

        Of a program that is run again and again, the last log stands for some seconds only.
        """
        log = None
        try:
            log = self._next()
        except GpulseError as error:
            self.problems = (Problem(self.name, error.message, error.remedy),)
        self._missed = 0 if log is not None else self._missed + 1
        if log is None and not self._file and self._missed > _MISSED and time.monotonic() - self._came > _LATE:
            for device in self.devices:
                device.silent = True
        if log is not None:
            self.problems, self._came = (), time.monotonic()
            gpus = {text_at(gpu, "uuid") or str(gpu.get("id")): gpu for gpu in log.findall("gpu")}
            for device in self.devices:
                own = gpus.get(str(device.identity["uuid"]))
                device.update(gpus.get(str(device.identity.get("pci_bus_id"))) if own is None else own)

    def close(self) -> None:
        if self._run is not None:
            self._run.end()
            self._run = None
        self.devices = []

    def _next(self) -> Element | None:
        """Return the next log; None when the file is as it was, or when the last run is too young."""
        if self._file:
            stamp = self._stat()
            if stamp == self._stamp:
                return None
            self._stamp = stamp
            return parse_log(decode(self._read()))
        return self._next_run()

    def _next_run(self) -> Element | None:
        """Return the log of a run that has ended, and start the next one; the first run is waited for."""
        if not self.devices:
            return parse_log(decode(SmiRun().wait()))
        if self._run is None:
            if time.monotonic() - self._ran >= _EVERY:
                self._ran = time.monotonic()
                self._run = SmiRun()
            return None
        if not self._run.ended():
            return None
        run, self._run = self._run, None
        return parse_log(decode(run.wait()))

    def _stat(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._file)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def _read(self) -> bytes:
        try:
            with open(self._file, "rb") as file:
                return file.read(_MOST)
        except OSError as error:
            raise SourceUnavailable(f"nvidia-smi: {self._file} cannot be read ({error.strerror}).", _RECORD) from None


class GivenSmiSource(SmiSource):
    """The GPUs of logs of another machine, which the caller hands over as they come; `name` is that machine's."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.machine = ElsewhereMachine(name)
        self.given: bytes | None = None

    def _next(self) -> Element | None:
        given, self.given = self.given, None
        return None if given is None else parse_log(decode(given))


class SmiRun:
    """One run of nvidia-smi, whose output goes to a file so that nobody has to wait for it; raises SourceUnavailable."""

    def __init__(self) -> None:
        import subprocess  # only this source pays for these
        import tempfile

        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `wait` or `end`
        self._until = time.monotonic() + _PATIENCE
        try:
            self._process = subprocess.Popen(
                ["nvidia-smi", "-q", "-x"], stdin=subprocess.DEVNULL, stdout=self._output, stderr=subprocess.STDOUT
            )
        except OSError as error:
            self._output.close()
            missing = isinstance(error, FileNotFoundError)
            why = "the program was not found" if missing else f"cannot be run ({error.strerror})"
            remedy = "Install the NVIDIA driver, or name a file: smi:FILE.xml."
            raise SourceUnavailable(f"nvidia-smi: {why}.", remedy) from None

    def ended(self) -> bool:
        """Return whether the run is over; one that takes too long is killed."""
        if self._process.poll() is None and time.monotonic() > self._until:
            self._process.kill()
            self._process.wait()
        return self._process.poll() is not None

    def wait(self) -> bytes:
        """Return the output, waiting for the end."""
        while not self.ended():
            time.sleep(0.005)
        self._output.seek(0)
        output = self._output.read(_MOST)
        self._output.close()
        if self._process.returncode and b"<nvidia_smi_log" not in output:
            lines = output.decode("utf-8", "replace").strip().splitlines()
            code = self._process.returncode
            raise SourceUnavailable(f"nvidia-smi: {lines[0] if lines else f'it ended with code {code}'}", "")
        return output

    def end(self) -> None:
        """Kill a run that is still going on."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._output.close()


def run_smi() -> bytes:
    """Return the output of one run; raise SourceUnavailable if it cannot be run or fails."""
    return SmiRun().wait()


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_BARE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")


def decode(content: bytes) -> str:
    """Return the text; PowerShell writes a redirected output as UTF-16."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8-sig", "replace")


def parse_log(text: str) -> Element:
    """Return the log of a text; of several, as `nvidia-smi -l` writes them, the last whole one. Raise SourceUnavailable."""
    if len(text) > _MOST or "<!ENTITY" in text:
        raise _unreadable("it is too big or declares entities")
    parts = [part for part in text.split("<?xml") if "<nvidia_smi_log" in part]
    for part in reversed(parts):
        if (log := _parsed(part[part.index("<nvidia_smi_log") :])) is not None:
            return log
    raise _unreadable("no whole nvidia_smi_log is in it")


def _parsed(part: str) -> Element | None:
    from xml.etree.ElementTree import ParseError, fromstring

    end = part.rfind("</nvidia_smi_log>")
    whole = part[: end + len("</nvidia_smi_log>")] if end >= 0 else ""
    for candidate in (whole, _BARE.sub("&amp;", _CONTROL.sub("", whole))):
        try:
            return fromstring(candidate)
        except (ParseError, ValueError):
            continue
    return None


def _unreadable(why: str) -> SourceUnavailable:
    return SourceUnavailable(f"nvidia-smi: this is no output of `nvidia-smi -q -x`: {why}.", _RECORD)
