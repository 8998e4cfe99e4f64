"""The history store: bytes per value, CPU per tick, time to read, size of 90 days, and what a kill -9 costs."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpulse.model.catalog import GPU_METRICS, Gpu, Host, Process
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryReader, HistoryWriter
from gpulse.store.history.blocks import Rows, blocks_where, joined, read_block, write_block
from gpulse.store.history.database import open_to_write
from gpulse.store.history.sealing import TIERS

if TYPE_CHECKING:
    from gpulse.model.metric import Value

START = 1_700_000_000.0 // 21_600 * 21_600
CHARTED = ("utilization", "sm_active", "memory_used", "power_draw", "temperature", "pcie_rx")
_HALF_DAY = 43_200
_ACTIVE = ("sm_active", "sm_occupancy", "tensor_active", "dram_active", "fp16_active", "fp32_active", "integer_active")
_RECORDED = {key for key, metric in GPU_METRICS.items() if metric.cost != "static" and key != "memory_total"}
_LINKS = ("pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx")


class Board:
    """A GPU that trains for minutes, waits for minutes, and wanders; 25 metrics, of which about a third change each second."""

    def __init__(self, index: int) -> None:
        self.index = index
        self._random = random.Random(index)
        self._busy, self._left = False, 0
        self._values: dict[str, Value] = {
            "index": index, "uuid": f"GPU-{index:08d}", "name": "H100", "memory_total": 80 << 30, "memory_reserved": 600 << 20,
            "power_limit": 700.0, "clock_memory": 2619, "energy": 1e6, "temperature": 40, "memory_temperature": 45,
            "fan_speed": 30, "memory_used": 0, "memory_free": 80 << 30, "memory_utilization": 0, "utilization": 0,
        }  # fmt: skip
        self._heat = 40.0

    def sample(self) -> Gpu:
        """Return the next second."""
        chance, values = self._random, self._values
        self._left -= 1
        if self._left < 0:
            self._busy, self._left = not self._busy, chance.randint(120, 1800)
            used = chance.randint(10_000, 70_000) * (2 << 20) // 2 if self._busy else 0
            values |= {"memory_used": used, "memory_free": (80 << 30) - used}
        level = 90.0 if self._busy else 0.0
        if self._busy and chance.random() < 0.5:
            values["utilization"] = min(100, 95 + chance.randint(0, 8))
            values["memory_utilization"] = chance.randint(30, 45)
        elif not self._busy:
            values["utilization"] = values["memory_utilization"] = 0
        for at, key in enumerate(_ACTIVE):
            values[key] = round(max(0.0, level / (at + 1) + chance.gauss(0, 2)), 1) if self._busy else 0.0
        for at, key in enumerate(_LINKS):
            values[key] = round(chance.gauss(2e9 * (at + 1), 3e8)) if self._busy else 0
        power = round(chance.gauss(620, 15), 3) if self._busy else round(chance.gauss(70, 0.4), 3)
        self._heat += ((65 if self._busy else 35) - self._heat) / 60 + chance.gauss(0, 0.05)
        values["power_draw"] = power
        values["temperature"], values["memory_temperature"] = round(self._heat), round(self._heat + 8)
        clock = 1980 - 15 * chance.randint(0, 3) if self._busy else 345
        values["clock_sm"] = values["clock_graphics"] = clock
        values["energy"] = float(values["energy"]) + power  # type: ignore[arg-type]
        return Gpu(dict(values), processes=self._processes())

    def _processes(self) -> tuple[Process, ...]:
        if not self._busy:
            return ()
        values: dict[str, Value] = {"pid": 4000 + self.index, "name": "python", "user": "ada", "sm_utilization": 90}
        return (Process(values | {"memory_used": self._values["memory_used"]}),)


def boards(seconds: int) -> Iterator[Snapshot]:
    """Yield a machine of eight, a second apart."""
    machine = [Board(index) for index in range(8)]
    for at in range(seconds):
        yield Snapshot(START + at, tuple(board.sample() for board in machine), Host({}))


def demo(seconds: int) -> Iterator[Snapshot]:
    """Yield the simulated source's machine, all that `top` asks for."""
    from gpulse.model.select import EVERYTHING
    from gpulse.sampling.clock import ManualClock
    from gpulse.sampling.sampler import Sampler
    from gpulse.sources.simulated.source import SimulatedSource

    clock = ManualClock(START)
    sampler = Sampler(SimulatedSource(clock=clock.monotonic), EVERYTHING, clock=clock).open()
    for _ in range(seconds):
        yield sampler.read()
        clock.sleep(1.0)
    sampler.close()


class TickClock:
    """A clock that a writer believes to move a second a tick, so that it commits as it would in real time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Return the seconds so far."""
        return self.now

    def asleep(self) -> float:
        """Return 0: never suspended."""
        return 0.0


def fill(path: str, snapshots: Iterator[Snapshot]) -> tuple[float, float, int]:
    """Write snapshots; return CPU seconds, the longest one took, and how many values there were."""
    clock = TickClock()
    writer = HistoryWriter(path, clock=clock)
    spent = worst = 0.0
    values = 0
    for snapshot in snapshots:
        begin = time.process_time()
        writer.add(snapshot)
        took = time.process_time() - begin
        spent, worst = spent + took, max(worst, took)
        values += sum(
            key in _RECORDED and isinstance(value, (int, float)) for gpu in snapshot.gpus for key, value in gpu.items()
        )
        clock.now += 1.0
    writer.close()
    return spent, worst, values


