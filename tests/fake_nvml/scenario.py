"""Scenarios: load one, change it, and get the environment in which NVML clients see it."""

from __future__ import annotations

import mmap
import os
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .build import library

SCENARIOS = Path(__file__).parent / "scenarios"
Setting = str | int | float | bool


@dataclass
class _Section:
    header: str
    lines: list[str] = field(default_factory=list)

    def set(self, key: str, value: Setting) -> None:
        self.lines.append(f"{key} = {_text(value)}")

    def get(self, key: str) -> str | None:
        """The last value given, as it is written in the file."""
        found = None
        for line in self.lines:
            name, equals, value = line.partition("=")
            if equals and name.strip() == key:
                found = value.strip()
        return found


class Scenario:
    """A scripted machine. Every method returns the scenario, so that calls chain.

    A keyword's ``__`` stands for the dot of a key: ``gpu(3, power__limit="300 W")``.
    """

    def __init__(self) -> None:
        self._sections: list[_Section] = []

    @classmethod
    def load(cls, name: str | Path) -> Scenario:
        """A scenario of this folder by name, or any file by path."""
        path = Path(name)
        if not path.suffix:
            path = SCENARIOS / f"{name}.ini"
        return cls.parse(path.read_text())

    @classmethod
    def parse(cls, text: str) -> Scenario:
        """A scenario from text; ``include boards/h200`` takes in another file of the folder."""
        scenario = cls()
        for line in text.splitlines():
            bare = line.partition(" #")[0].strip()
            if bare.startswith("include "):
                included = SCENARIOS / f"{bare.removeprefix('include ').strip()}.ini"
                scenario._sections += cls.parse(included.read_text())._sections
            elif bare.startswith("[") and bare.endswith("]"):
                scenario._open(bare[1:-1].strip())
            elif bare and not bare.startswith("#"):
                if not scenario._sections:
                    raise ValueError(f"a key before any section: {bare}")
                scenario._sections[-1].lines.append(line.strip())
        return scenario

    @staticmethod
    def names() -> list[str]:
        return sorted(path.stem for path in SCENARIOS.glob("*.ini"))

    def driver(self, **values: Setting) -> Scenario:
        return self._add("driver", values)

    def gpu(self, which: int | slice | str | None = None, **values: Setting) -> Scenario:
        """Values of one GPU, of ``slice(0, 8)``, of ``"0-7"``, or (None) the defaults of all."""
        if isinstance(which, slice):
            which = f"{which.start or 0}-{which.stop - 1}"
        return self._add("gpu" if which is None else f"gpu {which}", values)

    def process(self, **values: Setting) -> Scenario:
        """gpu, pid, memory, type, sm, mem, enc, dec, age, instance, since (the file's ``from``), until."""
        return self._add("process", values)

    def instance(self, **values: Setting) -> Scenario:
        """A MIG instance: gpu, gi, ci, index, profile and any key of a GPU."""
        return self._add("instance", values)

    def fault(self, **values: Setting) -> Scenario:
        """function, gpu, code, hang, since (the file's ``from``), until, every, missing."""
        return self._add("fault", values)

    def lose(self, gpu: int, since: Setting = 0) -> Scenario:
        """The GPU falls off the bus: its handle stays, every query says GPU_IS_LOST."""
        return self.fault(function="*", gpu=gpu, code="GPU_IS_LOST", since=since)

    def xid(self, **values: Setting) -> Scenario:
        """gpu, code, at, type, instance."""
        return self._add("xid", values)

    def latency(self, **values: Setting) -> Scenario:
        """profile, or a function's microseconds: ``500``, ``"wait 500"``, ``"busy 100 wait 400"``."""
        return self._add("latency", values)

    def missing(self, *functions: str) -> Scenario:
        """These symbols, names or globs, are not in the library."""
        for function in functions:
            self.fault(function=function, missing=True)
        return self

    def absent(self) -> frozenset[str]:
        """The functions whose symbols the library must not have."""
        faults = [section for section in self._sections if section.header == "fault"]
        return frozenset(fault.get("function") or "" for fault in faults if fault.get("missing") == "yes") - {""}

    def text(self) -> str:
        return "\n".join("\n".join([f"[{section.header}]", *section.lines, ""]) for section in self._sections)

    def write(self, folder: Path) -> dict[str, str]:
        """Writes the scenario there and returns the whole environment for a child process.

        The child's calls are counted in ``folder/calls``: see `calls`.
        """
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "scenario.ini"
        file.write_text(self.text())
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FAKE_NVML_")}
        inherited = environment.get("LD_LIBRARY_PATH")
        found = [str(library(self.absent())), *([inherited] if inherited else [])]
        environment |= {
            "LD_LIBRARY_PATH": os.pathsep.join(found),
            "FAKE_NVML_SCENARIO": str(file),
            "FAKE_NVML_CALLS": str(folder / "calls"),
        }
        if profile := os.environ.get("FAKE_NVML_LATENCY"):
            environment["FAKE_NVML_LATENCY"] = profile
        return environment

    def _open(self, header: str) -> _Section:
        self._sections.append(_Section(header))
        return self._sections[-1]

    def _add(self, header: str, values: dict[str, Setting]) -> Scenario:
        section = self._open(header)
        for key, value in values.items():
            section.set("from" if key == "since" else key.replace("__", "."), value)
        return self


