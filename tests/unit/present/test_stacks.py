"""Stacks as text."""

from __future__ import annotations

from gpulse.model.stacks import Frame, Stack
from gpulse.present.code import frame_place, plain_stacks, stack_lines
from gpulse.present.theme import Theme

OWN = Frame("/home/ada/train.py", 84, "compute_f1")
TORCH = Frame("/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 701, "__next__")
STANDARD = Frame("/usr/lib/python3.11/threading.py", 327, "wait")


def shown(*stacks: Stack, most: int | None = None) -> list[str]:
    return [line.render(Theme(), 200) for line in stack_lines(stacks, most)]


def test_the_innermost_call_comes_first() -> None:
    stack = Stack(0.0, (OWN, TORCH), thread="MainThread")
    assert shown(stack) == [
        "MainThread",
        "  __next__ torch/utils/data/dataloader.py:701",
        "  compute_f1 /home/ada/train.py:84",
    ]


def test_threads_with_the_same_stack_are_told_once() -> None:
    pool = [Stack(0.0, (STANDARD,), role="thread", thread=name) for name in ("pool-1", "pool-2", "")]
    assert shown(*pool) == ["3 threads: a thread without a name, pool-1, pool-2", "  wait threading.py:327"]


def test_a_long_stack_is_cut() -> None:
    assert shown(Stack(0.0, (OWN,) * 9, thread="MainThread"), most=2)[-1] == "  and 7 more"


def test_a_thread_without_python_code() -> None:
    assert shown(Stack(0.0, ())) == ["MainThread", "  no Python code"]


def test_names_cannot_act_on_the_terminal() -> None:
    evil = Frame("/tmp/\x1b[2Jx.py", 1, "f\x07")
    assert shown(Stack(0.0, (evil,), thread="\x1b]0;x\x07")) == ["\\x1b]0;x\\x07", "  f\\x07 /tmp/\\x1b[2Jx.py:1"]


def test_where_a_frame_is() -> None:
    assert frame_place(STANDARD) == "threading.py:327"
    assert frame_place(OWN) == "/home/ada/train.py:84"
    assert frame_place(Frame("", 0, "x")) == ""


def test_plain() -> None:
    (plain,) = plain_stacks([Stack(0.0, (OWN, TORCH), thread="MainThread")])
    assert (plain["thread"], plain["main"]) == ("MainThread", True)
    assert plain["frames"][0] == {"file": TORCH.file, "line": 701, "function": "__next__"}