def read_ms(path: str, hours: float, rounds: int = 7) -> float:
    """Return the median milliseconds of a chart of six metrics of all GPUs, 600 points, from a reader's second question on."""
    with HistoryReader(path) as reader:
        span = reader.span()
        assert span is not None
        return median_ms(lambda: reader.series(CHARTED, None, span[1] - hours * 3600, span[1]), rounds)


def median_ms(ask: Callable[[], object], rounds: int) -> float:
    """Return the median milliseconds of a question."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        assert ask()
        times.append(1000 * (time.perf_counter() - begin))
    return sorted(times)[rounds // 2]


def stretch(path: str) -> None:
    """Repeat twelve hours back in time until each tier is as long as it is kept, in blocks as large as they become."""
    connection = open_to_write(path, 0o600)
    for tier in TIERS:
        found = blocks_where(connection, "tier = ? ORDER BY start", (tier.seconds,))
        pieces = [rows for block in found if (rows := read_block(connection, block)) is not None]
        whole = max(1, max(tier.spans, default=0) // _HALF_DAY)  # multiples of twelve hours in the largest block
        connection.execute("BEGIN")
        for again in range(1, tier.keep // _HALF_DAY, whole):
            if tier.seconds == 0:
                for piece in pieces:
                    write_block(connection, 0, 0, moved(piece, again), 600)
            elif whole > 1:
                day = [moved(piece, again + at) for at in reversed(range(whole)) for piece in pieces]
                write_block(connection, tier.seconds, len(tier.spans), joined(day), whole * _HALF_DAY)
            else:
                groups = len(pieces) * tier.spans[-1] // _HALF_DAY or 1
                for at in range(0, len(pieces), groups):
                    part = joined([moved(piece, again) for piece in pieces[at : at + groups]])
                    write_block(connection, tier.seconds, len(tier.spans), part, tier.spans[-1])
        connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def moved(rows: Rows, times: int) -> Rows:
    """Return rows a number of half days earlier."""
    return Rows([time - times * _HALF_DAY for time in rows.times], rows.seconds, rows.parts)


_CHILD = """
import sys, time
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryWriter
writer = HistoryWriter(sys.argv[1])
first = int(sys.argv[2])
for at in range(first, first + 100_000):
    writer.add(Snapshot(1_700_000_000.0 + 5 * at, (Gpu({"uuid": "GPU-1", "index": 0, "utilization": at % 100, "energy": at}),)))
    sys.stdout.write(f"{at}\\n")
    sys.stdout.flush()
    time.sleep(0.002)
"""


def kills(times: int, folder: str, chance: random.Random) -> tuple[int, float]:
    """Kill a writer at random moments; return how often the file was whole afterwards, and the most seconds of ticks missing."""
    path = os.path.join(folder, "killed.db")
    first, whole, worst = 0, 0, 0.0
    for _ in range(times):
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", _CHILD, path, str(first)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        assert child.stdout is not None
        seen: list[tuple[int, float]] = [(int(child.stdout.readline()), time.monotonic())]
        end = time.monotonic() + chance.uniform(0.0, 1.6)
        while time.monotonic() < end:
            seen.append((int(child.stdout.readline()), time.monotonic()))
        os.kill(child.pid, signal.SIGKILL)
        killed = time.monotonic()
        child.communicate()
        connection = sqlite3.connect(path)
        whole += connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
        with HistoryReader(path) as reader:
            span = reader.span()
        last = -1 if span is None else round((span[1] - 1_700_000_000.0) / 5)
        worst = max(worst, max((killed - when for at, when in seen if at > last), default=0.0))
        first = seen[-1][0] + 1000
    return whole, worst


def table(hours: int = 12, deaths: int = 100) -> list[str]:
    """Return the Markdown lines of one run."""
    out = [
        "| history: 8 GPUs, a second apart | 25 metrics each, a third of them changing | the demo, everything it has |"
    ]
    out.append("| --- | --- | --- |")
    columns: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, source, length in (("boards", boards, hours), ("demo", demo, max(1, hours // 6))):
            path = str(Path(folder) / f"{name}.db")
            spent, worst, values = fill(path, source(length * 3600))
            size = os.path.getsize(path)
            columns.append([
                f"{length} h, {values / length / 3600:.0f} values per tick",
                f"{size / values:.2f}", f"{1000 * spent / length / 3600:.3f} ({100 * spent / length / 3600:.3f} %)",
                f"{1000 * worst:.0f}", f"{read_ms(path, length):.0f}", f"{read_ms(path, 1):.0f}", f"{read_ms(path, 1 / 6):.0f}",
            ])  # fmt: skip
        path = str(Path(folder) / "boards.db")
        stretch(path)
        columns[0] += [
            f"{os.path.getsize(path) / 1e6:.0f}",
            f"{read_ms(path, 24 * 7):.0f}",
            f"{read_ms(path, 24 * 90, 3):.0f}",
        ]
        columns[1] += ["", "", ""]
        whole, missing = kills(deaths, folder, random.Random(5))
    titles = (
        "recorded", "bytes per value, including coarser tiers",
        "CPU ms per tick, including sealing (% of a core)", "longest tick, CPU ms",
        "read everything, 48 series, 600 points, ms", "read 1 h, ms", "read 10 min, ms",
        "90 days, MB", "read 7 days, ms", "read 90 days, ms",
    )  # fmt: skip
    out += [f"| {title} | {one} | {other} |" for title, one, other in zip(titles, *columns, strict=True)]
    out.append(
        f"\nkill -9 of the writer, {deaths} times: {whole} files whole, at most {missing:.2f} s of ticks missing."
    )
    return out


def main() -> int:
    """Print the table; hours to record and writers to kill may follow."""
    print("\n".join(table(*map(int, sys.argv[1:3]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
