"""nvidia-smi's XML of several schemas: renamed elements, values that are none, MIG, Windows, logs that are broken."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulse.errors import SourceUnavailable
from gpulse.model.select import Wanted
from gpulse.sampling.sampler import Sampler
from gpulse.sources.base import DeviceSample
from gpulse.sources.smi.device import gap_of, number
from gpulse.sources.smi.source import SmiSource, decode, parse_log
from tests.unit.sources.smi.logs import log
from tests.unit.sources.trees import read_one


def read(tmp_path: Path, content: str | bytes) -> DeviceSample:
    return read_one(SmiSource(str(written(tmp_path, content))))


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "smi.xml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_every_value_is_in_its_unit(tmp_path: Path) -> None:
    sample = read(tmp_path, log())
    expected = {
        "utilization": 97,
        "memory_utilization": 37,
        "memory_total": 10240 << 20,
        "memory_used": 1128 << 20,
        "memory_reserved": 173 << 20,
        "temperature": 61,
        "temperature_limit": 95,
        "fan_speed": 30,
        "power_draw": 122.78,
        "power_limit": 336.0,
        "clock_sm": 1710,
        "clock_memory": 9501,
        "pstate": 2,
        "pcie_gen": 1,
        "pcie_gen_max": 4,
        "pcie_width": 8,
        "pcie_rx": 6_000_000,
        "pcie_tx": 1_000_000,
        "compute_mode": "exclusive_process",
        "persistence_mode": True,
        "throttle_reasons": ("sw_power_cap", "display_clock_setting"),
        "ecc_corrected": 41,
        "ecc_uncorrected": 2,
    }
    assert {key: sample.values.get(key) for key in expected} == expected
    assert (
        sample.gaps["encoder_utilization"]
        == sample.gaps["memory_temperature"]
        == sample.gaps["sm_active"]
        == "unsupported"
    )
    facts = sample.processes[42]
    assert (facts.values["name"], facts.values["memory_used"], facts.values["type"]) == ("python.exe", 1005 << 20, "C")


def test_schema_v10_and_v11_have_other_names(tmp_path: Path) -> None:
    old = {
        "gpu_power_readings": "",
        "power_readings": "<power_draw>26.78 W</power_draw><power_limit>75.00 W</power_limit>"
        "<enforced_power_limit>70.00 W</enforced_power_limit>",
        "clocks_event_reasons": "",
        "clocks_throttle_reasons": "<clocks_throttle_reason_hw_slowdown>Active</clocks_throttle_reason_hw_slowdown>",
        "ecc_errors": "<volatile><single_bit><total>7</total></single_bit><double_bit><total>0</total></double_bit></volatile>",
    }
    sample = read(tmp_path, log(old, schema=10))
    assert (sample.values["power_draw"], sample.values["power_limit"]) == (26.78, 70.0)
    assert sample.values["throttle_reasons"] == ("hw_slowdown",)
    assert (sample.values["ecc_corrected"], sample.values["ecc_uncorrected"]) == (7, 0)


def test_schema_v13_deprecates_and_splits_power(tmp_path: Path) -> None:
    new = {
        "gpu_power_readings": "<power_draw>Requested functionality has been deprecated</power_draw>"
        "<average_power_draw>350.10 W</average_power_draw><instant_power_draw>402.00 W</instant_power_draw>",
        "fan_speed": "Requested functionality has been deprecated",
    }
    sample = read(tmp_path, log(new, schema=13))
    assert sample.values["power_draw"] == 350.1
    assert sample.gaps["fan_speed"] == "unsupported"


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ("N/A", "unsupported"),
        ("[N/A]", "unsupported"),
        ("", "unsupported"),
        ("Insufficient Permissions", "denied"),
        ("GPU is lost", "lost"),
        ("[GPU requires reset]", "lost"),
        ("Unknown Error", "failed"),
        ("97", "failed"),
    ],
)
def test_words_that_are_no_value_say_why(text: str, gap: str) -> None:
    assert gap_of(text) == gap


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0 %", 0),
        ("22.78 W", 22.78),
        ("3 MiB", 3 << 20),
        ("16x", 16),
        ("5", 5),
        ("-3 C", None),
        ("12 furlongs", None),
        ("1.2.3 W", None),
        (".", None),
        ("1_0 W", None),
        ("9" * 5000, None),
        ("٣ W", None),
    ],
)
def test_numbers_have_units_we_know_or_are_none(text: str, value: float | None) -> None:
    assert number(text)[0] == value


def test_a_lost_gpu_stands_beside_the_others(tmp_path: Path) -> None:
    lost = {
        "uuid": "GPU-3",
        "utilization": "<gpu_util>GPU is lost</gpu_util>",
        "temperature": "<gpu_temp>GPU is lost</gpu_temp>",
        "fb_memory_usage": "<total>GPU is lost</total>",
    }
    source = SmiSource(str(written(tmp_path, log({}, lost))))
    source.open()
    keys = frozenset({"utilization", "temperature", "memory_total"})
    assert [device.read(keys, None).state for device in source.devices] == ["ok", "lost"]


def test_mig_instances_have_their_memory_and_processes(tmp_path: Path) -> None:
    divided = {
        "mig_mode": "<current_mig>Enabled</current_mig>",
        "mig_devices": "<mig_device><index>0</index><gpu_instance_id>3</gpu_instance_id><compute_instance_id>0</compute_instance_id>"
        "<fb_memory_usage><total>9728 MiB</total><used>7 MiB</used></fb_memory_usage></mig_device>",
        "processes": "<process_info><gpu_instance_id>3</gpu_instance_id><compute_instance_id>0</compute_instance_id><pid>9</pid>"
        "<type>C</type><process_name>python</process_name><used_memory>5 MiB</used_memory></process_info>",
    }
    sample = read(tmp_path, log(divided))
    assert sample.values["mig_mode"] is True
    (part,) = sample.instances
    assert (part.values["memory_total"], part.values["gpu_instance"]) == (9728 << 20, 3)
    assert list(part.processes) == [9]
    assert sample.processes == {}


def test_windows_writes_utf_16_and_hides_what_it_may_not_say(tmp_path: Path) -> None:
    hidden = {
        "processes": "<process_info><pid>7</pid><type>C+G</type><process_name>Insufficient Permissions</process_name>"
        "<used_memory>N/A</used_memory></process_info>"
    }
    sample = read(tmp_path, log(hidden).encode("utf-16"))
    facts = sample.processes[7]
    assert facts.values["type"] == "C+G"
    assert facts.gaps == {"memory_used": "unsupported", "name": "denied"}


def test_a_name_that_breaks_the_xml_is_mended(tmp_path: Path) -> None:
    odd = {
        "processes": "<process_info><pid>7</pid><type>C</type><process_name>a&b\x01 --x</process_name></process_info>"
    }
    assert read(tmp_path, log(odd)).processes[7].values["name"] == "a&b"


def test_of_several_logs_the_last_whole_one_counts(tmp_path: Path) -> None:
    first, second = log(), log({"fan_speed": "77 %"})
    assert read(tmp_path, first + second + log()[:400]).values["fan_speed"] == 77


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path, log())
    source = SmiSource(str(path))
    assert read_one(source).values["fan_speed"] == 30
    written(tmp_path, log({"fan_speed": "31 %", "vbios_version": "95.1"}))
    assert read_one(source).values["fan_speed"] == 31
    path.write_text("nothing")
    assert read_one(source).values["fan_speed"] == 31
    assert "nvidia_smi_log" in source.problems[0].message
    written(tmp_path, log({"uuid": "GPU-another", "pci": ""}))
    assert read_one(source).state == "lost"


@pytest.mark.parametrize(
    "content", ["", "<nvidia_smi_log>", "<nvidia_smi_log></nvidia_smi_log>", '<!ENTITY a "b"><nvidia_smi_log/>']
)
def test_what_is_no_log_is_refused_in_one_sentence(tmp_path: Path, content: str) -> None:
    with pytest.raises(SourceUnavailable, match="nvidia-smi"):
        SmiSource(str(written(tmp_path, content))).open()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=r"none\.xml"):
        SmiSource(str(tmp_path / "none.xml")).open()


def test_without_a_file_the_program_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{log()}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    source = SmiSource()
    assert read_one(source).values["utilization"] == 97
    source.close()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(SourceUnavailable, match="not found"):
        SmiSource().open()


def test_a_slow_program_is_waited_for_once_and_not_by_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run takes longer than a sampler waits for a GPU; later ones go on while samples are taken."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nsleep 1.2\ncat <<'END'\n{log()}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    source = SmiSource()
    sampler = Sampler(source, Wanted(["utilization"])).open()
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    assert [sampler.read().gpus[0].utilization for _ in range(3)] == [97, 97, 97]
    assert source._run is not None  # it is still going on
    sampler.close()
    assert source._run is None


_KEYS = frozenset({"utilization"})


def test_a_file_that_broke_is_a_problem_until_it_is_mended(tmp_path: Path) -> None:
    file = tmp_path / "log.xml"
    file.write_text(log())
    source = SmiSource(str(file))
    source.open()
    file.write_text("broken")
    for _ in range(2):
        source.refresh()
        assert len(source.problems) == 1
    file.write_text(log())
    source.refresh()
    assert not source.problems


def test_a_failing_program_leaves_the_last_log_for_some_seconds_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{log()}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    source = SmiSource()
    source.open()
    program.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'\nexit 9\n")
    source._ran = float("-inf")
    end = time.monotonic() + 20
    while not source.problems and time.monotonic() < end:
        source.refresh()
        time.sleep(0.01)
    assert "has failed" in source.problems[0].message
    source.refresh()
    assert source.problems
    (gpu,) = source.devices
    assert gpu.read(_KEYS, None).values["utilization"] == 97
    source._came -= 60.0
    for _ in range(4):
        source.refresh()
    late = gpu.read(_KEYS, None)
    assert (late.state, late.values, late.gaps) == ("timeout", {}, {"utilization": "timeout"})
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{log()}\nEND\n")
    while source.problems and time.monotonic() < end:
        source._ran = float("-inf")
        source.refresh()
        time.sleep(0.01)
    assert gpu.read(_KEYS, None).values["utilization"] == 97
    source.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(st.data())
def test_no_cut_and_no_change_of_the_text_raises(tmp_path: Path, data: st.DataObject) -> None:
    whole = log().encode()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    content = whole[:start] + data.draw(st.binary(max_size=20)) + whole[end:]
    try:
        parse_log(decode(content))
    except SourceUnavailable:
        return
    sample = read(tmp_path, content) if parse_log(decode(content)).findall("gpu") else None
    assert sample is None or sample.state in ("ok", "lost")
