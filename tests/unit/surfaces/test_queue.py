"""What the queue shows of other users' jobs."""

from __future__ import annotations

import os

import pytest

from gpulse.present.queue import hold_text
from gpulse.store.queue import Entry
from gpulse.surfaces.queue import QueueView


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
