"""The filter language, finished and half typed."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Snapshot
from gpulse.surfaces.top.find import Find
from gpulse.surfaces.top.processes import all_rows

_G = 1 << 30
_ADA = Process(
    {"pid": 11, "user": "ada", "name": "python", "command": "python train.py --lr 1e-4 my data", "type": "C", "job": "slurm:17",
     "memory_used": 4 * _G, "sm_utilization": 90.0, "cpu_percent": 100.0, "host_memory": 3 * _G, "running_time": 7200.0}
)  # fmt: skip
_ROOT = Process(
    {"pid": 22, "user": "root", "name": "Xorg", "command": "/usr/bin/Xorg :0", "type": "C+G", "memory_used": _G // 4, "cpu_percent": 2.0}
)  # fmt: skip
_BARE = Process({"pid": 33, "container": "0a1b2c3d4e5f", "pod": "web-0"})
_ROWS = all_rows(
    Snapshot(
        1.0,
        (
            Gpu({"index": 0}, processes=(_ADA,)),
            Gpu({"index": 1}, processes=(_ROOT,)),
            Gpu({"index": 12}, instances=(Gpu({"index": 2}, processes=(_BARE,)),)),
        ),
    )
)


def found(text: str) -> list[int | None]:
    return [row.pid for row in Find(text).apply(_ROWS)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [11, 22, 33]),
        ("  ", [11, 22, 33]),
        ("PYTHON", [11]),
        ("o", [11, 22]),
        ("xorg", [22]),
        ("0a1b", [33]),
        ("train ada", [11]),
        ("train root", []),
        ("user:root", [22]),
        ("user:a", [11]),
        ("user=ad", []),
        ("user!=ada", [22, 33]),
        ("name:xorg", [22]),
        ("cmd:train", [11]),
        ("container:0A1B", [33]),
        ("pod:web", [33]),
        ("job:17", [11]),
        ("job=slurm:17", [11]),
        ("pid:22", [22]),
        ("pid:2", []),
        ("pid:11,33", [11, 33]),
        ("pid>20", [22, 33]),
        ("type:C", [11, 22]),
        ("type:g", [22]),
        ("gpu:0", [11]),
        ("gpu:1", [22]),
        ("gpu:0-3", [11, 22]),
        ("gpu:0,12", [11, 33]),
        ("gpu:12:2", [33]),
        ("gpu:12:1", []),
        ("gpu:12:", [33]),
        ("gpu:0-", [11]),
        ("mem>1G", [11]),
        ("mem<1G", [22]),
        ("memory_used>=4GiB", [11]),
        ("sm>50", [11]),
        ("sm>50%", [11]),
        ("cpu>=100", [11]),
        ("cpu=2", [22]),
        ("cpu:2", [22]),
        ("host<2G", []),
        ("host>2G", [11]),
        ("time>1h", [11]),
        ("time>3h", []),
        ("!ada", [22, 33]),
        ("-ada", [22, 33]),
        ("!user:root", [11, 33]),
        ("-mem>1G", [22, 33]),
        ('"my data"', [11]),
        ('"data my"', []),
        ("'--lr'", [11]),
        ('!"my data"', [22, 33]),
        ('command:"py --lr"', [11]),
        ('"my da', [11]),
        ('"mem>1G"', []),
        ("-", [11]),
    ],
)
def test_words(text: str, expected: list[int]) -> None:
    assert found(text) == expected
    assert Find(text).note == ""


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("usr:ada", "unknown field 'usr'"),
        ("user:", "'user:' is incomplete"),
        ("mem>", "'mem>' is incomplete"),
        ("mem>much", "'much' is not a size"),
        ("time>1x", "'1x' is not a duration"),
        ("sm>x", "'x' is not a number"),
        ("gpu:x", "'x' is not an integer"),
        ("pid:x", "'x' is not an integer"),
        ("pid:²", "'²' is not an integer"),
        ("user>1", "'user' cannot be compared with >"),
    ],
)
def test_a_word_that_is_not_understood_is_plain_text_and_noted(text: str, note: str) -> None:
    find = Find(text)
    assert find.note == note
    assert found(text) == []


def test_the_rest_counts_beside_a_wrong_word() -> None:
    assert found("slurm:17 mem>1G") == [11], "a job is written like a field, and found as text"
    assert found("!mem> user:root") == [22]


def test_a_path_with_a_colon_needs_no_note() -> None:
    assert Find("/usr/bin/Xorg :0").note == ""
    assert found("/usr/bin/Xorg :0") == [22]


def test_nothing_typed_is_false() -> None:
    assert not Find(" ")
    assert Find("a")


_WORDS = st.lists(
    st.builds(
        lambda sign, name, operator, value: f"{sign}{name}{operator}{value}",
        st.sampled_from(["", "!", "-", '"', "'"]),
        st.sampled_from(["gpu", "pid", "user", "mem", "time", "sm", "type", "x", ""]),
        st.sampled_from([":", "=", ">", "<", ">=", "<=", "!=", "==", "!", ""]),
        st.text(max_size=6) | st.from_regex(r"[0-9,:.\-]{0,8}[GhK%]?", fullmatch=True),
    ),
    max_size=4,
).map(" ".join)


@given(st.text() | _WORDS)
@example("pid:" + "9" * 5000)
@example("gpu:0-" + "9" * 30)
@example("sm>nan")
@example("sm>1e999")
@example("mem>" + "1" * 400)
@example("!")
@example("--")
@example("'")
def test_any_text_can_be_applied(text: str) -> None:
    find = Find(text)
    kept = find.apply(_ROWS)
    assert [row for row in _ROWS if find.fits(row)] == kept
    assert isinstance(find.note, str)


@given(_WORDS)
def test_every_beginning_of_a_filter_can_be_applied(text: str) -> None:
    for end in range(len(text) + 1):
        Find(text[:end]).apply(_ROWS)
