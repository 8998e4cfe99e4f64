"""Picking free GPUs on scripted machines, and the devices a program sees."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.store.claims import claim
from tests.e2e.lab import Lab, environment
from tests.fake_nvml import Scenario

FAST = ("--window", "0.2s")


def dgx(*free: int) -> Scenario:
    """Eight GPUs of which these are free; this process holds the others."""
    scenario = Scenario.load("dgx-h100x8")
    for index in range(8):
        if index in free:
            scenario.gpu(index, utilization__gpu=0, memory__used=0)
        else:
            scenario.process(gpu=index, pid=os.getpid(), memory="60 GiB")
    return scenario


@pytest.fixture
def claims(tmp_path: Path) -> str:
    return str(tmp_path)


@pytest.fixture(scope="module")
def uuids(lab: Lab) -> list[str]:
    return [gpu["uuid"] for gpu in lab.run(dgx(), "--json").gpus]


def test_the_answer_is_a_value_for_cuda_visible_devices(lab: Lab, uuids: list[str], claims: str) -> None:
    answer = lab.run(dgx(5, 2), "pick", "2", *FAST, GPULSE_CLAIMS=claims)
    assert (answer.code, answer.out, answer.err) == (0, f"{uuids[2]},{uuids[5]}\n", "")
    assert lab.run(dgx(5, 2), "pick", *FAST, "--by", "index", GPULSE_CLAIMS=claims).out == "2\n"
    line = lab.run(dgx(5), "pick", *FAST, "--by", "env", GPULSE_CLAIMS=claims).out
    assert line == f"export CUDA_VISIBLE_DEVICES={uuids[5]} CUDA_DEVICE_ORDER=PCI_BUS_ID\n"
    shown = subprocess.run(
        ["sh", "-c", 'eval "$1"; echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER"', "sh", line],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == f"{uuids[5]} PCI_BUS_ID\n"


def test_too_few_are_exit_1_with_a_reason_each(lab: Lab, claims: str) -> None:
    answer = lab.run(dgx(5), "pick", "2", *FAST, GPULSE_CLAIMS=claims)
    assert (answer.code, answer.out) == (1, "")
    first, *reasons, _ = answer.err.splitlines()
    assert first == "gpulse: 1 of 8 GPUs are free, 2 requested."
    assert len(reasons) == 7
    assert reasons[0].startswith("  GPU 0: 60.0 GiB held by ")
    assert f"{os.getpid()})" in reasons[0]


@pytest.mark.parametrize(
    ("listed", "words", "code", "out"),
    [
        ("5,2", ("--by", "index"), 0, "2\n"),
        ("5", ("--by", "index"), 0, "5\n"),
        ("0,1", (), 1, ""),
        ("", (), 1, ""),
        ("5,2", ("--by", "index", "--gpu", "5"), 0, "5\n"),
        ("5", ("--gpu", "2"), 1, ""),
    ],
)
def test_no_gpu_outside_the_grant_is_chosen(
    lab: Lab, claims: str, listed: str, words: tuple[str, ...], code: int, out: str
) -> None:
    answer = lab.run(dgx(5, 2), "pick", *FAST, *words, GPULSE_CLAIMS=claims, CUDA_VISIBLE_DEVICES=listed)
    assert (answer.code, answer.out) == (code, out)


def test_numbers_in_a_mixed_machine_are_doubtful_and_that_is_said(lab: Lab, claims: str) -> None:
    mixed = dgx(0, 1).gpu(1, name="NVIDIA A100-SXM4-80GB")
    answer = lab.run(mixed, "pick", *FAST, GPULSE_CLAIMS=claims, CUDA_VISIBLE_DEVICES="1")
    assert answer.code == 0
    assert "PCI_BUS_ID" in answer.err
    environ = {"GPULSE_CLAIMS": claims, "CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert lab.run(mixed, "pick", *FAST, **environ).err == ""


def test_a_claimed_gpu_is_passed_over(lab: Lab, uuids: list[str], claims: str) -> None:
    with claim(uuids[2], claims) or pytest.fail("nobody has it"):
        assert lab.run(dgx(5, 2), "pick", *FAST, GPULSE_CLAIMS=claims).out == f"{uuids[5]}\n"
        answer = lab.run(dgx(2), "pick", *FAST, GPULSE_CLAIMS=claims)
        (line,) = [line for line in answer.err.splitlines() if "GPU 2" in line]
        assert line.startswith("  GPU 2: locked by ")
        assert line.endswith(f"(pid {os.getpid()})")


def test_a_mig_instance_is_picked_by_its_uuid(lab: Lab, claims: str) -> None:
    divided = Scenario.load("a100-mig")
    free = lab.run(divided, "--json").gpus[0]["instances"][2]["uuid"]
    for form in ("uuid", "index"):
        assert lab.run(divided, "pick", *FAST, "--by", form, GPULSE_CLAIMS=claims).out == f"{free}\n"


def test_waiting_ends_when_a_gpu_becomes_free(lab: Lab, uuids: list[str], claims: str) -> None:
    soon = Scenario.load("dgx-h100x8").gpu(
        3, utilization__gpu="steps(0:90, 1s:0)", memory__used="steps(0:64424509440, 1s:0)"
    )
    soon.process(gpu=3, pid=os.getpid(), memory="60 GiB", until="1s")
    answer = lab.run(soon, "pick", *FAST, "--wait", GPULSE_CLAIMS=claims)
    assert (answer.code, answer.out) == (0, f"{uuids[3]}\n")
    first, *reasons, place = answer.err.splitlines()
    assert first == "gpulse: waiting: 0 of 8 GPUs are free, 1 requested."
    assert len(reasons) == 8
    assert place.startswith("  first in the queue")


def test_time_that_is_up_is_exit_124_with_the_reasons(lab: Lab, claims: str) -> None:
    answer = lab.run(dgx(), "pick", *FAST, "--timeout", "0.5", GPULSE_CLAIMS=claims)
    assert (answer.code, answer.out) == (124, "")
    assert "GPU 7: 60.0 GiB held by" in answer.err


@pytest.mark.parametrize("words", [("9",), ("--free-memory", "100GiB")])
def test_nobody_waits_for_what_can_never_be(lab: Lab, claims: str, words: tuple[str, ...]) -> None:
    answer = lab.run(dgx(0), "pick", *words, *FAST, "--wait", GPULSE_CLAIMS=claims)
    assert answer.code == 1
    assert "Request fewer GPUs" in answer.err


@pytest.mark.parametrize(
    "line", ["pick 0", "pick x", "pick -- -1", "pick 1e3", "pick --utilization nan", "pick --free-memory lots", "pick --by name"]
)  # fmt: skip
def test_a_wrong_wish_is_exit_2(lab: Lab, line: str) -> None:
    answer = lab.run(dgx(0), *line.split())
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)


def test_a_machine_without_gpus_is_exit_3(lab: Lab) -> None:
    assert lab.run(Scenario.load("not-loaded"), "pick").code == 3


def test_an_interrupt_while_waiting_is_exit_130_and_silent(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "gpulse", "pick", *FAST, "--wait"],
        env=environment(dgx(), tmp_path / "fake", GPULSE_CLAIMS=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    assert child.stderr.readline().startswith("gpulse: waiting")
    child.send_signal(signal.SIGINT)
    assert child.communicate() == ("", "")
    assert child.returncode == 130


SEEN = "from gpulse import api\n{}\nsay([int(gpu.index) for gpu in api.visible_gpus(['power_draw'])])"
TORCH = """
import sys, types
def properties(at):
    return types.SimpleNamespace(uuid=UUIDS[at])
