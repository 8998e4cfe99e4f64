"""Random damage to histories and recordings: what is shown afterwards must be right, and only what was hit may be missing.

python -m bench.corruption                 # 1,000 of a history and 1,000 of each kind of recording
python -m bench.corruption --rounds 100 --seed 7

Each round takes a sound file and flips one bit, overwrites up to 512 bytes with zeros or noise, or cuts the end off. The
history is then read as the surfaces read it, written to for another hour, and read again.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from gpulse.errors import GpulseError
from gpulse.model.catalog import Gpu, Host, Process
from gpulse.model.event import Event
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryError, HistoryReader, HistoryWriter

WINDOW, HOURS, STEP = 600, 3, 10
START = 1_700_000_000.0 // 21_600 * 21_600
END = START + HOURS * 3600
GPUS = {"GPU-a": 0, "GPU-b": 1}
WINDOWS = HOURS * 6
LINES = 300
KINDS = ("bit", "zeros", "noise", "cut")


class Turned:
    """A clock that moves only when told."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def utilization(moment: float, gpu: int) -> float:
    """Return the value of a GPU: the same for ten minutes, so that it is known at every resolution."""
    return (moment - START) // WINDOW % 50 + 50 * gpu


def snapshot(moment: float) -> Snapshot:
    """Return the sample of a moment."""
    process = Process(
        {"pid": 4242, "user": "ada", "name": "python3", "memory_used": 2.0**30, "running_time": moment - START + 60}
    )
    gpus = [
        Gpu({"uuid": uuid, "index": at, "utilization": utilization(moment, at), "name": "H100"}, processes=(process,))
        for uuid, at in GPUS.items()
    ]
    return Snapshot(moment, tuple(gpus), Host({"cpu_percent": 25.0}))


def write(path: str, start: float, end: float, step: int = STEP) -> tuple[str, ...]:
    """Write samples from one time to another, some seconds apart; return what the writer says is wrong."""
    clock = Turned()
    with HistoryWriter(path, clock=clock) as writer:
        moment = start
        while moment < end:
            clock.now = moment - start
            writer.add(
                snapshot(moment),
                [Event(moment, "xid", ("0",), uuids=("GPU-a",), value=31.0)] if moment % 3600 == 0 else [],
            )
            moment += step
        return tuple(problem.message for problem in writer.problems)


def damaged(data: bytes, chance: random.Random, kind: str) -> bytes:
    """Return bytes with damage of a kind at a random place."""
    at = chance.randrange(len(data))
    if kind == "cut":
        return data[:at]
    changed = bytearray(data)
    if kind == "bit":
        changed[at] ^= 1 << chance.randrange(8)
    else:
        size = min(chance.randint(1, 512), len(data) - at)
        changed[at : at + size] = bytes(size) if kind == "zeros" else chance.randbytes(size)
    return bytes(changed)


class Seen:
    """What one reading of a history showed: ten-minute windows by GPU with values, what was wrong, and whether damage was said."""

    def __init__(self) -> None:
        self.windows: set[tuple[str, int]] = set()
        self.wrong: list[str] = []
        self.told = False
        self.unreadable = ""


