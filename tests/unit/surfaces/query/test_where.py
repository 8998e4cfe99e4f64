"""Filters: what passes, what a mistake points at, and that and, or, not and brackets are Python's."""

from __future__ import annotations

import itertools
import operator
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import UsageError
from gpulse.model.catalog import GPU_METRICS, PROCESS_METRICS, Gpu, Process
from gpulse.surfaces.query.where import Filter

if TYPE_CHECKING:
    from gpulse.model.metric import Value

MIB, GIB = 1 << 20, 1 << 30
NAMES = {"a": "utilization", "b": "temperature", "c": "power_draw", "d": "clock_sm"}
OPERATORS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "=": operator.eq, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
PIECES = (
    "utilization", "power.draw", "name", "throttle_reasons", "persistence_mode", "nonsense", "<", "<=", ">", ">=", "=",
    "==", "!=", "~", "!", "(", ")", "and", "or", "not", "5", "1GiB", "10m", "80%", "'a b'", '"x"', "'", '"', " ", "",
)  # fmt: skip


def passes(text: str, **values: Value) -> bool:
    return Filter(text, GPU_METRICS)(Gpu(values))


def blamed(text: str) -> str:
    """What stands over the caret of a filter's error, to the end of the text."""
    with pytest.raises(UsageError) as caught:
        Filter(text, GPU_METRICS)
    shown, below = str(caught.value).split(f"\n  {text}\n  ", 1)
    assert shown.startswith("--where: ")
    found = re.match(r"( *)\^\n", below)
    assert found
    assert len(found[1]) <= len(text)
    return text[len(found[1]) :]


@given(st.text() | st.lists(st.sampled_from(PIECES)).map(" ".join) | st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_text_is_a_filter_or_a_mistake_that_is_pointed_at(text: str) -> None:
    try:
        found = Filter(text, GPU_METRICS)
    except UsageError:
        blamed(text)
    else:
        assert found.keys <= GPU_METRICS.keys()
        assert found(Gpu({})) in (True, False)


LOGIC = st.recursive(
    st.sampled_from(sorted(NAMES)),
    lambda inner: (
        inner.map(lambda one: f"not {one}")
        | inner.map(lambda one: f"({one})")
        | st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join)
    ),
)


@given(LOGIC, st.sampled_from([str.lower, str.upper]))
def test_and_or_not_and_brackets_are_pythons(logic: str, case: type[str]) -> None:
    words = (NAMES[word] + ">0" if word in NAMES else case(word) for word in re.findall(r"\w+|[()]", logic))
    found = Filter(" ".join(words), GPU_METRICS)
    for truth in itertools.product((False, True), repeat=len(NAMES)):
        expected = eval(logic, dict(zip(NAMES, truth, strict=True)))
        assert found(Gpu(dict(zip(NAMES.values(), map(int, truth), strict=True)))) is expected


@given(st.sampled_from(sorted(OPERATORS)), st.integers(0, 3), st.integers(0, 3), st.sampled_from(["", " "]))
def test_numbers_are_compared_as_python_compares_them(sign: str, value: int, wanted: int, space: str) -> None:
    assert passes(f"temperature{space}{sign}{space}{wanted}", temperature=value) is OPERATORS[sign](value, wanted)


@given(
    st.integers(0, 1000),
    st.sampled_from(
        [("", 1), ("B", 1), ("KiB", 1024), ("kb", 1000), ("MiB", MIB), ("M", MIB), ("GB", 10**9), ("gib", GIB)]
    ),
)
def test_sizes_have_units(count: int, unit: tuple[str, int]) -> None:
    size = count * unit[1]
    assert passes(f"memory_used={count}{unit[0]}", memory_used=size)
    assert passes(f"memory_used<={count}{unit[0]} and memory_used>={count}{unit[0]}", memory_used=size)
    assert not passes(f"memory_used>{count}{unit[0]}", memory_used=size)
    assert passes(f"pcie_rx>={count}{unit[0]}/s", pcie_rx=size)
    assert not passes(f"pcie_rx<{count}{unit[0]}/s", pcie_rx=size)


@given(st.integers(0, 1000), st.sampled_from([("", 1), ("s", 1), ("m", 60), ("min", 60), ("h", 3600), ("d", 86400)]))
def test_durations_have_units(count: int, unit: tuple[str, int]) -> None:
    found = Filter(f"running_time>={count}{unit[0]}", PROCESS_METRICS)
    assert found(Process({"running_time": count * unit[1]}))
    assert not found(Process({"running_time": count * unit[1] - 1}))
    assert passes(f"throttle_time_thermal={count}{unit[0]}", throttle_time_thermal=count * unit[1])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("utilization=80%", {"utilization": 80}),
        ("power_draw>300W", {"power_draw": 300.5}),
        ("temperature>=80C", {"temperature": 80}),
        ("temperature>=80°C", {"temperature": 80}),
        ("clock_sm>=1980MHz", {"clock_sm": 1980}),
        ("energy>10J", {"energy": 11.0}),
        ("temperature_margin=-3", {"temperature_margin": -3}),
        ("utilization.gpu=5 and memory.used=1GiB", {"utilization": 5, "memory_used": GIB}),
        ("UTILIZATION=5", {"utilization": 5}),
    ],
)  # fmt: skip
def test_numbers_may_carry_their_unit_and_nvidia_smis_names_do(text: str, values: dict[str, Value]) -> None:
    assert passes(text, **values)


