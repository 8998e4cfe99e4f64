"""The parser finds in any text what the reference parser finds in it."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gpulse.serving.kind import TextFormat

_NAMES = st.sampled_from(["up", "up_total", "vllm:running", "vllm:running_bucket", "x_y"])
_LABELS = st.dictionaries(
    st.sampled_from(["model", "le", "engine"]),
    st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=12),
    max_size=3,
)
_VALUES = st.one_of(st.floats(), st.integers(-(10**9), 10**9))
_LINES = st.lists(st.tuples(_NAMES, _LABELS, _VALUES, st.sampled_from(["", " 1700000000000"])), max_size=12)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _written(lines: list[tuple[str, dict[str, str], float, str]]) -> str:
    found = []
    for name, labels, value, stamp in lines:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        number = "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf") if math.isinf(value) else repr(value)
        found.append(f"{name}{f'{{{inside}}}' if labels else ''} {number}{stamp}")
    return "\n".join(found) + "\n"


@given(_LINES)
def test_it_agrees_with_the_reference(lines: list[tuple[str, dict[str, str], float, str]]) -> None:
    text = _written(lines)
    expected: dict[str, list[tuple[dict[str, str], str]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            expected.setdefault(sample.name, []).append((dict(sample.labels), repr(float(sample.value))))
    parser = TextFormat(["up", "up_total", "vllm:running", "vllm:running_bucket", "x_y"])
    for _ in range(2):  # the second time labels are known already
        got = {
            name: [(labels, repr(float(value))) for labels, value in samples]
            for name, samples in parser.parse(text.encode()).items()
        }
        assert {
            name: sorted((sorted(labels.items()), value) for labels, value in one) for name, one in got.items()
        } == {name: sorted((sorted(labels.items()), value) for labels, value in one) for name, one in expected.items()}


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(body: bytes) -> None:
    TextFormat(["a", "up"]).parse(body + b"\nup{" + body + b"} 1\nup 2")


def test_only_whole_names_count() -> None:
    parsed = TextFormat(["up"]).parse(b'up_total 1\nup 2\n# up 3\nup{a="b"} 4\nup{broken 5\nup x\nup 1 2 3\n')
    assert parsed == {"up": [({}, 2.0), ({"a": "b"}, 4.0)]}
