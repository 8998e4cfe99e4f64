"""What the queue shows of other users' jobs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpulse.model.catalog import Gpu
from gpulse.model.select import Wanted
from gpulse.model.snapshot import Snapshot
from gpulse.present.queue import hold_text
from gpulse.sampling.plan import Plan, StartedSample, machine_job
from gpulse.sources.base import Machine
from gpulse.store.entry import Entry
from gpulse.store.queue import Queue
from gpulse.surfaces.queue import QueueView, queue_view


@pytest.mark.parametrize(
    ("policy", "of_others", "held"),
    [("full", True, " (python)"), ("program", False, " (python)"), ("none", False, "")],
)
def test_commands_of_others_are_hidden_where_the_settings_say_so(
    policy: str, of_others: bool, held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPULSE_PRIVACY_COMMANDS", policy)
    with open("/proc/self/cmdline", "rb") as file:
        program = os.path.basename(os.fsdecode(file.read().split(b"\0")[1]))
    other = Entry("b", "running", "ada", uid=os.getuid() + 1, pid=os.getpid(), program=program)
    mine = Entry("a", "waiting", "me", uid=os.getuid(), pid=os.getpid(), program=program)
    view = QueueView([mine, other], (), {}, 0.0)
    shown = "" if policy == "none" else program
    assert view.commands["a"].startswith(program)
    assert view.commands["b"] == (view.commands["a"] if of_others else shown)
    assert [one["command"] for one in view.to_plain()["queue"]] == [view.commands["b"], view.commands["a"]]
    assert hold_text(other.replace(program="python"), 0.0).partition("since")[2].endswith(held or ":00")
    assert hold_text(mine.replace(kind="running", program="python"), 0.0).endswith(" (python)")


def test_others_are_told_by_number_where_the_settings_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULSE_PRIVACY_USERS", "number")
    uid = os.getuid() + 1
    mine = Entry("a", "waiting", "me", uid=os.getuid())
    others = [Entry("b", "running", "ada", uid=uid), Entry("c", "reserved", "ada", uid=uid, until=9e9)]
    view = QueueView([mine, *others, Entry("d", "waiting", "ada", uid=uid)], (), {}, 0.0)
    assert {one["id"]: one["user"] for one in view.to_plain()["queue"]} == {
        "a": "me",
        "b": f"{uid}",
        "c": f"{uid}",
        "d": f"{uid}",
    }
    assert "ada" not in "\n".join(view.lines(200)) + "".join(hold_text(one, 0.0) for one in view.entries)
    monkeypatch.setattr(Queue, "entries", lambda _: [others[0].replace(gpus=("GPU-1",))])
    monkeypatch.setattr(Machine, "real", True)
    answer = machine_job(Machine(), Plan(Wanted(("held_for",))), StartedSample(0.0, False, False, False, None))()
    assert answer.holds == {"GPU-1": (f"{uid}", None)}


def test_instances_of_one_gpu_have_names_of_their_own(tmp_path: Path) -> None:
    parts = tuple(Gpu({"index": at, "uuid": f"MIG-{at}"}) for at in (0, 1))
    gpus = (Gpu({"index": 0, "uuid": "GPU-0"}).replace(instances=parts), Gpu({"index": 1, "uuid": "GPU-1"}))

    class Still:
        def read(self) -> Snapshot:
            return Snapshot(0.0, gpus)

    assert queue_view(Still(), Queue(str(tmp_path))).names == {"MIG-0": "0:0", "MIG-1": "0:1", "GPU-1": "1"}  # type: ignore[arg-type]
