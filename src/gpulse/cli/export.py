"""Tables of samples as CSV or Parquet, for the verbs that export them."""

from __future__ import annotations

import sys

from ..errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..surfaces.history.exports import RecordedTable

TABLES = ("csv", "parquet")


def write_table(table: RecordedTable, form: str, output: str | None, private: bool = True) -> None:
    """Write a table to a file, or as CSV to standard output."""
    if form == "csv":
        write_lines([*table.csv_lines()], output, private)
        return
    if not output:
        raise UsageError("Parquet cannot be written to a terminal;", "name a file: -o run.parquet.")
    from ..store.lines import OPEN, PRIVATE, write_parquet

    write_parquet(table.columns(), output, PRIVATE if private else OPEN)


def write_lines(lines: Iterable[str], path: str | None, private: bool = True) -> None:
    """Write lines to a file, which only its owner may read if `private`, or to standard output."""
    if not path:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        return
    from ..store.lines import LineFile

    file = LineFile(path, private=private)
    try:
        file.write("\n".join(lines))
    finally:
        file.close()


def say_damaged(path: str, damaged: list[int]) -> None:
    """Say on standard error which lines of a recording were left out."""
    if damaged:
        some = ", ".join(map(str, damaged[:5])) + (", …" if len(damaged) > 5 else "")
        lines = "1 damaged line was" if len(damaged) == 1 else f"{len(damaged)} damaged lines were"
        sys.stderr.write(f"gpulse: {lines} left out of {path} (line {some}).\n")
