"""`gpulse queue`, `reserve` and `release` as a user types them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpulse.cli.commands import reserve
from gpulse.store.queue import Queue
from tests.e2e.lab import Lab, environment
from tests.fake_nvml import Scenario

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

PATIENCE = 60.0


@pytest.fixture
def two() -> Scenario:
    scenario = Scenario.parse("include boards/h100\n[driver]\ngpus = 2")
    for at in range(2):
        scenario.gpu(at, utilization__gpu=0, memory__used=0, pci__bus_id=f"00000000:{at + 1:02X}:00.0")
    return scenario


def test_a_day_of_two_gpus(lab: Lab, two: Scenario, tmp_path: Path) -> None:
    claims = str(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        answer = lab.run(two, *words, GPULSE_CLAIMS=claims)
        return answer.code, answer.out, answer.err

    assert run("queue") == (0, "The queue is empty: no GPU is waited for, claimed or reserved.\n", "")
    code, out, _ = run("reserve", "--for", "8h", "--reason", "a \x1b[31mtalk")
    found = re.fullmatch(r"Reserved GPU 0 until (?:tomorrow )?\d\d:\d\d \(id ([0-9a-f]{6})\)\.\n", out)
    assert code == 0
    assert found is not None, out
    waiter = [sys.executable, "-m", "gpulse", "run", "--window", "0", "--gpus", "2", "--gpu", "1,1,0", "--wait", "--"]
    inner = f"{sys.executable} -m gpulse run --window 0 -q --gpus 2 -- printenv CUDA_VISIBLE_DEVICES; exec sleep 60"
    environ = environment(two, tmp_path / "fake", GPULSE_CLAIMS=claims)
    with subprocess.Popen([*waiter, "sh", "-c", inner], env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert len(process.stdout.readline().strip().split(",")) == 2  # from the run inside
        held, reserved = sorted(
            json.loads(run("queue", "--json")[1])["queue"], key=lambda one: one["state"], reverse=True
        )
        assert (reserved["state"], held["state"]) == ("reserved", "running")
        listed = run("queue")[1].splitlines()
        assert [line.split()[1] for line in listed] == ["STATE", "reserved", "running"]
        assert "\x1b" not in "".join(listed)
        assert "sh -c" in listed[2]
        code, _, err = run("run", "--window", "0", "--gpus", "1", "true")
        assert code == 1
        assert re.search(r"GPU 1: held for \w+ since \d\d:\d\d \(sh\)", err), err
        code, out, err = run("queue", "cancel", held["id"])
        assert (code, out) == (2, "")
        process.terminate()
    code, out, _ = run("reserve", "extend", found[1][:4], "--for", "1h")
    assert (code, out.startswith(f"Reservation {found[1]} lasts until ")) == (0, True)
    assert run("reserve", "2", "--for", "1h")[0] == 1
    assert run("release") == (0, f"Released {found[1]}.\n", "")
    assert run("release")[0] == 2


def test_a_waiting_request_is_shown_and_cancelled(lab: Lab, two: Scenario, tmp_path: Path) -> None:
    claims = tmp_path / "claims"
    claims.mkdir()
    for at in range(2):
        two.process(gpu=at, pid=os.getpid(), memory="60 GiB")
    environ = environment(two, tmp_path / "fake", GPULSE_CLAIMS=str(claims))
    command = [
        sys.executable,
        "-m",
        "gpulse",
        "run",
        "--window",
        "0",
        "--gpus",
        "1",
        "--wait",
        "--",
        "train",
        "--token=hf_abcdefghij",
    ]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + PATIENCE
        while not Queue(str(claims)).entries():
            assert time.monotonic() < end
            time.sleep(0.02)
        (one,) = json.loads(lab.run(two, "queue", "--json", GPULSE_CLAIMS=str(claims)).out)["queue"]
        assert (one["state"], one["position"], one["count"], one["pid"]) == ("waiting", 1, 1, process.pid)
        assert one["command"] == "train --token=***"
        assert "hf_abc" not in "".join(path.read_text() for path in claims.iterdir())
        assert (
            lab.run(two, "queue", "cancel", one["id"][:3], GPULSE_CLAIMS=str(claims)).out == f"Cancelled {one['id']}.\n"
        )
        assert process.wait(PATIENCE) == 1
        assert process.stderr is not None
        assert "the request was cancelled" in process.stderr.read()


def test_gpus_of_a_job_that_outlived_its_run_are_shown_as_locked(lab: Lab, two: Scenario, tmp_path: Path) -> None:
    claims = tmp_path / "claims"
    claims.mkdir()
    environ = environment(two, tmp_path / "fake", GPULSE_CLAIMS=str(claims))
    command = [sys.executable, "-m", "gpulse", "run", "--window", "0", "-q", "--gpus", "2", "--"]
    job = ["sh", "-c", "echo $$; read line", "train", "--token=hf_abcdefghij"]
    with subprocess.Popen([*command, *job], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.kill()
        process.wait()
        assert Queue(str(claims)).entries() == []
        found = lab.run(two, "queue", "--json", GPULSE_CLAIMS=str(claims)).json["queue"]
        lines = lab.run(two, "queue", GPULSE_CLAIMS=str(claims)).out.splitlines()
        refused = lab.run(two, "pick", "--window", "0", GPULSE_CLAIMS=str(claims))
    ((state, pid, count, id, since, command_line),) = (
        [one[key] for key in ("state", "pid", "count", "id", "since", "command")] for one in found
    )
    assert (state, pid, count, id, since) == ("locked", child, 2, None, None)
    assert "hf_abc" not in command_line
    assert lines[1].split()[1::2][:2] == ["locked", "0,1"]
    assert f"(pid {child})" in refused.err


def test_who_still_uses_a_reserved_gpu_is_said(lab: Lab, two: Scenario, tmp_path: Path) -> None:
    for at in range(2):
        two.process(gpu=at, pid=os.getpid(), memory="60 GiB")
    now = lab.run(two, "reserve", "--for", "1h", GPULSE_CLAIMS=str(tmp_path))
    assert re.fullmatch(r"gpulse: still in use: GPU 0, 60\S* GiB held by \w+ \(.+\)\.\n", now.err), now.err
    later = lab.run(two, "reserve", "--for", "1h", "--from", "2h", GPULSE_CLAIMS=str(tmp_path))
    assert (now.code, later.code, later.err) == (0, 0, "")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("queue", "--demo"), 0, "waiting 1"),
        (("queue", "--source", "replay:/nowhere"), 1, "nowhere"),
        (("queue", "dance"), 2, "'dance' is neither list nor cancel"),
        (("queue", "cancel"), 2, "cancel takes one id"),
        (("reserve", "2"), 2, "for how long?"),
        (("reserve", "two", "--for", "1h"), 2, "'two' is not a positive number of GPUs"),
        (("reserve", "--for", "1s"), 2, "is not between 60"),
        (("reserve", "--for", "1h", "--from", "soon", "--demo"), 2, "'soon' is not a time"),
        (("reserve", "--for", "1h", "--from", "2h", "--demo"), 0, "from "),
        (("reserve", "9", "--for", "1h", "--demo"), 1, "5 of 8 GPUs can be reserved for that time, 9 requested"),
        (("reserve", "extend", "abc", "--for", "1h"), 2, "there is no reservation 'abc'"),
        (("release", "--demo"), 0, "Released 90b7de.\ngpulse: demo: the queue of this machine has not changed.\n"),
        (("release", "--all", "--demo"), 0, "Released 90b7de."),
        (("release", "abc", "--demo"), 2, "there is no reservation 'abc'"),
        (("reserve", "extend", "90b7de", "--for", "2h", "--demo"), 0, "Reservation 90b7de lasts until "),
        (("reserve", "extend", "90b7de", "--for", "8d", "--demo"), 1, "a reservation on this machine lasts at most 7d"),
        (("reserve", "--for", "8d", "--demo"), 1, "a reservation on this machine lasts at most 7d"),
        (("queue", "cancel", "c41e08", "--demo"), 0, "Cancelled c41e08."),
        (("queue", "cancel", "90b7de", "--demo"), 2, "there is no waiting request '90b7de'"),
        (("run", "--gpus", "1", "--share", "true"), 2, "add --memory 10GiB to --share"),
        (("pick", "8", "--timeout", "1ms", "--demo"), 124, "2 of 8 GPUs are free, 8 requested"),
        (("run", "--gpus", "8", "--timeout", "1ms", "--demo", "true"), 124, "2 of 8 GPUs are free, 8 requested"),
        (("pick", "9", "--timeout", "1ms", "--demo"), 1, "Request fewer GPUs"),
        (("pick", "--share", "--memory", "20GiB", "--window", "0", "--demo"), 0, "GPU-"),
    ],
)
def test_each_is_one_clear_answer(
    lab: Lab, two: Scenario, tmp_path: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    answer = lab.run(two, *words, GPULSE_CLAIMS=str(tmp_path))
    assert (answer.code, says in answer.out + answer.err) == (code, True), answer.out + answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(("text", "hours"), [("3am", 15.0), ("6pm", 6.0), ("13:30", 1.5), ("2h", 2.0)])
def test_a_reservation_begins_at_the_next_such_time(text: str, hours: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    noon = 1_794_744_000.0
    assert reserve._begins(text, noon) == noon + hours * 3600.0