def read(path: str, end: float = END) -> Seen:
    """Read a history as the surfaces do, and compare with what was written."""
    seen = Seen()
    try:
        with HistoryReader(path) as reader:
            for points in (100_000, int((end - START) // WINDOW)):
                for series in reader.series(["utilization"], None, START, end, points):
                    _compare(seen, series.uuid, series.times, (series.min, series.mean, series.max))
            for series in reader.host_series(["cpu_percent"], START, end, 50):
                seen.wrong += [f"host {value}" for value in series.mean if value == value and value != 25.0]
            for gpu in reader.gpus(START, end):
                if GPUS.get(gpu.uuid) != gpu.index and gpu.index is not None:
                    seen.wrong.append(f"GPU {gpu.index} {gpu.uuid}")
            _compare_snapshots(seen, reader, end)
            events = reader.events(START, end + 1)
            seen.told = any(event.kind == "history-damaged" for event in events)
            seen.wrong += [f"event {event!r}" for event in events if not _is_true(event)]
            hours = sum(use.gpu_hours for use in reader.usage(START, end, "user") if use.owner == "ada")
            if hours > (end - START) / 3600 * len(GPUS) + 0.2:
                seen.wrong.append(f"{hours} GPU hours")
    except HistoryError as error:
        seen.unreadable = str(error)
    return seen


def _compare(seen: Seen, uuid: str, times: list[float], lists: tuple[list[float], ...]) -> None:
    for values in lists:
        for moment, value in zip(times, values, strict=True):
            if value == value:
                if uuid not in GPUS or not moment >= START or value != utilization(moment, GPUS[uuid]):
                    seen.wrong.append(f"{uuid} {moment - START}: {value}")
                seen.windows.add((uuid, int((moment - START) // WINDOW)))


def _compare_snapshots(seen: Seen, reader: HistoryReader, end: float) -> None:
    for found in reader.snapshots(START, end):
        for gpu in found.gpus:
            value = gpu.utilization
            if value is not None and value != utilization(found.time, GPUS.get(gpu.uuid or "", 9)):
                seen.wrong.append(f"snapshot {found.time - START}: {gpu!r}")


def _is_true(event: Event) -> bool:
    if event.kind == "xid":
        return event.time % 3600 == 0 and event.value == 31.0
    return event.kind in ("history-damaged", "start", "stop", "boot", "dropped")


class Tally:
    """The result of many rounds."""

    def __init__(self) -> None:
        self.rounds: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.lost: Counter[str] = Counter()
        self.untold: Counter[str] = Counter()
        self.unreadable: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    def add(self, kind: str, number: int, seen: Seen, whole: int) -> None:
        """Count a round; `whole` is how many windows the sound file shows."""
        self.rounds[kind] += 1
        self.wrong += [f"{kind} {number}: {text}" for text in seen.wrong[:3]]
        missing = whole - len(seen.windows)
        self.lost[kind] += missing
        self.most[kind] = max(self.most[kind], missing)
        self.unreadable[kind] += bool(seen.unreadable)
        self.untold[kind] += bool(missing > 0 and not seen.told and not seen.unreadable)

    def lines(self, whole: int) -> Iterator[str]:
        """Yield the rows of a table."""
        yield "| damage | rounds | wrong values | windows lost per round, mean (most) | not readable at all | lost without an event |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for kind, count in self.rounds.items():
            wrong = sum(text.startswith(kind) for text in self.wrong)
            mean = self.lost[kind] / count
            cells = (wrong, f"{mean:.2f} ({self.most[kind]}) of {whole}", self.unreadable[kind], self.untold[kind])
            yield f"| {kind} | {count} | {' | '.join(map(str, cells))} |"


def history_rounds(folder: Path, rounds: int, seed: int, again: int = 1, step: int = STEP) -> tuple[Tally, Tally]:
    """Damage a history a number of times; return what readers saw, and what they saw after every `again`th was written to."""
    sound = folder / "sound.db"
    write(str(sound), START, END, step)
    data = sound.read_bytes()
    first, second = Tally(), Tally()
    whole = len(read(str(sound)).windows)
    for number in range(rounds):
        chance = random.Random(seed * 1_000_003 + number)
        kind = KINDS[number % len(KINDS)]
        place = folder / "round"
        place.mkdir()
        path = place / "h.db"
        path.write_bytes(damaged(data, chance, kind))
        first.add(kind, number, read(str(path)), whole)
        if number % again == 0:
            try:
                write(str(path), END, END + 3600, step)
            except GpulseError as error:
                second.unreadable[f"{kind}: {error}"] += 1
            second.add(kind, number, read(str(path), END + 3600), whole + 6 * len(GPUS))
        shutil.rmtree(place)
    return first, second


def recording_rounds(
    folder: Path, name: str, rounds: int, seed: int, lines: int = LINES
) -> tuple[int, int, int, list[str]]:
    """Damage a recording of some lines a number of times.

    Return how many lines were lost in all and at most, how often nothing was readable, and what was wrong.
    """
    from gpulse.store.recorder import RecordingFile
    from gpulse.store.recording import Frames, read_recording

    sound = folder / name
    file = RecordingFile(str(sound))
    samples = [snapshot(START + at) for at in range(0, lines * STEP, STEP)]
    for sample in samples:
        file.write(sample)
    file.close()
    truth = {sample.time: sample for sample in read_recording(str(sound))}
    data, path = sound.read_bytes(), folder / f"round-{name}"
    lost, most, unreadable = 0, 0, 0
    wrong: list[str] = []
    for number in range(rounds):
        kind = KINDS[number % len(KINDS)]
        path.write_bytes(damaged(data, random.Random(seed * 1_000_003 + number), kind))
        try:
            found = list(read_recording(str(path)))
            frames = Frames(str(path))
            frames.find(float("inf"))
            again = [frames[place] for place in range(len(frames) - 1, -1, -1)]
            frames.close()
        except GpulseError:
            unreadable += 1
            continue
        wrong += [f"{name} {kind} {number}: {one!r}" for one in found if truth.get(one.time) != one]
        if again[::-1] != found:
            wrong.append(f"{name} {kind} {number}: read backwards {len(again)}, forwards {len(found)}")
        if kind != "cut":
            lost, most = lost + lines - len(found), max(most, lines - len(found))
    return lost, most, unreadable, wrong


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recordings", action="store_true", help="recordings only")
    chosen = parser.parse_args()
    failed = False
    with TemporaryDirectory() as place:
        for name in ("run.ndjson", "run.ndjson.gz"):
            lost, most, unreadable, wrong = recording_rounds(Path(place), name, chosen.rounds, chosen.seed)
            print(
                f"{name}, {chosen.rounds} rounds: {len(wrong)} wrong; of {LINES} lines, {lost / chosen.rounds / 0.75:.2f} "
                f"lost per round that was not a cut, at most {most}; {unreadable} not readable at all",
                *wrong[:20],
                sep="\n",
                flush=True,
            )
            failed |= bool(wrong)
        if chosen.recordings:
            return int(failed)
        first, second = history_rounds(Path(place), chosen.rounds, chosen.seed)
    print("Read:\n" + "\n".join(first.lines(WINDOWS * len(GPUS))))
    print("Written for another hour and read:\n" + "\n".join(second.lines((WINDOWS + 6) * len(GPUS))))
    print("\n".join([*first.wrong[:20], *second.wrong[:20]]))
    return 1 if failed or first.wrong or second.wrong else 0


if __name__ == "__main__":
    os.environ.pop("GPULSE_HISTORY", None)
    sys.exit(main())
