"""One rule for energy, time and plain numbers, the same in Python and on the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu, Process
from gpulse.present.cells import (
    clock_text,
    elapsed_text,
    energy_text,
    moment_text,
    number_text,
    rate_text,
    seconds_text,
    value_text,
)
from gpulse.present.cells import quantity_text as quantity

CASES = json.loads((Path(__file__).parents[2] / "golden" / "quantities.json").read_text(encoding="utf-8"))
_JOULES = {"J": 1.0, "Wh": 3600.0, "kWh": 3.6e6}


@pytest.mark.parametrize(("symbol", "value", "text"), CASES)  # web/test/unit/numbers.test.ts reads the same table
def test_a_quantity_has_one_text_in_both_languages(symbol: str, value: float, text: str) -> None:
    assert quantity(symbol, value) == text


def test_a_missing_quantity_is_a_dash() -> None:
    assert quantity("J", None) == quantity("B", None) == quantity("%", None) == energy_text(None) == "–"


@given(joules=st.floats(1, 1e15))
def test_an_energy_is_within_half_a_percent_of_its_text(joules: float) -> None:
    number, unit = energy_text(joules).split(" ")
    assert float(number) * _JOULES[unit] == pytest.approx(joules, rel=0.0051)
    assert unit == ("J" if joules < 9999.5 else "Wh" if joules < 999.5 * 3600 else "kWh")


@given(number=st.integers(-(2**63), 2**63))
def test_an_integer_is_written_with_all_its_digits(number: int) -> None:
    assert number_text(number) == str(number)
    assert int(number_text(float(number))) == int(float(number))


@given(pid=st.integers(0, 2**63))
def test_no_integer_of_the_catalog_is_in_scientific_notation(pid: int) -> None:
    assert value_text(Process.pid, pid) == str(pid)
    assert int(value_text(Process.pid, float(pid))) == int(float(pid))
    assert "e" not in value_text(Gpu.ecc_corrected, pid)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 µs"),
        (312e-6, "312 µs"),
        (0.0009999, "1.00 ms"),
        (0.0451, "45.1 ms"),
        (0.9999, "1.00 s"),
        (3.214, "3.21 s"),
        (59.94, "59.9 s"),
        (59.96, "1m00s"),
        (744.0, "12m24s"),
    ],
)
def test_measured_times_have_three_digits(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.01254, "0.0125"), (2.0, "2"), (28.51, "28.5"), (999.4, "999"), (999.6, "1,000"), (12345.6, "12,346")],
)
def test_fast_steps_are_not_in_scientific_notation(rate: float, text: str) -> None:
    assert rate_text(rate) == text


@given(seconds=st.floats(0, 1e7))
def test_every_time_can_be_written(seconds: float) -> None:
    assert seconds_text(seconds)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0:00"), (0.3, "0:00.3"), (59.96, "0:59.9"), (725, "12:05"), (36000.5, "10:00:00.5")],
)
def test_positions_are_written_as_players_do(seconds: float, text: str) -> None:
    assert elapsed_text(seconds) == text


def test_moments_in_utc_say_so() -> None:
    assert moment_text(1_700_000_000, utc=True) == "2023-11-14 22:13:20 UTC"
    assert clock_text(1_700_000_000, utc=True) == "22:13:20"
