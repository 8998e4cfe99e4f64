"""Cost: GPU time and energy at given prices, idle apart, and nothing where a price or a figure is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.analysis.energy import Cost, cost_of, usage_cost
from gpulse.analysis.tally import Tally
from gpulse.model.catalog import Gpu, Host
from gpulse.model.serving import Tariff
from gpulse.model.snapshot import Snapshot
from gpulse.present.cost import carbon_text, cost_text, money_text
from gpulse.store.history import Usage
from gpulse.surfaces.history.tables import usage_table
from gpulse.surfaces.report.comparison import run_to_plain
from gpulse.surfaces.report.pages import tiles
from tests.unit.surfaces.report.runs import gpu, run_of, sample

ALL = Tariff(0.3, 2.0, 400.0, "EUR")


def tally(*watts: tuple[float, float], seconds: float = 1800.0) -> Tally:
    """Return samples of one GPU: utilization and watts."""
    found = Tally()
    for at, (use, power) in enumerate(watts):
        reading = Gpu({"uuid": "GPU-0", "index": 0, "utilization": use, "power_draw": power})
        found.add(Snapshot(float(at), (reading,), Host({})), None, seconds)
    return found


def test_an_hour_half_idle() -> None:
    cost = cost_of(tally((90.0, 600.0), (0.0, 100.0)).summary("", 3600.0), ALL)
    assert cost is not None
    assert cost.gpu_time == pytest.approx(2.0)
    assert cost.energy == pytest.approx(0.35 * 0.3)
    assert cost.total == pytest.approx(2.105)
    assert cost.idle == pytest.approx(1.0 + 0.05 * 0.3)
    assert cost.carbon == pytest.approx(140.0)
    assert cost.estimated
    assert cost_text(cost) == (
        "cost 2.10 EUR (GPU time 2.00, energy 0.10), of that idle 1.01 · 140 g CO2e · energy estimated from power"
    )


def test_only_what_has_a_price_is_said() -> None:
    summary = tally((90.0, 600.0)).summary("", 1800.0)
    assert cost_of(summary, None) is None
    assert cost_of(summary, Tariff()) is None
    only_time = cost_of(summary, Tariff(gpu_price=2.0))
    assert only_time is not None
    assert (only_time.total, only_time.energy, only_time.carbon) == (1.0, None, None)
    assert cost_text(only_time) == "cost 1.00, of that idle 0.00"
    only_carbon = cost_of(summary, Tariff(carbon=400.0))
    assert only_carbon is not None
    assert only_carbon.total is None
    assert cost_text(only_carbon) == "120 g CO2e · energy estimated from power"


def test_unknown_energy_has_no_price() -> None:
    cost = Cost(ALL, 1.0, None, None, None)
    assert (cost.energy, cost.carbon, cost.idle, cost.total) == (None, None, None, 2.0)


def test_a_run_without_gpus_costs_nothing_to_tell() -> None:
    assert cost_of(Tally().summary("", 60.0), ALL) is None


@pytest.mark.parametrize(
    ("amount", "text"),
    [(None, "–"), (0.0, "0.00"), (1234.5, "1,234.50"), (0.42, "0.42"), (0.0123, "0.0123"), (0.00001, "<0.0001")],
)
def test_amounts(amount: float | None, text: str) -> None:
    assert money_text(amount) == text


def test_emissions() -> None:
    assert (carbon_text(None), carbon_text(12.34), carbon_text(4560.0)) == ("–", "12.3 g CO2e", "4.56 kg CO2e")


@given(st.floats(0, 1e6), st.floats(0, 1e9), st.floats(0, 100), st.floats(0, 100))
def test_the_parts_add_up(hours: float, joules: float, price: float, gpu_price: float) -> None:
    cost = Cost(Tariff(price, gpu_price), hours, joules, hours, joules)
    assert cost.total == pytest.approx((cost.gpu_time or 0) + (cost.energy or 0))
    assert cost.idle == pytest.approx(cost.total)


def usage() -> Usage:
    use = Usage("ada")
    use.gpu_hours, use.busy_hours, use.energy, use.processes = 10.0, 4.0, 3.6e6 * 5, 1
    return use


def test_usage_costs_and_its_idle_hours_apart() -> None:
    cost = usage_cost(usage(), ALL)
    assert cost is not None
    assert cost.total == pytest.approx(21.5)
    assert cost.idle == pytest.approx(12.0)
    header, row = usage_table([usage()], "user", ALL)
    assert header.split()[-5:] == ["COST", "(EUR)", "IDLE", "COST", "(EUR)", "CO2e"][-5:]
    assert row.split()[-5:] == ["21.50", "12.00", "2.00", "kg", "CO2e"]
    assert "COST" not in usage_table([usage()], "user")[0]
    assert usage_table([usage()], "user", Tariff(carbon=100.0))[0].endswith("CO2e")


def test_a_report_has_the_cost_in_every_form() -> None:
    run = run_of(sample(at, gpu(power_draw=360.0, utilization=0.0)) for at in range(101))
    assert run_to_plain(run)["cost"] is None
    assert not any(title == "Cost" for title, *_ in tiles(run))
    run.tariff = ALL
    plain = run_to_plain(run)["cost"]
    assert plain["energy"] == pytest.approx(0.01 * 0.3)
    assert plain["idle"] == pytest.approx(plain["total"])
    assert {title for title, *_ in tiles(run)} >= {"Cost", "Emissions"}