@pytest.mark.parametrize("sign", [*OPERATORS, "~"])
def test_a_value_that_is_missing_passes_nothing(sign: str) -> None:
    assert not passes(f"pstate{sign}0")
    assert passes(f"not pstate{sign}0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name='NVIDIA H200'", True),
        ('name="nvidia h200"', True),
        ("name==H200", False),
        ("name!=H200", True),
        ("name~h200", True),
        ("name~a100", False),
        ("persistence_mode=yes", True),
        ("persistence_mode=YES", True),
        ("persistence_mode!=yes", False),
        ("display_active=no", True),
        ("throttle_reasons=sw_power_cap", True),
        ("throttle_reasons=SW_POWER_CAP", True),
        ("throttle_reasons=power", False),
        ("throttle_reasons~power", True),
        ("throttle_reasons!=gpu_idle", True),
        ("throttle_reasons!=sync_boost", False),
        ("utilization~10", True),
    ],
)  # fmt: skip
def test_text_flags_and_lists_are_compared_as_words(text: str, expected: bool) -> None:
    gpu: dict[str, Value] = {
        "name": "NVIDIA H200",
        "persistence_mode": True,
        "display_active": False,
        "throttle_reasons": ("sw_power_cap", "sync_boost"),
        "utilization": 100,
    }
    assert passes(text, **gpu) is expected


def test_an_empty_list_holds_nothing() -> None:
    assert not passes("throttle_reasons~a", throttle_reasons=())
    assert passes("throttle_reasons!=gpu_idle", throttle_reasons=())


def test_quotes_make_a_word_of_anything() -> None:
    assert passes("name='a and b'", name="a and b")
    assert passes("name='('", name="(")
    assert passes("name=''", name="")
    assert passes("name=and", name="and")


@pytest.mark.parametrize("word", ["on", "enabled", "true", "yes", "1"])
def test_a_flag_is_asked_for_in_any_usual_word_or_the_word_is_refused(word: str) -> None:
    text = f"persistence_mode={word}"
    try:
        found = Filter(text, GPU_METRICS)
    except UsageError:
        assert blamed(text) == word
        return
    assert found(Gpu({"persistence_mode": True}))
    assert not found(Gpu({"persistence_mode": False}))


def test_the_keys_are_what_must_be_read() -> None:
    assert Filter("utilization.gpu<5 or (not name~x and utilization>1)", GPU_METRICS).keys == {"utilization", "name"}


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("", ""),
        ("utilization", ""),
        ("utilization<", ""),
        ("utilization<5 and", ""),
        ("(utilization<5", ""),
        ("utilization 5", "5"),
        ("utilization<5 utilization>2", "utilization>2"),
        ("utilization<5)", ")"),
        ("utilization<<5", "<5"),
        ("utilization<five or name=x", "five or name=x"),
        ("memory_used>1XiB", "1XiB"),
        ("throttle_time_thermal>5parsecs", "5parsecs"),
        ("utilization<nan", "nan"),
        ("utilization<inf", "inf"),
        ("utilization<1_0", "1_0"),
        ("utilization<%", "%"),
        ("name<x", "<x"),
        ("name=x and throttle_reasons>=x", ">=x"),
        ("and utilization<5", "and utilization<5"),
        ("utilization<5 and or name=x", "or name=x"),
        ("< 5", "< 5"),
        ("()", ")"),
        ("utilization<5 and nosuch>1", "nosuch>1"),
        ("name='open", "'open"),
        ('utilization<5 and name="open', '"open'),
        ("utilization ! 5", "! 5"),
    ],
)
def test_a_mistake_is_pointed_at(text: str, at: str) -> None:
    assert blamed(text) == at


def test_a_metric_nobody_knows_comes_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"utilisation.*did you mean 'utilization'"):
        Filter("name=x and utilisation<5", GPU_METRICS)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "utilization<5" + ")" * 5000,
        "not " * 5000 + "utilization<5",
        " and ".join(["utilization<5"] * 5000),
        " or ".join(["utilization>5"] * 5000 + ["utilization<5"]),
    ],
    ids=["brackets", "not", "and", "or"],
)
def test_a_filter_of_any_length_is_read_or_refused(text: str) -> None:
    try:
        found = Filter(text, GPU_METRICS)
    except UsageError:
        return
    assert found(Gpu({"utilization": 1}))
