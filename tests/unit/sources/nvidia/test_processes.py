"""Who uses a GPU: lists that change under the reader, records of three sizes, shares that are stale or absurd."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.lab import Lab
from tests.fake_nvml import Scenario

MIB = 1 << 20
SHARES = ("sm_utilization", "memory_utilization", "encoder_utilization", "decoder_utilization")


def board(**values: Any) -> Scenario:
    return Scenario.load("h200-idle").gpu(0, **values)


def processes(lab: Lab, scenario: Scenario) -> Any:
    answer = lab.run(scenario, "--json")
    assert answer.code == 0
    assert answer.err == ""
    return answer.gpus[0]["processes"]


def test_lists_of_compute_graphics_and_mps_are_one_row_a_process(lab: Lab) -> None:
    pid = os.getpid()
    scenario = board().process(gpu=0, pid=pid, type="C", memory="300 MiB")
    scenario.process(gpu=0, pid=pid, type="G", memory="300 MiB").process(gpu=0, pid=pid, type="M", memory="100 MiB")
    scenario.process(gpu=0, pid=1, type="G", memory="20 MiB")
    rows = processes(lab, scenario)
    assert [(row["pid"], row["type"], row["memory_used"]) for row in rows] == [
        (pid, "C+G+M", 300 * MIB),
        (1, "G", 20 * MIB),
    ]


def test_a_process_on_several_gpus_is_under_each(lab: Lab) -> None:
    scenario = Scenario.load("boards/h100").driver(gpus=3).process(gpu="0-1", pid=os.getpid(), memory="1 GiB")
    gpus = lab.run(scenario, "--json").gpus
    assert [len(gpu["processes"]) for gpu in gpus] == [1, 1, 0]


def test_who_it_is_comes_from_the_machine(lab: Lab) -> None:
    (row,) = processes(lab, board().process(gpu=0, pid="self", memory="1 GiB"))
    assert "worker" in row["command"]
    assert row["host_memory"] > MIB
    assert row["running_time"] >= 0
    assert row["user"]


def test_a_process_that_is_gone_keeps_its_row_and_says_that_its_name_is_not_known(lab: Lab) -> None:
    (row,) = processes(lab, board().process(gpu=0, pid=4194303, memory="1 GiB"))
    assert (row["pid"], row["memory_used"]) == (4194303, 1024 * MIB)
    assert (row["name"], row["gaps"]["name"]) == (None, "failed")


@pytest.mark.parametrize("pid", [0, 1 << 22, 0x7F000000])
def test_a_pid_no_kernel_gives_out_is_dropped(lab: Lab, pid: int) -> None:
    rows = processes(lab, board().process(gpu=0, pid=pid, memory="1 GiB").process(gpu=0, pid=1, memory="1 MiB"))
    assert [row["pid"] for row in rows] == [1]


@pytest.mark.parametrize("change", [{"processes.grow": 40}, {"processes.grow": -1}, {"processes.churn": 90}])
def test_a_list_that_changes_while_it_is_read_gives_no_row_that_never_was(lab: Lab, change: dict[str, int]) -> None:
    scenario = board(**change).process(gpu=0, pid=1, memory="2 MiB").process(gpu=0, pid="parent", memory="1 MiB")
    rows = processes(lab, scenario)
    assert [row["memory_used"] for row in rows] == [2 * MIB, MIB][: 1 if change.get("processes.grow") == -1 else 2]


def test_more_processes_than_fit_at_first_are_all_there(lab: Lab) -> None:
    scenario = board()
    for pid in range(1000, 1150):
        scenario.process(gpu=0, pid=pid, memory="1 MiB", sm=pid % 100)
    rows = processes(lab, scenario)
    assert {row["pid"]: row["sm_utilization"] for row in rows} == {pid: pid % 100 for pid in range(1000, 1150)}


def test_a_list_that_never_fits_is_given_up(lab: Lab) -> None:
    scenario = board().process(gpu=0, pid=1, memory="1 MiB")
    scenario.fault(function="nvmlDeviceGet*RunningProcesses_v3", gpu=0, code="INSUFFICIENT_SIZE")
    answer = lab.run(scenario, "--json")
    assert answer.gpus[0]["processes"] == []
    assert answer.gpus[0]["gaps"]["processes"] == "failed"
    assert answer.calls["nvmlDeviceGetComputeRunningProcesses_v3"] <= 20  # two lists, one for the rates
    assert answer.gpus[0]["utilization"] == 0


def test_the_longer_records_of_one_driver_give_the_right_pids(lab: Lab) -> None:
    rows = processes(lab, Scenario.load("r535-early"))
    assert sorted(row["memory_used"] // MIB for row in rows) == [1111, 2222, 3333]
    assert [row["pid"] for row in rows if row["memory_used"] == 3333 * MIB] == [1]
    assert {row["memory_used"] // MIB: row["sm_utilization"] for row in rows} == {1111: 50, 2222: 30, 3333: 8}


def test_memory_that_is_not_available_is_a_gap_and_totals_stay(lab: Lab) -> None:
    answer = lab.run(Scenario.load("wsl"), "--json")
    (gpu,) = answer.gpus
    (row,) = gpu["processes"]
    assert (row["memory_used"], row["gaps"]["memory_used"]) == (None, "unsupported")
    assert (gpu["memory_used"], gpu["memory_total"]) == (5120 * MIB, 24 << 30)
    assert 0 < gpu["memory_percent"] < 100
    assert gpu.get("memory_unattributed") is None
    assert "unattributed" not in lab.run(Scenario.load("wsl")).out


def test_memory_known_in_one_list_stands_for_the_other(lab: Lab) -> None:
    scenario = board().process(gpu=0, pid=1, type="C", memory="unavailable")
    (row,) = processes(lab, scenario.process(gpu=0, pid=1, type="G", memory="7 MiB"))
    assert (row["type"], row["memory_used"]) == ("C+G", 7 * MIB)


def test_memory_that_no_process_accounts_for_is_told(lab: Lab) -> None:
    scenario = board(memory__used="60 GiB").process(gpu=0, pid="parent", memory="1 GiB")
    assert lab.run(scenario, "--json").gpus[0]["memory_unattributed"] == 59 << 30
    assert "unattributed 59.0 GiB" in lab.run(scenario).out


def test_processes_that_hold_more_than_is_used_leave_nothing_unattributed(lab: Lab) -> None:
    scenario = board(memory__used="1 GiB").process(gpu=0, pid="parent", memory="2 GiB")
    assert lab.run(scenario, "--json").gpus[0]["memory_unattributed"] == 0


def test_a_list_that_is_refused_is_not_an_empty_list(lab: Lab) -> None:
    answer = lab.run(board(processes="error NO_PERMISSION", memory__used="60 GiB"), "--json")
    (gpu,) = answer.gpus
    assert gpu["gaps"]["processes"] == "denied"
    assert gpu.get("memory_unattributed") is None


def shares(lab: Lab, **process: Any) -> Any:
    (row,) = processes(lab, board().process(gpu=0, pid="parent", memory="1 MiB", **process))
    return row


def test_a_listed_process_without_a_sample_ran_nothing(lab: Lab) -> None:
    assert [shares(lab)[key] for key in SHARES] == [0] * 4


def test_a_sample_from_before_the_window_is_not_shown(lab: Lab) -> None:
    assert shares(lab, sm=90, age="3s")["sm_utilization"] == 0
    assert shares(lab, sm=90, age="1s")["sm_utilization"] == 90


def test_a_share_above_100_is_dropped_alone(lab: Lab) -> None:
    row = shares(lab, sm=808334905, mem=17, enc=101, dec=300)
    assert (row["sm_utilization"], row["gaps"]["sm_utilization"]) == (None, "failed")
    assert (row["memory_utilization"], row["encoder_utilization"], row["decoder_utilization"]) == (17, 100, None)


def test_shares_the_driver_does_not_give_are_a_gap(lab: Lab) -> None:
    scenario = board(processes__utilization="error NOT_SUPPORTED").process(gpu=0, pid=1, memory="1 MiB")
    (row,) = processes(lab, scenario)
    assert {row["gaps"][key] for key in SHARES} == {"unsupported"}


def test_pids_of_another_namespace_are_shown_without_names_that_would_be_somebody_elses(
    lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026532999]")
    (tmp_path / "proc/77/fd").mkdir(parents=True)
    (tmp_path / "proc/77/stat").write_text(f"77 (innocent) S 1 {' '.join(['0'] * 40)}\n")
    scenario = board().process(gpu=0, pid=77, memory="1 GiB")
    answer = lab.run(scenario, "--json", GPULSE_ROOT=str(tmp_path))
    (row,) = answer.gpus[0]["processes"]
    assert (row["pid"], row["memory_used"]) == (77, 1024 * MIB)
    assert row.get("name") is None
    assert [error["source"] for error in answer.json["errors"]] == ["processes"]
    assert "--pid=host" in answer.json["errors"][0]["remedy"]
    assert "innocent" not in lab.run(scenario, "-p", GPULSE_ROOT=str(tmp_path)).out


def test_one_sample_has_the_cpu_usage_of_host_and_processes_where_it_waits_for_activity(lab: Lab) -> None:
    answer = lab.run(Scenario.load("h200-busy").process(gpu=0, pid="parent", memory="1 MiB"), "--json")
    rows = [row for gpu in answer.gpus for row in gpu["processes"] if row.get("name")]
    assert rows
    assert all(row["cpu_percent"] is not None for row in rows)
    assert answer.json["host"]["cpu_percent"] is not None
