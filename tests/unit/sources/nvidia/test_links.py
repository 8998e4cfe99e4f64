"""PCIe and NVLink traffic: from GPM, or from byte counters that wrap; links that do not exist are no zeros."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario


def ampere(**values: Any) -> Scenario:
    return Scenario.load("boards/a100").driver(gpus=1).gpu(0, **values)


# The driver stamps its counters with the real time, so a rate is held between the shortest and the longest it can be.
PAIR = """
import time
source = NvidiaSource()
source.open()
device = source.devices[0]
keys = frozenset(["pcie_rx", "pcie_tx"])
before = time.monotonic()
device.prime(keys)
at(0.5)
sample = device.read(keys, None)
say([sample.values, sample.gaps, time.monotonic() - before])
"""


@pytest.mark.parametrize("start", [0, 2**32 - 1000])
def test_without_gpm_pcie_rates_come_from_counters_even_across_their_wrap(lab: Lab, start: int) -> None:
    scenario = ampere(**{"pcie.tx_bytes": f"counter({start}, 1000000)", "pcie.rx_bytes": f"counter({start}, 3000000)"})
    values, gaps, longest = lab.see(scenario, PAIR)
    if "pcie_tx" in gaps:
        pytest.skip("this machine was too busy to take two samples within 50 ms")
    assert values["pcie_tx"] * longest >= 499_000
    assert values["pcie_tx"] < 2**32
    assert values["pcie_rx"] == pytest.approx(3 * values["pcie_tx"], rel=0.05)


def test_a_pair_of_counts_too_far_apart_is_no_rate(lab: Lab) -> None:
    scenario = ampere(**{"pcie.tx_bytes": "counter(0, 1000000)", "pcie.rx_bytes": "counter(0, 1000000)"})
    slow = scenario.fault(function="nvmlDeviceGetFieldValues", gpu=0, hang="120ms", since="0.4s")
    values, gaps, _ = lab.see(slow, PAIR)
    assert values == {"memory_unified": False}
    assert (gaps["pcie_rx"], gaps["pcie_tx"]) == ("pending", "pending")


def test_one_sample_is_enough_for_pcie_without_gpm(lab: Lab) -> None:
    scenario = ampere(**{"pcie.tx_bytes": "counter(4294967000, 300000000)", "pcie.rx_bytes": "counter(0, 900000000)"})
    (gpu,) = lab.run(scenario, "--json").gpus
    assert gpu["pcie_tx"] == pytest.approx(300e6, rel=0.3)
    assert gpu["pcie_rx"] == pytest.approx(900e6, rel=0.3)


def test_without_counters_there_is_no_rate(lab: Lab) -> None:
    (gpu,) = lab.run(ampere(), "--json").gpus
    for key in ("pcie_rx", "pcie_tx"):
        assert (gpu[key], gpu["gaps"][key]) == (None, "unsupported")


def test_a_gpu_without_nvlink_has_no_nvlink_traffic_rather_than_0(lab: Lab) -> None:
    for scenario in (Scenario.load("h200-busy"), ampere()):
        (gpu,) = lab.run(scenario, "--json").gpus
        for key in ("nvlink_rx", "nvlink_tx"):
            assert (gpu[key], gpu["gaps"][key]) == (None, "unsupported")


def test_nvlink_traffic_from_gpm(lab: Lab) -> None:
    (gpu,) = lab.run(Scenario.load("boards/h100").driver(gpus=1), "--json").gpus
    assert gpu["nvlink_tx"] == pytest.approx(39062.5 * 2**20)
    assert gpu["nvlink_rx"] == pytest.approx(40039.0625 * 2**20)
    assert gpu["pcie_rx"] == pytest.approx(858.3 * 2**20, rel=1e-4)


def test_nvlink_that_is_there_and_silent_is_0(lab: Lab) -> None:
    quiet = Scenario.load("boards/h100").driver(gpus=1).gpu(0, gpm__nvlink_rx=0, gpm__nvlink_tx=0)
    (gpu,) = lab.run(quiet, "--json").gpus
    assert (gpu["nvlink_rx"], gpu["nvlink_tx"]) == (0, 0)


def test_nvlink_traffic_without_gpm_is_what_was_counted_over_the_time_it_took(lab: Lab) -> None:
    scenario = Scenario.load("boards/h100").driver(gpus=1).gpu(0, gpm=0)
    first, second, stamps = lab.see(
        scenario,
        """
from gpulse.sources.nvidia.gpm import Links
read, stamps = Links._read_counters, []
def noted(*words):
    seen = read(*words)
    if "nvlink_tx" in seen:
        stamps.append({key: at for key, (_, at) in seen.items()})  # the driver's own time, in microseconds
    return seen
Links._read_counters = noted
over = sampler(Wanted(["nvlink_rx", "nvlink_tx"]))
first = sample(over)["gpus"][0]
at(1)
over.clock.sleep(0.02)
say([first, sample(over)["gpus"][0], stamps])
""",
    )
    assert (first["nvlink_tx"], first["gaps"]["nvlink_tx"]) == (None, "pending")
    for key, count in (("nvlink_tx", 40_000_000), ("nvlink_rx", 41_000_000)):
        assert second[key] == pytest.approx(count * 1024 / (stamps[1][key] - stamps[0][key]) * 1e6, rel=1e-4)


def test_link_state_one_link_up_is_enough(lab: Lab) -> None:
    values = {f"nvlink.state.{link}": 0 for link in range(17)}
    (gpu,) = lab.run(Scenario.load("boards/h100").driver(gpus=1).gpu(0, **values), "--json").gpus
    assert gpu["nvlink_tx"] == pytest.approx(39062.5 * 2**20)


def test_error_counters_of_links_are_read_only_when_wanted(lab: Lab) -> None:
    code = """
source = NvidiaSource()
source.open()
for device in source.devices:
    device.attach()
nvml, asked = source.devices[0]._nvml, []
plain = nvml.call
nvml.call = lambda name, *arguments: asked.append(name) or plain(name, *arguments)
sample = source.devices[0].read(frozenset(["nvlink_links"]), None)
few = [sample.values, "nvmlDeviceGetFieldValues" in asked]
sample = source.devices[0].read(frozenset(["nvlink_links", "nvlink_crc_errors"]), None)
say([*few, sample.values["nvlink_links"], "nvlink_crc_errors" in sample.values, "nvmlDeviceGetFieldValues" in asked])
"""
    values, counted, *all_of_it = lab.see(Scenario.load("dgx-h100x8").driver(gpus=1), code)
    assert (values["nvlink_links"], counted) == (18, False)
    assert all_of_it == [18, True, True]
