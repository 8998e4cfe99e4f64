"""The machine as /proc tells it, with gaps where it does not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gpulse.model.catalog import HOST_METRICS
from gpulse.sampling.assemble import Rates, settle_rates
from gpulse.sources import host
from gpulse.sources.base import Facts
from gpulse.sources.files import read_text
from gpulse.sources.host import TOP_KEYS, memory_info, read_host
from tests.unit.sources.proc import Root

_ALL = frozenset(HOST_METRICS) - TOP_KEYS  # the top processes are read by the machine


@pytest.fixture
def root(tmp_path: Path) -> Root:
    root = Root(tmp_path)
    root.machine()
    return root


def _read(root: Root, rates: Rates) -> Facts:
    facts = read_host(_ALL, str(root))
    settle_rates("host", facts, rates)
    return facts


def test_memory_used_is_what_new_programs_cannot_have(root: Root) -> None:
    values = read_host(_ALL, str(root)).values
    assert (values["memory_total"], values["memory_used"]) == (1000 * 1024, 600 * 1024)
    assert (values["swap_total"], values["swap_used"]) == (50 * 1024, 30 * 1024)


def test_old_kernels_do_not_say_what_is_available(root: Root) -> None:
    root.write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nCached: 200 kB\n")
    values = read_host(_ALL, str(root)).values
    assert (values["memory_used"], values["swap_total"], values["swap_used"]) == (700 * 1024, 0, 0)


def test_load_is_three_numbers(root: Root) -> None:
    assert read_host(_ALL, str(root)).values["load"] == (0.5, 1.25, 2.0)


def test_processor_shares_are_of_the_time_between_two_samples(root: Root) -> None:
    rates = Rates()
    assert _read(root, rates).gaps["cpu_percent"] == "pending"
    root.machine(busy=50, idle=60, waited=30)
    facts = _read(root, rates)
    assert (facts.values["cpu_percent"], facts.values["iowait"]) == (25.0, 15.0)
    assert facts.values["cpu_per_core"] == (0.0, 45.5)


def test_a_core_that_is_switched_off_leaves_the_others_their_own_shares(root: Root) -> None:
    rates = Rates()
    lines = {core: f"cpu{core} {{}} 0 0 {{}} 0 0 0 0\n" for core in (0, 1, 2)}
    whole = "cpu 0 0 0 0 0 0 0 0\n"
    root.write("proc/stat", whole + "".join(lines[core].format(100 * core, 0) for core in lines))
    _read(root, rates)
    root.write("proc/stat", whole + lines[0].format(0, 100) + lines[2].format(250, 50))
    assert _read(root, rates).values["cpu_per_core"] == (0.0, 50.0)


def test_two_samples_within_one_tick_have_no_share(root: Root) -> None:
    rates = Rates()
    _read(root, rates)
    assert _read(root, rates).gaps["cpu_percent"] == "pending"


def test_disks_are_counted_once_without_partitions_and_layers_above_them(root: Root) -> None:
    root.machine(sectors=10)
    counters = read_host(_ALL, str(root)).counters
    assert (counters["disk_read"].value, counters["disk_write"].value) == (5120, 10240)


def test_each_disk_has_its_own_traffic_and_busy_time(root: Root) -> None:
    rates = Rates()
    root.machine(sectors=10)
    assert _read(root, rates).gaps["disk_reads"] == "pending"
    values: dict[str, Any] = {**_read(root, rates).values}
    assert values["disk_names"]
    assert values["disk_names"] == tuple(sorted(values["disk_names"]))
    assert len(values["disk_reads"]) == len(values["disk_busy"]) == len(values["disk_names"])


def test_activity_and_paging(root: Root) -> None:
    facts = read_host(_ALL, str(root))
    assert (facts.values["processes_running"], facts.values["processes_blocked"]) == (3, 1)
    assert (facts.counters["context_switches"].value, facts.counters["interrupts"].value) == (400, 1)
    page = os.sysconf("SC_PAGE_SIZE")
    assert facts.counters["swap_in"].value == 2 * page
    assert facts.counters["swap_out"].value == 3 * page
    assert facts.counters["major_faults"].value == 5


def test_what_is_not_asked_for_is_not_read(root: Root) -> None:
    facts = read_host(frozenset({"cpu_percent"}), str(root))
    found = {*facts.values, *facts.gaps, *(key.partition(".")[0] for key in facts.counters)}
    assert not found & {"disk_names", "context_switches", "swap_in", "top_pids"}


def test_the_network_is_all_interfaces_but_loopback(root: Root) -> None:
    root.machine(rx=1000, tx=7)
    counters = read_host(_ALL, str(root)).counters
    assert (counters["net_rx"].value, counters["net_tx"].value) == (2000, 14)


def _interfaces(root: Root, *names: str) -> None:
    rows = "".join(f"{name:>8}: 1000 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\n" for name in names)
    (Path(str(root)) / "proc/net/dev").write_text(f"Inter-|\n face |\n{rows}")


def _network(root: Root) -> tuple[float, float]:
    counters = read_host(_ALL, str(root)).counters
    return counters["net_rx"].value, counters["net_tx"].value


def test_bytes_that_pass_several_interfaces_count_once(root: Root) -> None:
    net = Path(str(root)) / "sys/class/net"
    for name, inside in (("eth0", "device"), ("eth1", "device"), ("bond0", "lower_eth0"), ("bond0.7", "lower_bond0")):
        (net / name / inside).mkdir(parents=True)
    (net / "docker0/bridge").mkdir(parents=True)
    (net / "veth1/master").mkdir(parents=True)
    _interfaces(root, "lo", "eth0", "eth1", "bond0", "bond0.7", "docker0", "veth1", "wg0")
    assert _network(root) == (2000, 20)


def test_in_a_container_what_is_not_made_of_others_counts(root: Root) -> None:
    net = Path(str(root)) / "sys/class/net"
    (net / "eth0").mkdir(parents=True)
    (net / "mac0/lower_eth0").mkdir(parents=True)
    _interfaces(root, "lo", "eth0", "mac0")
    assert _network(root) == (1000, 10)


def test_a_file_that_the_kernel_hands_out_in_pieces_is_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, root: Root
) -> None:
    _interfaces(root, *(f"ib{number}" for number in range(83)))
    real = os.read
    monkeypatch.setattr("gpulse.sources.files.os.read", lambda handle, size: real(handle, min(size, 4000)))
    assert _network(root) == (83_000, 830)


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        (
            "proc/stat",
            {
                *("cpu_percent", "cpu_per_core", "iowait", "context_switches", "interrupts"),
                *("processes_running", "processes_blocked"),
            },
        ),
        ("proc/meminfo", {"memory_used", "memory_total", "memory_cached", "swap_used", "swap_total"}),
        ("proc/loadavg", {"load"}),
        ("proc/vmstat", {"swap_in", "swap_out", "major_faults"}),
        ("proc/diskstats", {"disk_read", "disk_write", "disk_names", "disk_reads", "disk_writes", "disk_busy"}),
        ("proc/net/dev", {"net_rx", "net_tx"}),
    ],
)
@pytest.mark.parametrize("content", [None, "", "garbage\n" * 5, "cpu x y z a b c d e\nMemTotal: lots\n"])
def test_a_file_that_is_missing_or_senseless_is_a_gap_and_costs_nothing_else(
    root: Root, path: str, keys: set[str], content: str | None
) -> None:
    if content is None:
        root.remove(path)
    else:
        root.write(path, content)
    facts = read_host(_ALL, str(root))
    missing = _ALL - facts.values.keys() - {key.partition(".")[0] for key in facts.counters}
    if content is None or path in ("proc/stat", "proc/meminfo", "proc/loadavg"):
        assert missing == keys
        reasons = {"unsupported"} if content is None else {"unsupported", "failed"}
        assert {facts.gaps[key] for key in keys} <= reasons
    else:
        assert missing <= keys


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("proc/stat", "cpu0 1 2 3 x 5 6 7 8\n"),
        ("proc/diskstats", "259 0 nvme0n1 1 0 x 0 1 0 y 0 0 0 0\n"),
        ("proc/net/dev", "\n\neth0: x 1 0 0 0 0 0 0 y 1 0 0 0 0 0 0\n"),
    ],
)
def test_a_count_that_is_no_number_does_not_end_the_sample(root: Root, path: str, line: str) -> None:
    root.write(path, line)
    assert read_host(_ALL, str(root)).values["load"] == (0.5, 1.25, 2.0)


def test_only_what_is_asked_is_read(root: Root) -> None:
    facts = read_host(frozenset({"load"}), str(root))
    assert set(facts.values) == {"name", "cpu_count", "load"}
    assert not facts.counters
    assert not facts.gaps


def test_memory_in_bytes_by_the_kernels_own_words(root: Root) -> None:
    assert memory_info(str(root))["MemAvailable"] == 400 * 1024
    assert memory_info("/nowhere") == {}


def _port(root: Root, received: int, sent: int) -> None:
    port = "sys/class/infiniband/mlx5_0/ports/1"
    root.write(f"{port}/state", "4: ACTIVE\n")
    root.write(f"{port}/rate", "400 Gb/sec (4X NDR)\n")
    root.write(f"{port}/counters/port_rcv_data", f"{received}\n")
    root.write(f"{port}/counters/port_xmit_data", f"{sent}\n")
    root.write(f"{port}/counters/symbol_error", "3\n")
    root.write(f"{port}/counters/link_downed", "1\n")


def test_infiniband_ports_count_words_of_four_bytes(root: Root) -> None:
    rates = Rates()
    _port(root, 0, 0)
    assert _read(root, rates).gaps["port_rx"] == "pending"
    rates.next_sample(0.0)
    _port(root, 1 << 40, 0)
    values = _read(root, rates).values
    assert values["port_names"] == ("mlx5_0/1",)
    assert values["port_states"] == ("active",)
    assert values["port_speeds"] == (50e9,)
    assert values["port_errors"] == (4.0,)
    assert values["port_downs"] == (1.0,)
    received, sent = values["port_rx"], values["port_tx"]
    assert isinstance(received, tuple)
    assert isinstance(received[0], float)
    assert received[0] > 1e9
    assert sent == (0,)


def test_ethernet_ports_are_hardware_and_a_port_that_is_down_has_no_speed(root: Root) -> None:
    for name, up, speed in (("eth0", "up", "25000"), ("eth1", "down", "-1"), ("docker0", "up", "10000")):
        place = f"sys/class/net/{name}"
        root.write(f"{place}/operstate", f"{up}\n")
        root.write(f"{place}/speed", f"{speed}\n")
        if name == "eth0":
            root.write(f"{place}/carrier_down_count", "5\n")
        for counter in ("rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped"):
            root.write(f"{place}/statistics/{counter}", "2\n")
        if name != "docker0":
            root.write(f"{place}/device/vendor", "0x15b3\n")
    values = read_host(_ALL, str(root)).values
    assert values["port_names"] == ("eth0", "eth1")
    assert values["port_states"] == ("active", "down")
    assert values["port_speeds"] == (3.125e9, 0.0)
    assert values["port_errors"] == (8.0, 8.0)
    assert values["port_downs"] == (5.0, 0.0)  # the second does not count


def test_of_ports_only_the_files_that_are_asked_for_are_read(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    _port(root, 0, 0)
    read: list[str] = []

    def noted(path: str) -> str | None:
        read.append(path.rpartition("/")[2])
        return read_text(path)

    monkeypatch.setattr(host, "read_text", noted)
    values = read_host(frozenset({"port_rx", "port_states"}), str(root)).values
    assert (values["port_names"], values["port_states"]) == (("mlx5_0/1",), ("active",))
    assert sorted(read) == ["port_rcv_data", "port_xmit_data", "state"]


def test_a_machine_without_ports_has_none(root: Root) -> None:
    values = read_host(_ALL, str(root)).values
    assert values["port_names"] == values["port_rx"] == ()
