"""dmon and pmon: their options, their columns in the order asked, dates and times, violations and CSV."""

from __future__ import annotations

import time

from ....model.catalog import GPU_METRICS, PROCESS_METRICS
from ....model.select import Wanted
from .. import scroll
from ..scroll import ScrollColumn
from ..views import View
from .failure import OTHER, SmiExit
from .grammar import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ....model.catalog import Gpu
    from ....model.snapshot import Snapshot

_FLAGS = {
    "-i": "--id", "-d": "--delay", "-c": "--count", "-s": "--select", "-o": "--options", "-f": "--filename",
    "--format": "--format", "--gpm-metrics": "--gpm-metrics", "--gpm-options": "--gpm-options", "-h": "--help",
}  # fmt: skip
_POWER, _THERMAL = "throttle_time_power_cap", ("throttle_time_thermal", "throttle_time_thermal_hardware")
_VIOLATIONS = (ScrollColumn("pviol", "%", _POWER, "v"), ScrollColumn("tviol", "bool", _THERMAL[0], "v"))
_DATE = (("D", "Date", "YYYYMMDD", "%Y%m%d"), ("T", "Time", "HH:MM:SS", "%H:%M:%S"))


class ScrollRequest:
    """What dmon or pmon was asked: the view, the GPUs, seconds between lines, number of samples and the file."""

    __slots__ = ("count", "filename", "ids", "interval", "view")

    def __init__(self, command: str, words: Sequence[str]) -> None:
        """Read the options; raise SmiExit as nvidia-smi would end."""
        options = Options(command, _FLAGS, words)
        usual = "puc" if command == "dmon" else "u"
        self.ids = options.ids
        self.filename = options.get("--filename")
        self.interval = _number(
            options, "--delay", 1, "Collection delay/interval should be between 1 second and 600 seconds"
        )
        asked = options.get("--count")
        self.count = (
            None
            if asked is None
            else _number(options, "--count", 1, "Invalid value for number of samples to be displayed")
        )
        if "--gpm-metrics" in options:
            raise SmiExit("gpulse smi has no --gpm-metrics; run `gpulse query --scroll=a` instead.", 3, own=True)
        groups, stamps = options.get("--select") or usual, (options.get("--options") or "").upper()
        forms = (options.get("--format") or "").split(",")
        self.view = DeviceScroll(groups, stamps, forms) if command == "dmon" else ProcessScroll(groups, stamps)


class _Scrolling(View):
    """What dmon and pmon share: columns in the order asked, a date and a time before them, the header every 20 lines."""

    def __init__(self, table: Sequence[ScrollColumn], groups: str, stamps: str) -> None:
        self._shown = [column for letter in dict.fromkeys(groups) for column in table if column.group == letter]
        if not self._shown:
            raise SmiExit("Failed to find any metric to display\nFailed to process command line \n", OTHER)
        self._stamps = [parts for parts in _DATE if parts[0] in stamps]
        self._since = scroll.HEADER_EVERY

    def _titles(self, header: Sequence[str]) -> list[str]:
        """Return the header with the titles of date and time in front."""
        if not self._stamps:
            return list(header)
        names = "    ".join(f"{name:<8}" for _, name, _, _ in self._stamps)
        shapes = "    ".join(shape for _, _, shape, _ in self._stamps)
        return [f"#{names}     {header[0][2:]}", f"#{shapes}     {header[1][2:]}"]

    def _place(self, snapshot: Snapshot, gpu: Gpu) -> str:
        """Return date, time and index of a line."""
        if not self._stamps:
            return f"{scroll.gpu_index(gpu):>5}"
        moment = time.localtime(snapshot.time)
        stamps = "    ".join(time.strftime(form, moment) for *_, form in self._stamps)
        return f" {stamps}{scroll.gpu_index(gpu):>8}"

    def _with_header(self, header: list[str], body: list[str]) -> list[str]:
        due = self._since >= scroll.HEADER_EVERY
        self._since = len(body) if due else self._since + len(body)
        return [*self._titles(header), *body] if due else body


