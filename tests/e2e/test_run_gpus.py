"""`gpulse run` and GPUs: what is seen of the command's own, and how free ones are shared out."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpulse.store.claims import claim, claimed
from tests.e2e.lab import Lab, environment
from tests.fake_nvml import Scenario

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

PATIENCE = 60.0
RUN = (sys.executable, "-m", "gpulse", "run")
FAST = ("--window", "0.2s")
UUIDS = [f"GPU-0000000{at}-1111-2222-3333-444444444444" for at in range(4)]


def machine(*free: int) -> Scenario:
    """Four GPUs of which these are free; this process holds the others."""
    scenario = Scenario.parse("include boards/h100\n[driver]\ngpus = 4")
    for at in range(4):
        scenario.gpu(at, uuid=UUIDS[at], pci__bus_id=f"00000000:{at + 1:02X}:00.0", utilization__gpu=10 + at)
        if at in free:
            scenario.gpu(at, utilization__gpu=0, memory__used=0)
        else:
            scenario.process(gpu=at, pid=os.getpid(), memory="60 GiB")
    return scenario


@pytest.fixture
def claims(tmp_path: Path) -> str:
    folder = tmp_path / "claims"
    folder.mkdir()
    return str(folder)


def on(scenario: Scenario, folder: Path, **more: str) -> dict[str, str]:
    return environment(scenario, folder / "machine", **more)


def until(seen: Callable[[], object], what: str = "") -> None:
    end = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < end, what
        time.sleep(0.01)


# --- watching

# A command that puts itself and a grandchild onto GPUs: the driver's script is a pipe, read when the driver is loaded
USING = """
import os, subprocess, sys, time
grandchild = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
pids = {"CHILD": os.getpid(), "GRANDCHILD": int(grandchild.stdout.readline())}
text = open(sys.argv[1]).read()
for name, pid in pids.items():
    text = text.replace(f"pid = {name}\\n", f"pid = {pid}\\n")
