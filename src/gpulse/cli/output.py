"""Output of verbs: lines that log rotation may redirect and signals end, tables as CSV, and what electricity costs."""

from __future__ import annotations

import os
import sys

from ..errors import UsageError
from .options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType

    from ..model.serving import Tariff
    from ..model.snapshot import Snapshot
    from ..store.lines import LineFile
    from .options import Arguments


class Output:
    """Writes lines immediately. With a file, SIGHUP reopens its path before the next line; `private` if it holds processes."""

    def __init__(self, path: str | None, *, private: bool) -> None:
        self._file: LineFile | None = None
        self._moved = False
        if path:
            import signal

            from ..store.lines import LineFile

            self._file = LineFile(path, private=private)
            signal.signal(signal.SIGHUP, self._rotate)

    def write(self, lines: list[str]) -> None:
        """Write lines and flush them, so that a crash loses none."""
        if self._file is None:
            if lines:
                sys.stdout.write("\n".join(lines) + "\n")
                sys.stdout.flush()
            return
        if self._moved:
            self._moved = False
            self._file.reopen()
        for line in lines:
            self._file.write(line)

    def close(self) -> None:
        """Close the file, if any."""
        if self._file is not None:
            self._file.close()

    def _rotate(self, number: int, frame: FrameType | None) -> None:
        self._moved = True


class Ending:
    """Stops a loop on SIGINT, SIGTERM or SIGHUP: immediately while it waits, after the current line while it writes."""

    def __init__(self) -> None:
        self._writing = True
        self._told = False

    def __enter__(self) -> Ending:
        import signal

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup and in background jobs of scripts
                signal.signal(number, self._tell)
        return self

    def __exit__(self, *failure: object) -> None:
        self._writing = True  # cleanup is short and must not be interrupted by a second Ctrl-C

    def until_told(self, samples: Iterator[Snapshot]) -> Iterator[Snapshot]:
        """Yield samples until a signal arrives."""
        while not self._told:
            try:
                self._writing = False
                snapshot = next(samples, None)
                self._writing = True
            except KeyboardInterrupt:
                return
            if snapshot is None:
                return
            yield snapshot

    def _tell(self, number: int, frame: FrameType | None) -> None:
        self._told = True
        if not self._writing:
            raise KeyboardInterrupt


class StatusLine:
    """A line on standard error, redrawn at most every `every` seconds and first `after` some; none if not `live`.

    It is erased when the object is forgotten, if not before.
    """

    def __init__(self, live: bool, every: float, after: float = 0.0) -> None:
        from time import monotonic

        self._clock = monotonic
        self._every = every
        self._due = monotonic() + after if live else float("inf")
        self._drawn = False

    def show(self, text: Callable[[], str]) -> None:
        """Draw a text, which is asked for only if it is time to."""
        if (now := self._clock()) >= self._due:
            self._due, self._drawn = now + self._every, True
            sys.stderr.write(f"\r{text()}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        """Erase the line."""
        if self._drawn:
            self._drawn = False
            sys.stderr.write("\r\x1b[K")

    __del__ = clear


def export_samples(
    name: str,
    samples: Callable[[list[int]], Iterator[Snapshot]],
    output: str | None,
    metrics: Sequence[str] = (),
    private: bool = True,
) -> int:
    """Write samples as CSV to a file or to standard output; say which damaged lines of `name` were left out.

    `samples` is called for each pass over them, with a list to which it adds the numbers of damaged lines.
    """
    from ..surfaces.history.exports import RecordedTable

    damaged: list[int] = []

    def read() -> Iterator[Snapshot]:
        damaged.clear()
        return samples(damaged)

    table = RecordedTable(name, read, metrics)
    write_lines(table.csv_lines(), output, private)
    say_damaged(name, damaged)
    return 0


def write_lines(lines: Iterable[str], path: str | None, private: bool = True) -> None:
    """Write lines to a file, which only its owner may read if `private`, or to standard output."""
    texts = (f"{line}\n" for line in lines)
    if not path:
        sys.stdout.writelines(texts)
        return
    from ..store.lines import OPEN, PRIVATE, save

    save(path, texts, PRIVATE if private else OPEN)


def say(text: str, head: str = "gpulse: ") -> None:
    """Write a message to standard error; a closed one is no error."""
    try:
        sys.stderr.write(f"{head}{text}\n")
        sys.stderr.flush()
    except OSError:
        pass


def write_json(plain: object, indent: int = 2) -> int:
    """Print plain data as JSON; return the exit code of a verb that has answered."""
    import json

    sys.stdout.write(json.dumps(plain, indent=indent, allow_nan=False) + "\n")
    return 0


def say_damaged(path: str, damaged: list[int]) -> None:
    """Say on standard error which lines of a recording were left out."""
    if damaged:
        some = ", ".join(map(str, damaged[:5])) + (", …" if len(damaged) > 5 else "")
        lines = "1 damaged line was" if len(damaged) == 1 else f"{len(damaged)} damaged lines were"
        sys.stderr.write(f"gpulse: {lines} left out of {path} (line {some}).\n")


_MOST = 1e12


def _amount(option: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            amount = float(text)
        except ValueError:
            amount = -1.0
        if not 0 <= amount <= _MOST:
            raise UsageError(f"{option}: {text!r} is not a price;", f"write it as {option} 0.30.")
        return amount

    return parse


COST = (
    Option("--price", value="PRICE", parse=_amount("--price"),
           help="Price of one kWh, to show the cost of energy (default: cost.price of the settings)"),
    Option("--gpu-price", value="PRICE", parse=_amount("--gpu-price"),
           help="Price of one GPU hour, to show the cost of GPU time (default: cost.gpu_price of the settings)"),
    Option("--carbon", value="GRAMS", parse=_amount("--carbon"),
           help="Grams of CO2e per kWh, to show emissions (default: cost.carbon of the settings)"),
)  # fmt: skip


def tariff_of(arguments: Arguments) -> Tariff:
    """Return the prices in force; raise ConfigError if the settings are wrong."""
    from ..settings.effective import tariff_in_force

    options = ((key, getattr(arguments, key)) for key in ("price", "gpu_price", "carbon"))
    return tariff_in_force(os.environ, {key: value for key, value in options if value is not None})
