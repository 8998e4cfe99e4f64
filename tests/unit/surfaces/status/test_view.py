"""The glance: as it was last found right, never wider than the terminal, never an error."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import GPU_METRICS, Gpu, Process
from gpulse.model.process_filter import ProcessFilter
from gpulse.model.snapshot import Snapshot
from gpulse.present.text import width
from gpulse.present.theme import Theme
from gpulse.surfaces.status.view import glance
from tests.golden import check_golden
from tests.unit.snapshots import snapshots
from tests.unit.surfaces.status.pictures import demo, divided, empty, hostile, machine, single, troubled, zeros

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PLAIN, _ASCII = Theme(0), Theme(0, unicode=False)
_THEMES = st.builds(Theme, st.sampled_from([0, 16, 256]), st.booleans())


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pictures have a clock in a corner: let it be the same everywhere."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class TestGoldens:
    @pytest.mark.parametrize("columns", [20, 40, 60, 80, 120, 160, 250])
    def test_eight_gpus(self, columns: int) -> None:
        check_golden(f"status/demo-{columns}", glance(demo(), _PLAIN, columns))

    @pytest.mark.parametrize("colors", [16, 256])
    @pytest.mark.parametrize("columns", [80, 120])
    def test_eight_gpus_in_colour(self, columns: int, colors: int) -> None:
        check_golden(f"status/demo-{columns}-colors-{colors}", glance(demo(), Theme(colors), columns))

    @pytest.mark.parametrize("name", ["light", "neutral"])
    @pytest.mark.parametrize("columns", [80, 120, 200])
    def test_eight_gpus_in_other_themes(self, columns: int, name: str) -> None:
        lines = glance(demo(), Theme(256, name=name), columns, processes=True)
        check_golden(f"status/demo-{columns}-{name}", lines)

    @pytest.mark.parametrize("columns", [80, 120, 200])
    def test_many_divided_and_lost_gpus(self, columns: int) -> None:
        check_golden(f"status/64-{columns}", glance(machine(64), _PLAIN, columns))
        check_golden(f"status/64-{columns}-light", glance(machine(64), Theme(256, name="light"), columns))
        check_golden(f"status/mig-processes-{columns}", glance(divided(beside=2), _PLAIN, columns, processes=True))
        check_golden(f"status/lost-{columns}-light", glance(troubled(), Theme(256, name="light"), columns))

    @pytest.mark.parametrize("columns", [80, 120])
    def test_some_processes(self, columns: int) -> None:
        wanted = ProcessFilter("user:ada")
        check_golden(f"status/filter-{columns}", glance(demo(), _PLAIN, columns, processes=True, wanted=wanted))
        nobody = glance(demo(), _PLAIN, columns, processes=True, wanted=ProcessFilter("nobody"))
        assert nobody[-1] == "no process matches the filter"

    @pytest.mark.parametrize("columns", [40, 80, 120])
    def test_eight_gpus_in_ascii(self, columns: int) -> None:
        check_golden(f"status/demo-{columns}-ascii", glance(demo(), _ASCII, columns))

    @pytest.mark.parametrize("columns", [40, 80, 120, 250])
    def test_one_gpu_is_a_card(self, columns: int) -> None:
        check_golden(f"status/one-{columns}", glance(single(0), _PLAIN, columns))

    def test_a_hot_gpu_says_so_on_its_card(self) -> None:
        check_golden("status/hot-80", glance(single(6), _PLAIN, 80))
        check_golden("status/hot-80-colors-256", glance(single(6), Theme(256), 80))
        check_golden("status/hot-80-ascii", glance(single(6), _ASCII, 80))

    def test_two_gpus_are_two_cards(self) -> None:
        check_golden("status/two-80", glance(machine(2), _PLAIN, 80))

    @pytest.mark.parametrize("columns", [60, 80, 120])
    def test_a_divided_gpu_shows_its_instances(self, columns: int) -> None:
        check_golden(f"status/mig-card-{columns}", glance(divided(), _PLAIN, columns))
        check_golden(f"status/mig-lines-{columns}", glance(divided(beside=2), _PLAIN, columns))

    @pytest.mark.parametrize("columns", [40, 80, 120])
    def test_trouble_has_words(self, columns: int) -> None:
        check_golden(f"status/troubled-{columns}", glance(troubled(), _PLAIN, columns))

    def test_trouble_on_a_card_has_words(self) -> None:
        snapshot = troubled()
        few = Snapshot(snapshot.time, snapshot.gpus[1:3], snapshot.host, snapshot.driver)
        check_golden("status/troubled-cards-80", glance(few, _PLAIN, 80))

    def test_no_gpus_at_all(self) -> None:
        check_golden("status/empty-80", glance(empty(), _PLAIN, 80))

    def test_a_gpu_whose_every_number_is_zero(self) -> None:
        check_golden("status/zeros-80", glance(zeros(), _PLAIN, 80))

    def test_names_that_try_to_act_on_the_terminal(self) -> None:
        check_golden("status/hostile-120", glance(hostile(), _PLAIN, 120, processes=True))

    @pytest.mark.parametrize("columns", [60, 80, 160])
    def test_with_processes(self, columns: int) -> None:
        check_golden(f"status/processes-{columns}", glance(demo(), _PLAIN, columns, processes=True))

    def test_chosen_columns(self) -> None:
        chosen = ("utilization", "sm_active", "power_draw", "fan_speed", "throttle_reasons")
        check_golden("status/columns-80", glance(demo(), _PLAIN, 80, chosen=chosen))

    def test_an_index_among_chosen_columns_is_the_only_one(self) -> None:
        lines = glance(demo(), _PLAIN, 80, chosen=("utilization", "index", "name"))
        assert lines[1].split() == ["UTIL", "GPU", "NAME"]
        assert lines[2].split() == ["96", "%", "0", "NVIDIA", "H100", "80GB", "HBM3"]

    def test_the_header_and_names_can_be_left_out(self) -> None:
        lines = glance(demo(), _PLAIN, 120, header=False)
        assert "UTIL" in lines[0]
        assert not any("CUDA" in line for line in lines)
        assert glance(demo(), _PLAIN, 120, name_width=4)[2].startswith("0 H10…  █")
        assert glance(demo(), _PLAIN, 120, name_width=0)[2].startswith("0 █")

    def test_the_remedy_of_a_problem_is_never_cut(self) -> None:
        for columns in (20, 40, 80, 120):
            shown = " ".join(glance(troubled(), _PLAIN, columns))
            assert "process ids belong to the host. Start with --pid=host." in shown, columns


def _fits(lines: list[str], columns: int) -> None:
    for line in lines:
        shown = _ANSI.sub("", line)
        assert shown.isprintable(), repr(shown)
        assert width(shown) <= columns, (width(shown), shown)


@pytest.mark.parametrize("count", [0, 1, 2, 8, 16, 64])
def test_no_line_is_wider_than_the_terminal_at_any_width(count: int) -> None:
    snapshot = machine(count)
    for columns in range(20, 251, 1 if count < 16 else 9):
        for theme in (_PLAIN, _ASCII, Theme(256)):
            _fits(glance(snapshot, theme, columns, processes=count <= 8), columns)


@pytest.mark.parametrize("snapshot", [divided(), divided(2), troubled(), zeros(), hostile(), empty()])
def test_no_odd_machine_is_wider_than_the_terminal_either(snapshot: Snapshot) -> None:
    for columns in range(1, 251):
        _fits(glance(snapshot, _PLAIN, columns, processes=True), columns)


@given(snapshot=snapshots(believable=True), theme=_THEMES, columns=st.integers(1, 250), processes=st.booleans())
def test_any_machine_can_be_drawn(snapshot: Snapshot, theme: Theme, columns: int, processes: bool) -> None:
    _fits(glance(snapshot, theme, columns, processes=processes), columns)


@given(snapshot=snapshots(), columns=st.integers(20, 250))
def test_any_recording_can_be_drawn_however_absurd_its_numbers(snapshot: Snapshot, columns: int) -> None:
    _fits(glance(snapshot, _PLAIN, columns, processes=True), columns)


@given(snapshot=snapshots(), chosen=st.lists(st.sampled_from(sorted(GPU_METRICS)), min_size=1, max_size=6))
def test_any_columns_of_any_machine_can_be_drawn(snapshot: Snapshot, chosen: list[str]) -> None:
    _fits(glance(snapshot, _PLAIN, 100, chosen=chosen), 100)


@pytest.mark.parametrize("snapshot", [demo(), divided(2), troubled(), zeros(), hostile(), empty()])
@pytest.mark.parametrize("columns", [20, 60, 80, 160])
def test_a_terminal_without_unicode_gets_none(snapshot: Snapshot, columns: int) -> None:
    lines = glance(snapshot, _ASCII, columns, processes=True)
    lines += glance(snapshot, _ASCII, columns, chosen=("temperature", "name", "power_draw"))
    assert [line for line in lines if not line.isascii()] == []


def test_colours_change_nothing_but_colour() -> None:
    painted = [_ANSI.sub("", line).rstrip() for line in glance(demo(), Theme(256), 120)]
    assert painted == glance(demo(), _PLAIN, 120)


def test_a_zero_is_shown_as_zero() -> None:
    text = "\n".join(glance(zeros(), _PLAIN, 80))
    assert all(word in text for word in ("0 %", "0 °C", "0 W", "0 MHz", "0/80.0 GiB"))
    assert " - " not in text


def test_a_missing_value_is_never_a_zero() -> None:
    gpu = Gpu({"index": 0, "name": "Bare", "temperature": 40}, {"utilization": "unsupported"})
    assert "0 %" not in "\n".join(glance(Snapshot(0.0, (gpu,)), _PLAIN, 80))


@pytest.mark.parametrize("columns", [60, 120])
def test_a_process_of_which_nothing_is_known_is_no_error(columns: int) -> None:
    gpus = tuple(Gpu({"index": at, "utilization": 1}, processes=(Process({}), Process({}))) for at in range(3))
    assert glance(Snapshot(0.0, gpus), _PLAIN, columns, processes=True)


def test_what_is_missing_in_a_column_is_the_reason() -> None:
    lines = glance(demo(), _PLAIN, 80, chosen=("fan_speed", "energy"))
    assert "(skipped)" in lines[-1]


def test_without_gpus_the_glance_says_nothing_false() -> None:
    assert not any("%" in line for line in glance(empty(), _PLAIN, 80))


def test_lost_gpus_hide_nothing_of_the_others() -> None:
    text = glance(troubled(), _PLAIN, 120)
    healthy = [line for line in text if "ada python" in line]
    assert len(healthy) == 1
    assert any("lost for 12m05s" in line for line in text)
    assert any("not responding for 45s" in line for line in text)
    assert any("asleep" in line for line in text)
