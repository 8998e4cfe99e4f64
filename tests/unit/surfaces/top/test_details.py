"""The details of one process: everything known, wrapped, and no secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.model.stacks import Frame, Stack
from gpulse.monitor.presence import Presence
from gpulse.present.program import running_text
from gpulse.present.theme import Theme
from gpulse.screen.grid import Grid
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.layout import Area
from gpulse.surfaces.top.panels import details
from gpulse.surfaces.top.state import ScreenSettings, State

if TYPE_CHECKING:
    from gpulse.model.metric import Value

_G = 1 << 30
_LONG = "python train.py " + " ".join(f"--option-{n} {n}" for n in range(20))


def state(command: str = _LONG, unicode: bool = True) -> State:
    made = State(ScreenSettings(), History(()), Theme(0, unicode))
    values: dict[str, Value] = {"pid": 7, "user": "ada", "name": "python", "command": command, "host_memory": 3 * _G, "cpu_percent": 104.0,
              "running_time": 7260.0, "container": "0a1b2c3d4e5f", "pod": "web-0", "job": "slurm:17"}  # fmt: skip
    made.shown = Snapshot(
        1.0,
        (
            Gpu(
                {"index": 0},
                processes=(Process({**values, "memory_used": 4 * _G, "sm_utilization": 90.0, "type": "C"}),),
            ),
            Gpu({"index": 1}, processes=(Process({**values, "memory_used": 2 * _G}),)),
        ),
    )
    made.selected = 7
    return made


def facts(pid: int) -> dict[str, str]:
    assert pid == 7
    return {
        "cgroup": "2:cpu:/kubepods/pod1\n1:pids:/docker/2\n0::/\n",
        "directory": "/home/ada",
        "$HOME": "/home/ada",
        "$HF_TOKEN": "hf_abcdef",
    }


def drawn(made: State, columns: int = 80, rows: int = 40) -> str:
    grid = Grid(columns, rows)
    details.paint(grid, Area(0, 0, rows, columns), made, facts)
    return "\n".join(grid.text())


def test_everything_known_is_there() -> None:
    text = drawn(state())
    for words in ("Process 7", "ada", "GPU 0           4.0 GiB  SM 90 %  type C", "GPU 1           2.0 GiB", "6.0 GiB", "104 %",
                  "3.0 GiB", "2h01m", "0a1b2c3d4e5f", "web-0", "slurm:17", "/kubepods/pod1", "/docker/2", "/home/ada",
                  "HOME=/home/ada"):  # fmt: skip
        assert words in text


def test_the_command_is_wrapped_not_cut() -> None:
    text = drawn(state())
    assert all(f"--option-{n} " in text.replace("\n", " ") for n in range(20))
    assert drawn(state("x" * 300), rows=50).count("x") >= 300


def test_secrets_are_masked_even_if_they_come_unmasked() -> None:
    assert "hf_abcdef" not in drawn(state())
    assert "HF_TOKEN=***" in drawn(state())


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("HOME", "/root", "/root"),
        ("PWD", "/tmp", "/tmp"),
        ("EMPTY_KEY", "", ""),
        ("WANDB_API_KEY", "abc", "***"),
        ("ENCRYPTION_KEY", "abc", "***"),
        ("MYSQL_PWD", "abc", "***"),
        ("db_pass", "abc", "***"),
        ("SENTRY_DSN", "https://a@b/1", "***"),
        ("AWS_SECRET_ACCESS_KEY", "abc", "***"),
        ("ANYTHING", "hf_abc", "***"),
        ("hf_home", "/data", "/data"),
        ("DATABASE_URL", "postgres://u:p@h/db", "postgres://u:***@h/db"),
        ("TOKENIZERS_PARALLELISM", "false", "false"),
        ("FLAGS", "a=b c=d", "a=b c=d"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(name: str, value: str, shown: str) -> None:
    assert details.hidden(name, value) == shown


def test_control_groups_are_named_once() -> None:
    for cgroup, paths in (("2:cpu:/\n1:memory:/a:b\n0::/a:b\n", ["/a:b"]), ("1:cpu:/\n0::/\n", ["/"]), ("", [])):
        assert [path for _, path, _ in details._facts({"cgroup": cgroup})] == paths


def test_a_process_that_is_gone_is_said_to_be() -> None:
    made = state()
    made.selected = 8
    assert "process 8 no longer uses a GPU" in drawn(made)
    made.selected = None
    assert "no process selected" in drawn(made)


def test_the_text_scrolls_to_its_end_and_no_further() -> None:
    made = state()
    made.choice = 999
    text = drawn(made, rows=10)
    assert "HOME=/home/ada" in text
    assert made.choice < 999
    assert drawn(made, rows=10) == text
    made.choice -= 1
    assert drawn(made, rows=10) != text


def test_an_environment_that_cannot_be_read_is_said() -> None:
    grid = Grid(80, 40)
    details.paint(grid, Area(0, 0, 40, 80), state(), lambda pid: {})
    assert any("Environment: cannot be read" in line for line in grid.text())


@given(st.text(max_size=60), st.integers(0, 90), st.integers(0, 30), st.booleans())
def test_any_command_is_drawn_in_any_area(command: str, columns: int, rows: int, unicode: bool) -> None:
    text = drawn(state(command, unicode), columns, rows)
    assert all(line.isprintable() for line in text.split("\n"))
    assert unicode or text.isascii()


def test_what_a_monitor_says_of_its_run_is_shown() -> None:
    made = state()
    code = ({"file": "/home/ada/train.py", "line": 84, "function": "score", "waited": 12.5, "computed": 1.0},)
    made.run = Presence(
        42, run="a-run", rank=3, seconds=90.0, phase="train", step=1204, steps_per_second=1.66,
        step_p50=0.6, step_p95=0.7, step_max=1.2, data_wait=34.0, code=code,
    )  # fmt: skip
    text = " ".join(drawn(made, rows=60).split())
    for words in ("Run a-run, rank 3 · 1m30s", "Phase train", "Step 1204 · 1.66/s", "p50 600 ms · p95 700 ms · max 1.20 s",
                  "Data wait 34 %", "GPU waits in train.py:84 score (12.5 s)"):  # fmt: skip
        assert words in text
    assert running_text(made.run) == (
        "a-run, rank 3 · 1m30s · phase train · step 1204 · 1.66/s · step time p50 600 ms · p95 700 ms · max 1.20 s · data wait 34 %"
    )
    made.run = Presence(42, run="a-run")
    assert "Data wait" not in drawn(made, rows=60)


def test_the_present_stack_is_shown() -> None:
    made = state()
    made.stacks = [
        Stack(0.0, (Frame("/home/ada/train.py", 84, "step"), Frame("/x/\x1b[2J.py", 1, "evil")), thread="MainThread")
    ]
    text = drawn(made, rows=60)
    assert "Stack, read now" in text
    assert text.index("evil /x/\\x1b[2J.py:1") < text.index("step /home/ada/train.py:84")


def test_why_there_is_no_stack_is_said() -> None:
    made = state()
    made.stack_problem = "process 42 is not a Python program."
    assert "process 42 is not a Python program." in drawn(made, rows=60)
    made.stack_problem = ""
    assert "Stack" not in drawn(made, rows=60)
