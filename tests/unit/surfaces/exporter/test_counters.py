"""What grows: sums of rates are the bytes that passed, and nothing is added that nobody saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.exporter.families import Counters
from tests.unit.surfaces.exporter.pages import exporter_of, gpu, samples, values, without

if TYPE_CHECKING:
    from gpulse.model.metric import Value


@given(st.lists(st.tuples(st.floats(0.1, 59), st.integers(0, 10**9)), min_size=1, max_size=8))
def test_a_sum_of_rates_is_what_passed(snaps: list[tuple[float, int]]) -> None:
    counters, now, passed = Counters(), 1000.0, 0.0
    counters.add(Snapshot(now, (gpu(pcie_rx=12345),)))
    for seconds, rate in snaps:
        before, now = now, now + seconds
        passed += (now - before) * rate
        counters.add(Snapshot(now, (gpu(pcie_rx=rate),)))
    assert counters.bytes["GPU-1", "pcie_rx"] == pytest.approx(passed)


def test_counters_stand_still_while_a_value_is_missing_and_go_on_after() -> None:
    snaps = gpu(nvlink_tx=100), gpu(nvlink_tx=100), without(nvlink_tx="failed"), gpu(nvlink_tx=100)
    counts = [
        values(samples(exporter_of(*snaps[:seen])), "gpulse_gpu_nvlink_tx_bytes_total", "uuid").get(("GPU-1",))
        for seen in range(1, 5)
    ]
    assert counts == [0, 200, None, 400]


@pytest.mark.parametrize("step", [-5.0, 0.0, 3600.0])
def test_a_clock_that_jumps_adds_nothing(step: float) -> None:
    counters = Counters()
    for at in (1000.0, 1000.0 + step):
        counters.add(Snapshot(at, (gpu(pcie_rx=10**9, throttle_reasons=("sw_power_cap",)),)))
    assert counters.bytes["GPU-1", "pcie_rx"] == 0
    assert counters.throttled["GPU-1"]["sw_power_cap"] == 0


def test_samples_that_are_always_far_apart_count() -> None:
    counters = Counters()
    for at in range(5):
        counters.add(Snapshot(1000.0 + 300 * at, (gpu(pcie_rx=10),)))
    assert counters.bytes["GPU-1", "pcie_rx"] == 3 * 300 * 10  # the first hole could be anything


def test_throttled_seconds_begin_at_nought_for_each_reason_a_gpu_can_tell() -> None:
    calm = gpu(throttle_reasons=(), throttle_reasons_supported=("sw_power_cap", "hw_slowdown"))
    slow = gpu(throttle_reasons=("hw_slowdown", "0x200"), throttle_reasons_supported=("sw_power_cap", "hw_slowdown"))
    name = "gpulse_gpu_throttle_seconds_total"
    assert values(samples(exporter_of(calm)), name, "reason") == {("sw_power_cap",): 0, ("hw_slowdown",): 0}
    found = values(samples(exporter_of(calm, slow, slow)), name, "reason")
    assert found == {("sw_power_cap",): 0, ("hw_slowdown",): 4, ("0x200",): 4}


def test_an_error_is_counted_when_it_comes_and_not_while_it_stays() -> None:
    snaps = [gpu(), gpu(xid_last=31), gpu(xid_last=31), gpu(xid_last=79), gpu(xid_last=31)]
    found = values(samples(exporter_of(*snaps)), "gpulse_gpu_xid_errors_total", "xid")
    assert found == {("31",): 2, ("79",): 1}


def test_gpus_without_a_name_keep_their_sums_apart() -> None:
    pair = Gpu({"index": 0, "pcie_rx": 1}), Gpu({"index": 1, "pcie_rx": 2})
    found = values(samples(exporter_of(pair, pair)), "gpulse_gpu_pcie_rx_bytes_total", "gpu")
    assert found == {("0",): 2, ("1",): 4}


def test_repeated_xids_count_each_time() -> None:
    counters = Counters()
    for at, codes in enumerate([(), (94, 94, 31), (), (94,)]):
        last = {} if at == 0 else {"xid_last": 94}
        counters.add(Snapshot(1000.0 + at, (gpu(xids=codes, **last),)))
    assert counters.xids["GPU-1"] == {94: 3, 31: 1}


def test_a_spot_check_is_not_integrated_and_has_no_total_on_the_page() -> None:
    old = Gpu({"index": 0, "uuid": "GPU-1", "vendor": "nvidia", "pcie_rx": 10**9, "nvlink_rx": 5})
    new = Gpu({"index": 1, "uuid": "GPU-2", "vendor": "nvidia", "pcie_rx": 10**6, "sm_active": 9})
    found = samples(exporter_of(*[(old, new)] * 5, every=1.0), openmetrics=True, dcgm=True)
    assert values(found, "gpulse_gpu_pcie_rx_bytes_total", "uuid") == {("GPU-2",): 4 * 10**6}
    assert values(found, "gpulse_gpu_nvlink_rx_bytes_total", "uuid") == {("GPU-1",): 20}
    assert values(found, "DCGM_FI_DEV_PCIE_RX_THROUGHPUT", "UUID") == {("GPU-2",): 4000}
    assert not values(found, "gpulse_failed_families_total", "family")


def test_a_total_is_absent_while_only_a_spot_check_is_left_and_goes_on_after() -> None:
    counted: dict[str, Value] = {"vendor": "nvidia", "pcie_rx": 100, "sm_active": 9}
    spot: dict[str, Value] = {"vendor": "nvidia", "pcie_rx": 10**9}
    course = [gpu(**counted), gpu(**counted), gpu(**spot), gpu(**counted)]
    told = [
        values(samples(exporter_of(*course[:seen])), "gpulse_gpu_pcie_rx_bytes_total", "uuid").get(("GPU-1",))
        for seen in range(1, 5)
    ]
    assert told == [0, 200, None, 400]