open(os.environ["FAKE_NVML_SCENARIO"], "w").write(text)
time.sleep(float(sys.argv[2]))
os.kill(pids["GRANDCHILD"], 9)
"""


def watched(scenario: Scenario, folder: Path, *words: str, seconds: float = 1.0, **more: str) -> list[str]:
    """What is said at the end of a command on the GPUs that the scenario has CHILD and GRANDCHILD on."""
    environ = on(scenario, folder, **more)
    script = environ["FAKE_NVML_SCENARIO"]
    os.rename(script, f"{script}.text")
    os.mkfifo(script)
    done = subprocess.run(
        [*RUN, "--interval", "0.1", *words, sys.executable, "-c", USING, f"{script}.text", str(seconds)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_only_its_own_gpus_are_told_with_grandchildren_and_their_memory(tmp_path: Path) -> None:
    scenario = machine()  # this process is on every GPU, and no part of the command
    scenario.process(gpu=1, pid="CHILD", memory="3 GiB").process(gpu=1, pid="GRANDCHILD", memory="4 GiB")
    scenario.process(gpu=2, pid="GRANDCHILD", memory="5 GiB")
    first, *lines = watched(scenario, tmp_path)
    assert first.endswith("· exit 0")
    assert [line.split()[:2] for line in lines if line.startswith("  GPU")] == [["GPU", "1"], ["GPU", "2"]]
    assert "util 11 % (p95 11)" in lines[0]
    assert "peak memory 7.0 GiB of" in lines[0]
    assert "peak memory 5.0 GiB of" in lines[1]
    assert re.fullmatch(r"  Others: .*python \(pid \d+\) on GPUs 1, 2: .* GiB\.", lines[2])
    assert "peak host memory" in lines[3]


def test_a_command_on_no_gpu_is_told_so(tmp_path: Path) -> None:
    _, second, *rest = watched(machine(), tmp_path)
    assert second == "  none of its processes used a GPU"
    assert not any("GPU " in line for line in rest)


def test_energy_is_told(tmp_path: Path) -> None:
    scenario = machine(0).gpu(0, power="100 W", energy="counter(1000000, 100000)").process(gpu=0, pid="CHILD", memory=1)
    lines = watched(scenario, tmp_path, seconds=6.5)
    found = re.search(r"100 W · (\d+) J", "\n".join(lines))
    assert found is not None, lines
    assert 400 <= int(found[1]) <= 900


def test_without_an_energy_counter_energy_is_estimated_and_priced(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[cost]\nprice = 0.3\ngpu_price = 9999\ncurrency = "EUR"\n')
    scenario = machine(0).gpu(0, power="100 W", energy="error NOT_SUPPORTED").process(gpu=0, pid="CHILD", memory=1)
    words = ("--gpu-price", "3600", "--carbon", "400")
    lines = watched(scenario, tmp_path, *words, seconds=2.5, GPULSE_CONFIG=str(config))
    text = "\n".join(lines)
    assert re.search(r"100 W · \d+ J \(estimated\)", text), text
    found = re.search(r"cost (\d+\.\d\d) EUR \(GPU time (\d+\.\d\d), energy [^)]+\), of that idle", text)
    assert found is not None, text
    assert 2.0 <= float(found[2]) <= 15.0  # one per second: the option stands before the settings
    assert "CO2e · energy estimated from power" in text


def test_a_mistake_in_the_prices_does_not_touch_the_command(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[cost]\nprice = -1\n")
    lines = watched(machine(0).process(gpu=0, pid="CHILD", memory=1), tmp_path, GPULSE_CONFIG=str(config))
    assert any(
        line.startswith(f"  no cost: {config}, line 2: cost.price: -1 is not between 0 and") for line in lines
    ), lines


@pytest.mark.parametrize(
    ("scenario", "sentence"),
    [
        (Scenario.load("not-loaded"), "GPUs were not sampled: "),
        (Scenario.load("init-hang"), "GPUs were not sampled: "),
        (
            machine(0).fault(function="nvmlDeviceGet*", gpu="all", hang="60s"),
            "GPUs were not sampled: the driver did not respond.",
        ),
        (machine(0).fault(function="nvmlDeviceGetPower*", gpu=0, hang="60s"), "GPU 0 H100 80GB HBM3 · timeout"),
        (machine(0).lose(0, since="1s"), "GPU 0 H100 80GB HBM3 · lost"),
    ],
    ids=["no driver", "a driver that never starts", "a driver that hangs", "a GPU that hangs", "a lost GPU"],
)
def test_a_driver_in_trouble_is_not_the_commands_trouble(tmp_path: Path, scenario: Scenario, sentence: str) -> None:
    start = time.monotonic()
    done = subprocess.run(
        [*RUN, "--interval", "0.1", "sh", "-c", "sleep 3.5; echo done; exit 9"],
        env=on(scenario, tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert time.monotonic() - start < 40  # the hanging calls take a minute
    assert (done.returncode, done.stdout) == (9, "done\n")
    lines = done.stderr.splitlines()
    assert re.match(r"gpulse: sh -c sleep 3\.5; echo done; exit 9 · \d+\.\d+ s", lines[0])
    assert sentence in "".join(lines[1:])
    assert "Traceback" not in done.stderr
    assert len(lines) <= 4


def test_no_driver_at_all_is_one_line(tmp_path: Path) -> None:
    environ = on(machine(), tmp_path)
    del environ["LD_LIBRARY_PATH"]
    done = subprocess.run(
        [*RUN, "sh", "-c", "sleep 1; exit 9"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 9
    assert len(done.stderr.splitlines()) == 2


# --- free ones


def test_the_command_gets_free_gpus_by_uuid(lab: Lab, claims: str) -> None:
    show = 'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"'
    answer = lab.run(machine(1, 3), "run", *FAST, "-q", "--gpus", "2", "--", "sh", "-c", show, GPULSE_CLAIMS=claims)
    assert (answer.code, answer.out, answer.err) == (0, f"{UUIDS[1]},{UUIDS[3]} PCI_BUS_ID\n", "")
    words = ("run", *FAST, "-q", "-n1", "--gpu", "3", "sh", "-c", show)
    assert lab.run(machine(1, 3), *words, GPULSE_CLAIMS=claims).out == f"{UUIDS[3]} PCI_BUS_ID\n"
    assert claimed(UUIDS, claims) == {}


def test_only_claims_are_added_to_its_files(lab: Lab, claims: str) -> None:
    words = ("sh", "-c", "readlink /proc/$$/fd/*")
    alone = lab.run(machine(1), "run", "-q", *words, GPULSE_CLAIMS=claims).out.splitlines()
    files = lab.run(machine(1), "run", *FAST, "-q", "--gpus", "1", *words, GPULSE_CLAIMS=claims).out.splitlines()
    added = [line for line in files if "/claims/" in line]
    assert added == [f"{claims}/gpulse-{UUIDS[1]}.lock"]
    assert len(files) == len(alone) + 1


def test_too_few_are_exit_1_with_the_reasons_and_no_command(lab: Lab, claims: str, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    answer = lab.run(machine(1), "run", *FAST, "--gpus", "2", "touch", str(ran), GPULSE_CLAIMS=claims)
    assert (answer.code, answer.out, ran.exists()) == (1, "", False)
    first, *reasons, cure = answer.err.splitlines()
    assert first == "gpulse: 1 of 4 GPUs are free, 2 requested."
    assert [reason.split(":")[0] for reason in reasons] == ["  GPU 0", "  GPU 2", "  GPU 3"]
    assert "gpulse run --wait" in cure


def test_a_claimed_gpu_is_left_to_its_owner(lab: Lab, claims: str) -> None:
    words = ("run", *FAST, "-q", "--gpus", "1", "printenv", "CUDA_VISIBLE_DEVICES")
    with claim(UUIDS[1], claims) or pytest.fail("nobody has it"):
        assert lab.run(machine(1, 3), *words, GPULSE_CLAIMS=claims).out == f"{UUIDS[3]}\n"


def test_time_that_is_up_is_exit_124_with_the_reasons(lab: Lab, claims: str) -> None:
    answer = lab.run(machine(), "run", *FAST, "--gpus", "1", "--timeout", "0.5", "true", GPULSE_CLAIMS=claims)
    assert (answer.code, answer.out) == (124, "")
    assert answer.err.startswith("gpulse: waiting: 0 of 4 GPUs are free, 1 requested.\n")
    assert "GPU 3: 60.0 GiB held by" in answer.err


@pytest.mark.parametrize("words", [("--gpus", "5"), ("--gpus", "1", "--free-memory", "100GiB")])
def test_nobody_waits_for_what_can_never_be(lab: Lab, claims: str, words: tuple[str, ...]) -> None:
    answer = lab.run(machine(0), "run", *words, *FAST, "--wait", "true", GPULSE_CLAIMS=claims)
    assert answer.code == 1
    assert "Request fewer GPUs" in answer.err


def test_claims_that_cannot_be_made_are_one_sentence(lab: Lab, tmp_path: Path) -> None:
    answer = lab.run(machine(0), "run", *FAST, "--gpus", "1", "true", GPULSE_CLAIMS=str(tmp_path / "nowhere"))
    assert (answer.code, answer.out, answer.err.count("\n")) == (1, "", 1)
    assert "nowhere" in answer.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_while_waiting_ends_it_silently(tmp_path: Path, claims: str, number: int, code: int) -> None:
    with subprocess.Popen(
        [*RUN, *FAST, "--gpus", "1", "--wait", "true"],
        env=on(machine(), tmp_path, GPULSE_CLAIMS=claims),
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr is not None
        assert child.stderr.readline().startswith("gpulse: waiting")
        assert [child.stderr.readline().split(":")[0] for _ in range(4)] == [f"  GPU {at}" for at in range(4)]
        assert child.stderr.readline().startswith("  first in the queue; when it can start is not known")
        child.send_signal(number)
        assert child.stderr.read() == ""
        assert child.wait(PATIENCE) == code


def test_a_signal_reaches_the_command_although_a_thread_hangs_in_the_driver(tmp_path: Path, claims: str) -> None:
    hanging = machine(0, 1).fault(function="nvmlDeviceGetUtilization*", gpu=1, hang="60s")
    with subprocess.Popen(
        [*RUN, *FAST, "-q", "--gpus", "1", "sh", "-c", "trap 'exit 8' TERM; echo $$; while :; do sleep 0.05; done"],
        env=on(hanging, tmp_path, GPULSE_CLAIMS=claims),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert len(os.listdir(f"/proc/{process.pid}/task")) > 1  # the thread that hangs
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(PATIENCE) == 8
        finally:
            if process.returncode != 8:
                os.kill(child, signal.SIGKILL)


def start(environ: dict[str, str], log: Path, gate: Path) -> subprocess.Popen[bytes]:
    """A run that waits for one GPU; its command writes its pid down and stays until the gate is there."""
    code = 'echo $$ >> "$0"; while [ ! -e "$1" ]; do sleep 0.02; done'
    return subprocess.Popen(
        [*RUN, *FAST, "-q", "--gpus", "1", "--wait", "sh", "-c", code, str(log), str(gate)], env=environ
    )


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def test_the_second_waits_until_the_first_has_ended(tmp_path: Path, claims: str) -> None:
    environ = on(machine(2), tmp_path, GPULSE_CLAIMS=claims)
    first = start(environ, tmp_path / "log", tmp_path / "gate")
    until(lambda: lines(tmp_path / "log"))
    with subprocess.Popen(
        [*RUN, *FAST, "--gpus", "1", "--wait", "sh", "-c", 'test -e "$0"', str(tmp_path / "gate")],
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
    ) as second:
        assert second.stderr is not None
        assert second.stderr.readline().startswith("gpulse: waiting: 0 of 4")
        (tmp_path / "gate").touch()
        assert first.wait(PATIENCE) == 0
        assert second.wait(PATIENCE) == 0


def test_a_claim_outlives_us_and_ends_with_the_command(tmp_path: Path, claims: str) -> None:
    run = start(on(machine(2), tmp_path, GPULSE_CLAIMS=claims), tmp_path / "log", tmp_path / "gate")
    until(lambda: lines(tmp_path / "log"))
    run.kill()
    run.wait()
    assert list(claimed(UUIDS, claims)) == [UUIDS[2]]
    os.kill(int(lines(tmp_path / "log")[0]), signal.SIGKILL)
    until(lambda: not claimed(UUIDS, claims))


RACER = """
import os, sys, time
uuid = os.environ["CUDA_VISIBLE_DEVICES"]
file = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
os.write(file, f"{uuid} begins\\n".encode())
time.sleep(0.05)
os.write(file, f"{uuid} ends\\n".encode())
"""


def test_many_that_race_never_share_a_gpu(tmp_path: Path, claims: str) -> None:
    environ = on(machine(1, 2), tmp_path, GPULSE_CLAIMS=claims)
    log = tmp_path / "log"
    log.touch()
    words = (*RUN, "--window", "0", "-q", "--gpus", "1", "--wait", sys.executable, "-S", "-c", RACER, str(log))
    racers = [subprocess.Popen(words, env=environ) for _ in range(20)]
    assert [racer.wait(2 * PATIENCE) for racer in racers] == [0] * 20
    held: set[str] = set()
    for line in log.read_text().splitlines():
        uuid, what = line.split()
        assert (uuid in held) == (what == "ends"), log.read_text()
        (held.remove if what == "ends" else held.add)(uuid)
    assert log.read_text().count("begins") == 20
    assert {line.split()[0] for line in log.read_text().splitlines()} == {UUIDS[1], UUIDS[2]}


def test_two_at_once_both_get_one_without_waiting(tmp_path: Path, claims: str) -> None:
    environ = on(machine(1, 2), tmp_path, GPULSE_CLAIMS=claims)
    words = (
        *RUN,
        *FAST,
        "-q",
        "--gpus",
        "1",
        "sh",
        "-c",
        'echo x >> "$0"; while [ $(wc -l < "$0") -lt 2 ]; do sleep 0.02; done',
    )
    racers = [subprocess.Popen([*words, str(tmp_path / "log")], env=environ) for _ in range(2)]
    assert [racer.wait(PATIENCE) for racer in racers] == [0, 0]