cuda = types.SimpleNamespace(
    is_initialized=lambda: {started}, device_count=lambda: len(UUIDS), get_device_properties=properties
)
UUIDS = {uuids}
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
"""


class TestFromPython:
    def test_a_program_sees_what_the_environment_leaves_it(self, lab: Lab) -> None:
        assert lab.see(dgx(), SEEN.format("")) == list(range(8))
        assert lab.see(dgx(), SEEN.format(""), CUDA_VISIBLE_DEVICES="3,1") == [3, 1]

    def test_a_torch_that_has_started_cuda_knows_better(self, lab: Lab, uuids: list[str]) -> None:
        bare = [uuids[6].removeprefix("GPU-"), uuids[0].removeprefix("GPU-")]
        for started, given, seen in ((True, bare, [6, 0]), (False, bare, [3]), (True, ["what?"], [3]), (True, [], [3])):
            code = SEEN.format(TORCH.format(started=started, uuids=given))
            assert lab.see(dgx(), code, CUDA_VISIBLE_DEVICES="3") == seen

    def test_a_torch_without_uuids_is_no_obstacle(self, lab: Lab) -> None:
        code = SEEN.format(
            "import sys, types\nsys.modules['torch'] = types.SimpleNamespace(cuda=types.SimpleNamespace())"
        )
        assert lab.see(dgx(), code, CUDA_VISIBLE_DEVICES="3") == [3]

    def test_picking_returns_gpus_or_says_why_not(self, lab: Lab, uuids: list[str], claims: str) -> None:
        code = """
from gpulse import api
from gpulse.errors import NoFreeGpu
def picked(*words, **more):
    try:
        return [gpu.uuid for gpu in api.pick(*words, window=0, claim=False, **more)]
    except NoFreeGpu as error:
        return str(error)