class Clock:
    """The scenario's own time, set by hand: waves, windows and events follow it at once.

    ``environment | clock.environment`` gives it to a child.
    """

    def __init__(self, folder: Path, seconds: float = 0.0) -> None:
        self._path = folder / "clock"
        self._path.write_bytes(struct.pack("d", seconds))
        self.environment = {"FAKE_NVML_CLOCK": str(self._path)}

    def set(self, seconds: float) -> None:
        with self._path.open("r+b") as file:  # in place: the child has the file mapped
            file.write(struct.pack("d", seconds))


class Work:
    """What a program gives a scripted GPU to do, by the monotonic clock: values that are ``follows(low, high)`` are high meanwhile.

    ``environment | work.environment`` gives it to a child. Work is given in the order of time; what overlaps is one stretch.
    """

    MOST = 100_000  # stretches

    def __init__(self, folder: Path) -> None:
        path = folder / "work"
        with path.open("wb") as file:
            file.truncate(8 * (1 + 4 * self.MOST))
        with path.open("r+b") as file:
            self._points = memoryview(mmap.mmap(file.fileno(), 0)).cast("d")
        self._points[0] = 0.0
        self.environment = {"FAKE_NVML_WORK": str(path)}

    @property
    def until(self) -> float:
        """When the last work ends."""
        count = int(self._points[0])
        return self._points[2 * count - 1] if count else 0.0

    def add(self, start: float, seconds: float) -> float:
        """Work from `start`, or from the end of what is still to do, for so many seconds; returns when it ends."""
        count, begin = int(self._points[0]), max(start, self.until)
        if not count or begin > self.until:
            self._points[1 + 2 * count], self._points[2 + 2 * count] = begin, 1.0
            self._points[3 + 2 * count], self._points[4 + 2 * count] = begin + seconds, 0.0
            self._points[0] = count + 2
        else:
            self._points[2 * count - 1] = begin + seconds
        return begin + seconds

    def seconds(self, stretches: Iterable[tuple[float, float]]) -> float:
        """How long the GPU worked in all of some stretches of time."""
        points = self._points[1 : 1 + 2 * int(self._points[0])].tolist()
        worked = [*zip(points[0::4], points[2::4], strict=True)]
        return sum(max(0.0, min(end, until) - max(start, begin)) for start, end in stretches for begin, until in worked)


def calls(folder: Path) -> Counter[str]:
    """How often each function was called by the children run with ``write(folder)``."""
    count: Counter[str] = Counter()
    file = folder / "calls"
    for line in file.read_text().splitlines() if file.exists() else []:
        name, number = line.split()
        count[name] += int(number)
    return count


def _text(value: Setting) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