class DeviceScroll(_Scrolling):
    """dmon: one line per GPU and sample."""

    def __init__(self, groups: str = "puc", stamps: str = "", forms: Sequence[str] = ()) -> None:
        """`groups` are dmon's letters, `stamps` D and T, `forms` csv, nounit and noheader."""
        super().__init__((*scroll.DEVICE, *_VIOLATIONS), groups.replace("a", ""), stamps)
        self._csv = "csv" in forms
        self._titled = "noheader" not in forms, "nounit" not in forms and "nounits" not in forms
        self._violations = any(column in _VIOLATIONS for column in self._shown)
        self._before: dict[str, tuple[float, float, float]] = {}
        more = {_POWER, *_THERMAL} if self._violations else set()
        self.wanted = Wanted({"index", "uuid", *more, *(column.key for column in self._shown)})

    @property
    def compares(self) -> bool:
        """Whether a value covers the time since the sample before."""
        return self._violations

    def note(self, snapshot: Snapshot) -> None:
        """Take a sample only to compare the next one with."""
        for gpu in snapshot.gpus:
            self._violated(snapshot, gpu)

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Return the lines of one snapshot."""
        body = [f"{self._place(snapshot, gpu)}{self._cells(snapshot, gpu)}" for gpu in snapshot.gpus]
        if not self._csv:
            return self._with_header(scroll.device_header(self._shown), body)
        return [*self._csv_titles(), *(f" {', '.join(line.split())}" for line in body)]

    def _csv_titles(self) -> Iterator[str]:
        due, self._since = self._since >= scroll.HEADER_EVERY, 0
        for wanted, line in zip(self._titled, self._titles(scroll.device_header(self._shown)), strict=True):
            if due and wanted:
                yield "#" + ", ".join(line.removeprefix("#").split())

    def _cells(self, snapshot: Snapshot, gpu: Gpu) -> str:
        if not self._violations:
            return scroll.device_cells(gpu, self._shown)
        found = dict(zip(_VIOLATIONS, self._violated(snapshot, gpu), strict=True))
        return "".join(f"{found[one] if one in found else one.text(gpu):>7}" for one in self._shown) + " "

    def _violated(self, snapshot: Snapshot, gpu: Gpu) -> tuple[str, str]:
        """Return the share of time at the power cap, and whether heat slowed the GPU, since the last sample."""
        power, heat = gpu.throttle_time_power_cap, [gpu.get(key) for key in _THERMAL]
        slowed = sum(value for value in heat if isinstance(value, (int, float)))
        if power is None:
            return "-", "-"
        name = gpu.uuid or scroll.gpu_index(gpu)
        before, self._before[name] = self._before.get(name), (snapshot.time, power, slowed)
        if before is None or snapshot.time <= before[0]:
            return "-", "-"
        share = min(100.0, max(0.0, 100 * (power - before[1]) / (snapshot.time - before[0])))
        return f"{share:.0f}", str(int(slowed > before[2]))


class ProcessScroll(_Scrolling):
    """pmon: one line per process and sample, and one of dashes for a GPU without any."""

    def __init__(self, groups: str = "u", stamps: str = "") -> None:
        """`groups` are pmon's letters u and m, `stamps` D and T."""
        super().__init__(scroll.PROCESS, groups, stamps)
        keys = {column.key for column in self._shown if column.key}
        gpu = {"index", *(keys & GPU_METRICS.keys() - PROCESS_METRICS.keys())}
        self.wanted = Wanted(gpu, {"pid", "type", "name", *(keys & PROCESS_METRICS.keys())})

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Return the lines of one snapshot."""
        body = [
            f"{self._place(snapshot, gpu)}{cells}"
            for gpu in snapshot.gpus
            for cells in scroll.process_cells(gpu, self._shown)
        ]
        return self._with_header(scroll.process_header(self._shown), body)


def _number(options: Options, name: str, usual: int, complaint: str) -> int:
    text = options.get(name)
    if text is None:
        return usual
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise options.complain(complaint)
    return int(text)