say([picked(), picked(2, free_memory="70GiB"), picked(gpus=[5]), picked(3), picked(free_memory="90GiB")])
"""
        one, two, named, many, large = lab.see(dgx(2, 5), code, GPULSE_CLAIMS=claims)
        assert (one, two, named) == ([uuids[2]], [uuids[2], uuids[5]], [uuids[5]])
        assert many.startswith("2 of 8 GPUs are free, 3 requested.\n  GPU 0: 60.0 GiB held by ")
        assert "GPU 2: it has 79.6 GiB of memory" in large


PICK = """
import os, sys, time
import gpulse
sys.stdin.readline()
try:
    found = gpulse.pick({arguments}, window=0)
    print(*(gpu.uuid for gpu in found), flush=True)
except gpulse.NoFreeGpu as error:
    print("none", flush=True)
sys.stdin.readline()
"""


class Picker:
    """A program that picks when it is told to, and ends when it is told again."""

    def __init__(self, environ: dict[str, str], arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PICK.format(arguments=arguments)],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> list[str]:
        assert self._process.stdout is not None
        return self._process.stdout.readline().split()

    def end(self) -> None:
        self._process.communicate("\n", timeout=60)
        assert self._process.returncode == 0


class TestPickingAtOnce:
    @pytest.fixture
    def environ(self, tmp_path: Path) -> dict[str, str]:
        return environment(dgx(0, 1, 2), tmp_path / "fake", GPULSE_CLAIMS=str(tmp_path))

    def test_programs_that_pick_at_once_never_get_the_same_gpu(self, environ: dict[str, str]) -> None:
        pickers = [Picker(environ, "1") for _ in range(5)]
        for picker in pickers:
            picker.go()
        answers = [picker.answer() for picker in pickers]
        taken = [uuid for answer in answers for uuid in answer if uuid != "none"]
        assert (len(taken), len(set(taken)), answers.count(["none"])) == (3, 3, 2)
        for picker in pickers:
            picker.end()

    def test_one_that_waits_gets_the_gpu_of_one_that_has_ended(self, environ: dict[str, str]) -> None:
        first, second = Picker(environ, "3"), Picker(environ, "2, wait=60")
        first.go()
        held = first.answer()
        assert len(held) == 3
        second.go()
        first.end()
        assert set(second.answer()) < set(held)
        second.end()

    def test_a_program_that_picks_twice_gets_two_until_it_releases_them(self, lab: Lab, claims: str) -> None:
        code = """
import gpulse, gc, threading
first = gpulse.pick(window=0)[0].uuid
gc.collect()
second = gpulse.pick(window=0)
with gpulse.pick(window=0) as third:
    pass
again = gpulse.pick(window=0)
second.release(); second.release()
last = gpulse.pick(window=0)
both = []
last.release()
again.release()
threads = [threading.Thread(target=lambda: both.append(gpulse.pick(window=0)[0].uuid)) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
said = None
try:
    gpulse.pick(window=0, wait=0.3)
except gpulse.NoFreeGpu as error:
    said = str(error)
say([first, second[0].uuid, third[0].uuid, again[0].uuid, last[0].uuid, sorted(both), last.environ, said])
"""
        first, second, third, again, last, both, environ, said = lab.see(dgx(0, 1, 2), code, GPULSE_CLAIMS=claims)
        assert len({first, second, third}) == 3
        assert (again, last) == (third, second)
        assert both == sorted([second, third])
        assert environ == {"CUDA_VISIBLE_DEVICES": second, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        assert said.startswith("0 of 8 GPUs are free, 1 requested.\n")
        assert said.count("held for root since ") == 3

    def test_waiting_that_cannot_help_is_not_done(self, lab: Lab, claims: str) -> None:
        code = """
import gpulse
try:
    gpulse.pick(free_memory="900GiB", wait=True)
except gpulse.NoFreeGpu as error:
    say(str(error).splitlines()[0])
"""
        assert lab.see(dgx(0), code, GPULSE_CLAIMS=claims) == "0 of 8 GPUs are free, 1 requested."

    def test_a_folder_that_cannot_be_written_is_named(self, lab: Lab) -> None:
        code = """
import gpulse
try:
    gpulse.pick(window=0)
except gpulse.GpulseError as error:
    say([str(error), [gpu.index for gpu in gpulse.pick(window=0, claim=False)]])
"""
        said, seen = lab.see(dgx(0), code, GPULSE_CLAIMS="/proc/no-such-folder")
        assert said.startswith("cannot claim a GPU in /proc/no-such-folder: ")
        assert seen == [0]
