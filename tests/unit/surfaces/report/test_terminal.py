"""The report laid out for terminals: golden pages, and that nothing is wider than the screen or lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from gpulse.model.catalog import Gpu
from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.present.text import width
from gpulse.present.theme import Theme
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.surfaces.report.comparison import comparison_document, run_to_plain
from gpulse.surfaces.report.document import Document, Figure, Lines, TableBlock, instance_table
from gpulse.surfaces.report.pages import run_document
from gpulse.surfaces.report.run import Run
from gpulse.surfaces.report.terminal import to_terminal
from tests.golden import check_golden
from tests.unit.surfaces.report.runs import GIB, gpu, process, run_of, sample
from tests.unit.surfaces.report.test_documents import hostile_run

if TYPE_CHECKING:
    from gpulse.model.metric import Value

_SECONDS = 300
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def demo(start: float) -> Iterator[Snapshot]:
    """The simulated machine for five minutes, the same at every run."""
    clock = ManualClock(1_794_733_267.0)
    sampler = Sampler(SimulatedSource(clock=clock.monotonic), EVERYTHING, clock=clock).open()
    clock.sleep(start)
    for _ in range(_SECONDS // 2):
        clock.sleep(2.0)
        yield sampler.read()


def instance(index: int, profile: str, *owners: str, **values: float) -> Gpu:
    processes = tuple(process(100 * index + at, user=user) for at, user in enumerate(owners))
    named: dict[str, Value] = {"index": index, "uuid": f"MIG-{index}", "name": f"MIG {profile}"}
    return Gpu(named | {"memory_total": 40.0 * GIB} | values, processes=processes)


def mig_run(**activity: float) -> Run:
    """A GPU with three instances, of which one is free and one appears after a minute."""

    def at(second: int) -> Snapshot:
        parts = [
            instance(0, "4g.40gb", "ada", "ada", memory_used=(10.0 + second / 6) * GIB, **activity),
            instance(1, "3g.40gb", memory_used=0.1 * GIB, **dict.fromkeys(activity, 0.0)),
        ]
        if second >= 60:
            parts.append(instance(2, "1g.10gb", "grace", memory_used=8.0 * GIB, **activity))
        whole = {key: value for key, value in gpu(0).items() if key not in ("utilization", "sm_active")}
        return sample(second, Gpu(whole, instances=tuple(parts)))

    return run_of([at(second) for second in range(0, 180, 2)], "mig.ndjson")


@pytest.fixture(scope="module")
def run() -> Run:
    return run_of(demo(30.0), "train.ndjson")


@pytest.fixture(scope="module")
def other() -> Run:
    return run_of([*demo(400.0)][:90], "later.ndjson")


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_one_run(run: Run, columns: int) -> None:
    check_golden(f"report/run-{columns}", to_terminal(run_document(run), Theme(), columns).splitlines())


@pytest.mark.parametrize("name", ["dark", "light"])
def test_one_run_in_color(run: Run, name: str) -> None:
    check_golden(f"report/run-{name}-120", to_terminal(run_document(run), Theme(256, name=name), 120).splitlines())


def test_one_run_in_ascii(run: Run) -> None:
    text = to_terminal(run_document(run), Theme(unicode=False), 80)
    assert text.isascii()
    assert "\\x" not in text
    assert "\\u" not in text
    check_golden("report/run-80-ascii", text.splitlines())


@pytest.mark.parametrize("columns", [80, 120])
def test_two_runs(run: Run, other: Run, columns: int) -> None:
    text = to_terminal(comparison_document(run, other), Theme(), columns)
    check_golden(f"report/compare-{columns}", text.splitlines())


@pytest.mark.parametrize("columns", [80, 120])
def test_instances(columns: int) -> None:
    check_golden(f"report/mig-{columns}", to_terminal(run_document(mig_run()), Theme(), columns).splitlines())


def test_instances_have_their_own_memory_and_processes() -> None:
    run = mig_run(sm_active=50.0)
    table = instance_table(run)
    assert [row[0] for row in table.rows] == ["0:0", "0:1", "0:2"]
    assert [str(row[3]) for row in table.rows] == ["39.7 GiB", "102 MiB", "8.0 GiB"]
    assert "".join(table.rows[0][-1]) == "ada python (2 processes)"
    assert "SM active" in table.header
    plain = run_to_plain(run)["instances"]
    assert [one["programs"] for one in plain][1:] == [[], [{"user": "grace", "name": "python", "processes": 1}]]
    assert plain[0]["stats"]["sm_active"]["mean"] == pytest.approx(50.0)


def test_what_an_instance_cannot_measure_is_said() -> None:
    table = instance_table(mig_run())
    assert "SM active" not in table.header
    assert "Not measured per instance by this driver and GPU: " in table.caption
    assert "SM active" in table.caption.partition("Not measured")[2]


@pytest.mark.parametrize("columns", [40, 57, 80, 101, 160, 300])
@pytest.mark.parametrize("theme", [Theme(), Theme(256), Theme(unicode=False)], ids=["plain", "colors", "ascii"])
def test_no_line_is_wider_than_the_screen(run: Run, other: Run, columns: int, theme: Theme) -> None:
    for document in (run_document(run), comparison_document(run, other), run_document(hostile_run())):
        text = _ESCAPES.sub("", to_terminal(document, theme, columns))
        assert "\x1b" not in text
        assert max(width(line) for line in text.splitlines()) <= columns


def test_every_cell_of_a_table_is_there_at_every_width() -> None:
    header = [f"Column {at}" for at in range(12)]
    rows = [[f"{row}-{at}-value" for at in range(12)] for row in range(3)]
    block = TableBlock("Table", header, rows, wide=("Column 10", "Column 11"))
    for columns in (40, 60, 80, 133, 200):
        text = to_terminal(Document("t", "s", [block]), Theme(), columns)
        missing = [cell for row in rows for cell in row if cell not in text]
        assert not missing


def test_a_bar_is_as_long_as_its_share() -> None:
    rows: list[list[str]] = [["0", Figure("50 %", 0.5, "busy")], ["1", Figure("100 %", 1.0, "busy")], ["2", "–"]]
    text = to_terminal(Document("t", "s", [TableBlock("T", ("GPU", "Busy"), rows)]), Theme(), 80)
    assert [line.count("█") for line in text.splitlines()[-3:]] == [3, 6, 0]


def test_sentences_wrap_under_their_mark() -> None:
    block = Lines("Found", [("GPU 4: ", "a sentence that goes on for more than one line of forty cells")])
    lines = to_terminal(Document("t", "s", [block]), Theme(), 40).splitlines()[-2:]
    assert lines[0].startswith("• GPU 4: a sentence")
    assert lines[1].startswith("  ")
