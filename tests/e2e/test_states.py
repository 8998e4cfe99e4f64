"""GPUs that get lost, drivers that stop answering, calls that hang: what is shown, and that it never takes long."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gpulse.analysis.alerts import RuleSet, rules_from
from gpulse.analysis.events import EventDetector
from gpulse.model.codec import from_line
from gpulse.model.snapshot import Snapshot
from tests.e2e.lab import Lab, environment
from tests.fake_nvml import Scenario

SOON = 20.0  # seconds; far less than what hangs, and enough for a busy machine
VALUES = ("utilization", "memory_used", "temperature", "power_draw", "sm_active", "energy")


def machine(gpus: int = 3) -> Scenario:
    return Scenario.load("boards/h100").driver(gpus=gpus).gpu(None, gpm__latch=0)


def states(snapshot: Any) -> list[str]:
    return [gpu["state"] for gpu in snapshot["gpus"]]


def samples(lab: Lab, scenario: Scenario, *moments: float, before: str = "") -> Any:
    """What is seen at these moments of the scenario."""
    steps = "".join(f"at({moment})\nseen.append(sample(over))\n" for moment in moments)
    start = "import gpulse.sources.nvidia.source as source\nsource._REOPEN_EVERY = 0.0\n"
    return lab.see(scenario, f"{start}{before}\nover = sampler(slow_every=0)\nseen = []\n{steps}say(seen)\n")


def test_a_gpu_that_falls_off_the_bus_is_lost_until_it_is_back_and_the_others_go_on(lab: Lab) -> None:
    scenario = machine(4).fault(function="*", gpu=2, code="GPU_IS_LOST", since="2s", until="6s")
    seen = samples(lab, scenario, 0, 1, 3, 4, 7, 8)
    assert [states(snapshot)[2] for snapshot in seen] == ["ok", "ok", "lost", "lost", "ok", "ok"]
    lost, still, back = (seen[at]["gpus"][2] for at in (2, 3, 5))
    assert lost["since"] == still["since"] == seen[2]["time"]
    assert "since" not in back
    assert lost["uuid"] == back["uuid"]
    assert lost["name"] == "NVIDIA H100 80GB HBM3"
    for key in VALUES:
        assert (lost[key], lost["gaps"][key]) == (None, "lost")
        assert back[key] is not None
    for snapshot in seen[1:]:
        for at in (0, 1, 3):
            assert snapshot["gpus"][at]["state"] == "ok"
            assert all(snapshot["gpus"][at][key] is not None for key in VALUES)


def test_a_gpu_that_needs_a_reset_counts_as_lost(lab: Lab) -> None:
    seen = samples(lab, machine().fault(function="*", gpu=0, code="RESET_REQUIRED", since="2s"), 1, 3)
    assert states(seen[1]) == ["lost", "ok", "ok"]


def test_the_only_gpu_keeps_its_name_while_it_is_lost(lab: Lab) -> None:
    seen = samples(
        lab, machine(1).fault(function="*", gpu=0, code="GPU_IS_LOST", since="2s", until="9s"), 1, 3, 4, 5, 10
    )
    for snapshot in seen[1:4]:
        (gpu,) = snapshot["gpus"]
        assert gpu["state"] == "lost"
        assert gpu["since"] == seen[1]["time"]
        assert gpu["uuid"] == seen[0]["gpus"][0]["uuid"]
    assert seen[4]["gpus"][0]["state"] == "ok"
    assert seen[4]["gpus"][0]["utilization"] is not None


@pytest.mark.parametrize("word", ["UNKNOWN", "LIB_RM_VERSION_MISMATCH", "UNINITIALIZED"])
def test_a_driver_that_stops_answering_is_started_anew(lab: Lab, word: str) -> None:
    seen = samples(lab, machine(2).fault(function="*", code=word, since="2s", until="6s"), 0, 1, 3, 4, 5, 7, 8)
    assert all(len(snapshot["gpus"]) == 2 for snapshot in seen)
    for snapshot in seen[2:5]:
        for gpu in snapshot["gpus"]:
            assert gpu["name"] == "NVIDIA H100 80GB HBM3"
            assert all(gpu[key] is None for key in VALUES)
            assert gpu["gaps"]["utilization"] == "failed"
    told = seen[4]["errors"][0]
    assert told["source"] == "nvidia"
    assert ("different versions" in told["message"]) is (word == "LIB_RM_VERSION_MISMATCH")
    assert told["remedy"]
    assert seen[-1]["errors"] == []
    assert all(gpu[key] is not None for gpu in seen[-1]["gpus"] for key in VALUES)


@pytest.mark.parametrize("word", ["UNKNOWN", "UNINITIALIZED", "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH"])
@pytest.mark.parametrize("function", ["*", "nvmlDevice*"])
def test_a_driver_that_fails_for_a_while_is_one_alert_and_one_clear(lab: Lab, word: str, function: str) -> None:
    moments = [*range(0, 40, 2)]
    seen = samples(lab, machine(2).fault(function=function, code=word, since="5s", until="25s"), *moments)
    book, detector = RuleSet(rules_from({})), EventDetector()
    turned, events = [], []
    for moment, plain in zip(moments, seen, strict=True):
        failing = 5 < moment < 25
        assert len({gpu["uuid"] for gpu in plain["gpus"]}) == 2
        assert all((gpu["state"] != "ok") is failing for gpu in plain["gpus"])
        one = from_line(json.dumps(plain))
        snapshot = Snapshot(1e9 + moment, one.gpus, one.host, one.driver, one.problems)
        turned += [(turn.event.rule, turn.event.alert, turn.event.gpus) for turn in book.observe(snapshot)]
        events += [event.kind for event in detector.observe(snapshot)]
    lost = [turn for turn in turned if turn[0] == "lost"]
    assert sorted(lost) == sorted(("lost", word, (gpu,)) for word in ("fire", "clear") for gpu in "01")
    assert not {"removed", "added"} & set(events)
    assert events.count("back") == 2


def test_a_gpu_whose_handle_fails_has_a_state_and_gaps(lab: Lab) -> None:
    (seen,) = samples(lab, machine(2).gpu(1, handle="error UNKNOWN"), 1)
    assert states(seen) == ["ok", "timeout"]
    assert {seen["gpus"][1]["gaps"][key] for key in (*VALUES, "uuid", "name", "processes")} == {"failed"}


def test_a_gpu_that_was_closed_at_the_start_does_not_hide_that_all_others_fell_silent(lab: Lab) -> None:
    scenario = machine().gpu(1, handle="error NO_PERMISSION").fault(function="*", code=999, since="2s", until="4s")
    seen = samples(lab, scenario, 1, 3, 3.5, 5, 6)
    assert seen[2]["errors"]
    assert [gpu["utilization"] is None for gpu in seen[-1]["gpus"]] == [False, True, False]
    assert seen[-1]["gpus"][1]["gaps"]["utilization"] == "denied"


def test_a_sampler_that_meets_an_error_at_one_sample_has_the_next(lab: Lab) -> None:
    flaky = machine().fault(function="nvmlDeviceGet*", gpu="all", code="TIMEOUT", every=3)
    seen = samples(lab, flaky, *range(6))
    assert all(states(snapshot) == ["ok"] * 3 for snapshot in seen)
    assert {gpu["utilization"] is None for snapshot in seen for gpu in snapshot["gpus"]} == {True, False}
    assert all(not snapshot["errors"] for snapshot in seen)


def start(scenario: Scenario, folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], float]:
    command = [sys.executable, "-m", "gpulse", *arguments]
    env = environment(scenario, folder)
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True), time.time()


def end(process: subprocess.Popen[str], started: float) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that must be over soon."""
    try:
        out, err = process.communicate(timeout=max(0.0, started + SOON - time.time()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return -1, "", f"still running after {SOON:.0f} s"
    return process.returncode, out, err


HANGS = {  # the call that does not come back on GPU 1, and the command that meets it
    "nvmlDeviceGetPowerUsage": ("--json",),
    "nvmlDeviceGetUtilizationRates": ("--json", "--gpu", "0-2"),
    "nvmlGpmSampleGet": ("--json",),
    "nvmlGpmQueryDeviceSupport": ("--json",),
    "nvmlDeviceGetName": ("--json",),
    "nvmlDeviceGetHandleByIndex_v2": ("--json",),
    "nvmlDeviceGetMigMode": ("--json", "--gpu", "0-2"),
}


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """All hanging commands, run side by side: they do little but wait."""
    folder = tmp_path_factory.mktemp("hung")
    started = {
        function: start(machine().fault(function=function, gpu=1, hang="60s"), folder / function, *arguments)
        for function, arguments in HANGS.items()
    }
    started["nvmlShutdown"] = start(machine().fault(function="nvmlShutdown", hang="60s"), folder / "shutdown", "--json")
    return {function: end(*process) for function, process in started.items()}


@pytest.mark.parametrize("function", HANGS)
def test_a_call_that_hangs_marks_its_gpu_and_the_others_are_right(
    hung: dict[str, tuple[int, str, str]], function: str
) -> None:
    code, out, err = hung[function]
    assert (code, err) == (0, "")
    gpus = json.loads(out)["gpus"]
    assert [gpu["state"] for gpu in gpus] == ["ok", "timeout", "ok"]
    for key in VALUES:
        assert (gpus[1].get(key), gpus[1]["gaps"][key]) == (None, "timeout")
        assert all(gpus[at][key] is not None for at in (0, 2))


def test_a_shutdown_that_hangs_does_not_keep_the_answer_back(hung: dict[str, tuple[int, str, str]]) -> None:
    code, out, err = hung["nvmlShutdown"]
    assert (code, err) == (0, "")
    assert len(json.loads(out)["gpus"]) == 3


@pytest.mark.parametrize("function", ["nvmlDevice*", "nvmlDeviceGetPowerUsage"])
def test_a_driver_in_which_every_gpu_hangs_is_answered_soon(tmp_path: Path, function: str) -> None:
    code, out, err = end(*start(machine(32).fault(function=function, gpu="all", hang="60s"), tmp_path, "--json"))
    assert (code, err) == (0, "")
    assert states(json.loads(out)) == ["timeout"] * 32


def test_a_process_list_that_hangs_costs_the_processes_of_its_gpu_only(lab: Lab) -> None:
    scenario = machine().fault(function="nvmlDeviceGetComputeRunningProcesses*", gpu=1, hang="60s")
    seen = lab.see(scenario, "over = sampler(patience=0.3)\nsay([sample(over) for _ in range(3)])")
    for snapshot in seen:
        assert states(snapshot) == ["ok", "ok", "ok"]
        assert [gpu["gaps"].get("processes") for gpu in snapshot["gpus"]] == [None, "timeout", None]
        assert all(gpu["power_draw"] is not None for gpu in snapshot["gpus"])


def test_a_driver_whose_start_hangs_is_one_sentence_and_exit_124(tmp_path: Path) -> None:
    code, out, err = end(*start(Scenario.load("init-hang"), tmp_path))
    assert (code, out) == (124, "")
    assert err.startswith("gpulse: nvidia: the driver does not respond.")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("scenario", "silent"), [("version-hang", ["version"]), ("versions-hang", ["version", "cuda", "nvml"])]
)
def test_a_version_that_hangs_costs_itself_and_no_gpu(lab: Lab, scenario: str, silent: list[str]) -> None:
    plain = lab.see(Scenario.load(scenario), "say(sample(sampler(patience=0.3)))")
    assert {"version", "cuda", "nvml"} - plain["driver"].keys() == set(silent)
    assert [problem["message"] for problem in plain["errors"]] == [
        f"the driver does not respond when asked for {word}."
        for word in ("its version", "the CUDA version", "the NVML version")[: len(silent)]
    ]
    for gpu in plain["gpus"]:
        assert (gpu["state"], gpu["gaps"]["driver_version"]) == ("ok", "timeout")
        assert gpu["uuid"]
        assert gpu["power_draw"] > 0


def test_a_gpu_whose_call_hangs_is_not_asked_again_until_it_has_returned(lab: Lab) -> None:
    scenario = machine().fault(function="nvmlDeviceGetPowerUsage", gpu=1, hang="1500ms", until="5s")
    answer = lab.ask(
        scenario,
        """
import threading
over = sampler(Wanted(["power_draw"]), patience=0.2)
seen = [sample(over)]
stuck = next(thread for thread in threading.enumerate() if thread.name == "gpulse-driver")  # the first one is left behind
seen += [sample(over) for _ in range(3)]
at(6)
stuck.join()
seen.append(sample(over))
over.close()
say(seen)
""",
    )
    assert [states(snapshot)[1] for snapshot in answer.json] == ["timeout"] * 4 + ["ok"]
    assert len({snapshot["gpus"][1].get("since") for snapshot in answer.json[:4]}) == 1
    assert all(gpu["power_draw"] > 400 for snapshot in answer.json for gpu in snapshot["gpus"] if gpu["state"] == "ok")
    assert answer.calls["nvmlDeviceGetPowerUsage"] == 3 + 3 * 2 + 3


def test_a_call_that_hangs_leaves_each_of_two_gpus_behind_and_no_more(lab: Lab) -> None:
    scenario = machine(4).fault(function="nvmlDeviceGetPowerUsage", gpu="1-2", hang="60s")
    seen = lab.see(scenario, 'say(sample(sampler(Wanted(["power_draw"]), patience=0.2)))')
    assert states(seen) == ["ok", "timeout", "timeout", "ok"]


STARTS = {
    "not-loaded": (Scenario.load("not-loaded"), "not loaded", "modprobe"),
    "mismatch": (Scenario.load("mismatch"), "different versions", "Reboot"),
    "no GPU": (Scenario().driver(version="580.1", gpus=0), "lists no GPU", "--gpus all"),
    "no permission": (Scenario().driver(gpus=1).fault(function="nvmlInit*", code=4), "NO_PERMISSION", "/dev/nvidia"),
    "any other": (Scenario().driver(gpus=1).fault(function="nvmlInit*", code=17), "OPERATING_SYSTEM", "nvidia-smi"),
}


@pytest.mark.parametrize("case", STARTS)
@pytest.mark.parametrize("arguments", [(), ("--json",), ("--watch",)])
def test_no_gpu_is_exit_3_with_cause_and_remedy_in_one_line(lab: Lab, case: str, arguments: tuple[str, ...]) -> None:
    scenario, cause, remedy = STARTS[case]
    answer = lab.run(scenario, *arguments)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.count("\n") == 1
    assert cause in answer.err
    assert remedy in answer.err


def test_a_mismatch_names_both_versions(lab: Lab, tmp_path: Path) -> None:
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Thu Oct 1 2026\n")
    (tmp_path / "usr/lib64").mkdir(parents=True)
    (tmp_path / "usr/lib64/libnvidia-ml.so.585.10").touch()
    answer = lab.run(Scenario.load("mismatch"), GPULSE_ROOT=str(tmp_path))
    assert "580.159.04" in answer.err
    assert "585.10" in answer.err


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        ({}, "nor an NVIDIA GPU"),
        ({"sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de", "sys/bus/pci/devices/0000:01:00.0/class": "0x030000"},
         "found a GPU but no driver"),
        ({"proc/driver/nvidia/version": "NVRM version: Kernel Module  580.1"}, "was not found"),
    ],
)  # fmt: skip
def test_no_library_is_exit_3_and_says_what_is_there(tmp_path: Path, files: dict[str, str], cause: str) -> None:
    from gpulse.sources.nvidia.nvml import _PLACES

    if any(Path(place).exists() for place in _PLACES):
        pytest.skip("this machine has a driver")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    env = environment(Scenario(), tmp_path / "fake", GPULSE_ROOT=str(tmp_path))
    env.pop("LD_LIBRARY_PATH")
    done = subprocess.run([sys.executable, "-m", "gpulse"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert cause in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_mig_instance_is_chosen_by_its_uuid_and_by_what_is_visible(lab: Lab, tmp_path: Path) -> None:
    scenario = Scenario.load("h100-mig")
    whole = lab.see(scenario, "say(sample(sampler()))")
    instances = [part for gpu in whole["gpus"] for part in gpu.get("instances", ())]
    wanted = instances[1]["uuid"]
    for number, (words, more) in enumerate((([wanted], {}), (["visible"], {"CUDA_VISIBLE_DEVICES": wanted}))):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-m", "gpulse", "--json", "--gpu", *words],
            env=environment(scenario, folder) | more,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        (gpu,) = json.loads(done.stdout)["gpus"]
        assert (gpu["uuid"], gpu["memory_total"]) == (wanted, instances[1]["memory_total"])
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", "--gpu", "MIG-no-such"],
        env=environment(scenario, tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, wanted in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("verb", ["status", "doctor"])
def test_a_link_below_its_maximum_under_load_is_said(lab: Lab, verb: str) -> None:
    link = {"pcie__gen": 5, "pcie__gen__max": 5, "pcie__width": 4, "pcie__width__max": 16, "utilization__gpu": 97}
    assert "PCIe x4 of x16" in lab.run(machine(1).gpu(0, **link), verb).out
    assert "PCIe x" not in lab.run(machine(1).gpu(0, **{**link, "pcie__width": 16}), verb).out


@pytest.mark.parametrize("function", ["nvmlDeviceGetMigMode", "nvmlDeviceGetAddressingMode"])
def test_what_hangs_before_the_first_sample_is_not_waited_for_again_by_the_process_lists(
    lab: Lab, function: str
) -> None:
    answer = lab.run(machine().fault(function=function, gpu="all", hang="60s"), "--json")
    assert answer.code == 0
    assert [gpu["state"] for gpu in answer.gpus] == ["timeout"] * 3
    assert answer.calls[function] == 3  # once per GPU


def test_only_what_is_wrong_is_shown_on_request(lab: Lab) -> None:
    scenario = machine(3).fault(function="*", gpu=1, code="GPU_IS_LOST", since="1s")
    done = lab.run(scenario, "--problems")
    assert (done.out[2:13].split("  "), done.err) == (["GPU 1", "lost"], "")
    found = lab.run(scenario, "--problems", "--json").json
    assert (found[0]["key"], found[0]["severity"]) == ("lost", "critical")
    assert all(one["gpus"] == ["1"] for one in found)
    assert lab.run(machine(2), "--problems").out == "Nothing is wrong.\n"


def test_without_activity_no_counter_is_read_and_nothing_is_shown_for_it(lab: Lab) -> None:
    shown = lab.run(Scenario.load("h200-busy"), "--no-activity")
    assert (shown.code, shown.err) == (0, "")
    assert "tensor" not in shown.out
    assert "DRAM" not in shown.out
    assert "100 %" in shown.out
    told = lab.run(Scenario.load("h200-busy"), "--no-activity", "--json")
    assert told.gpus[0]["utilization"] == 100
    assert told.gpus[0].get("sm_active") is None
    named = lab.run(Scenario.load("h200-busy"), "--no-activity", "--columns", "sm_active")
    assert "82 %" in named.out, "what is named is read"
    assert not [name for answer in (shown, told) for name in answer.calls if name.startswith("nvmlGpmSampleGet")]
    assert [name for name in named.calls if name.startswith("nvmlGpmSampleGet")]
