"""Each kind of server is recognized by its answer, and its figures are those of the answer, added up over ranks and engines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.serving.kind import Figures, Kind, TextFormat
from gpulse.serving.kinds import KINDS, plugin_kinds, read_loaded, read_slots

from . import answers


def figures(text: str) -> tuple[str, list[Figures]]:
    body = text.encode()
    found: list[tuple[Kind, str]] = [
        (kind, prefix) for kind in KINDS if kind.mark and (prefix := kind.prefix_in(body)) is not None
    ]
    kind, prefix = found[0]
    return kind.name, kind.figures(TextFormat(kind.names(prefix)).parse(body), prefix)


@pytest.mark.parametrize("prefix", ["vllm:", "ray_vllm:", "ray_vllm_", ""])
def test_vllm_under_all_its_prefixes(prefix: str) -> None:
    kind, [one] = figures(answers.vllm(prefix=prefix))
    assert kind == ("vllm" if prefix else "nim")
    assert one.model == "acme/tiny-7b"
    assert one.gauges == {"running": 31, "waiting": 4, "kv_cache": 87, "capacity": 32000}
    assert one.counts == {
        "prompt_tokens": 9000,
        "generation_tokens": 5000,
        "requests": 50,
        "errors": 3,
        "preemptions": 2,
        "prefix_queries": 1000,
        "prefix_found": 250,
    }
    assert one.latencies["first_token"].quantile(0.5) == pytest.approx(0.25)


def test_an_old_name_is_taken_where_the_new_one_is_missing() -> None:
    _, [one] = figures(answers.vllm(cache="gpu_cache_usage_perc"))
    assert one.gauges["kv_cache"] == 87


def test_engines_add_up_and_shares_are_averaged() -> None:
    _, [one] = figures(answers.vllm(engines=2))
    assert one.gauges["running"] == 62
    assert one.gauges["kv_cache"] == pytest.approx(68.5)
    assert one.counts["generation_tokens"] == 10_000
    assert one.latencies["first_token"].counts[-1] == 80


def test_ranks_of_one_engine_count_once() -> None:
    kind, [one] = figures(answers.sglang())
    assert kind == "sglang"
    assert one.gauges == {"running": 14, "waiting": 4, "kv_cache": pytest.approx(50.0), "capacity": 50_000}
    assert one.counts["generation_tokens"] == 600
    assert one.counts["prefix_found"] == 800


def test_tgi() -> None:
    kind, [one] = figures(answers.tgi())
    assert kind == "tgi"
    assert one.gauges == {"running": 12, "waiting": 6}
    assert one.counts == {"prompt_tokens": 800, "generation_tokens": 4100, "requests": 90, "errors": 3}
    assert set(one.latencies) == {"inter_token", "request"}


def test_llama_cpp_before_its_first_request() -> None:
    kind, [one] = figures(answers.llama_cpp())
    assert kind == "llama.cpp"
    assert one.gauges == {"running": 2, "waiting": 1}
    assert one.counts == {"prompt_tokens": 120, "generation_tokens": 640}


@pytest.mark.parametrize(
    ("command", "share"),
    [
        ("llama-server -m tiny.gguf", 75.0),  # the server chose four slots with one cache
        ("llama-server -m tiny.gguf --parallel 4", 18.75),  # each has its own
        ("llama-server -np 4 -kvu", 75.0),
        ("", None),  # on another machine: who knows
    ],
)
def test_llama_cpp_tells_the_cache_by_slots(command: str, share: float | None) -> None:
    body = answers.llama_slots((1000, 500, 548), None, (0, 1000, 24), None)
    assert read_slots(body, command) == share


def test_one_slot_of_llama_cpp_needs_no_command_line() -> None:
    assert read_slots(answers.llama_slots((1000, 24, 0)), "") == 25.0
    assert read_slots(answers.llama_slots(None), "") == 0.0
    assert read_slots(answers.llama_slots((4000, 200, 0)), "") == 100.0


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("n_ctx", "is_processing", "next_token", "n_decoded")), inner)
    ),
)


@given(st.binary() | _JSON.map(lambda plain: json.dumps(plain).encode()))
def test_any_answer_of_slots_is_a_share_or_nothing(body: bytes) -> None:
    share = read_slots(body, "llama-server")
    assert share is None or 0.0 <= share <= 100.0


def test_triton_tells_only_of_models_that_are_used() -> None:
    kind, [one] = figures(answers.triton())
    assert kind == "triton"
    assert one.model == "tensorrt_llm"
    assert one.gauges == {"running": 16, "waiting": 3, "kv_cache": pytest.approx(31.0)}
    assert one.counts == {"requests": 70, "errors": 2}


def test_ollama_names_its_models() -> None:
    assert [one.model for one in read_loaded(answers.OLLAMA.encode())] == ["tiny:7b", "small:1b"]
    assert read_loaded(b"<html>") == read_loaded(b"[]") == read_loaded(b'{"models": 3}') == []


def test_numbers_that_cannot_be_are_nothing() -> None:
    text = answers.vllm().replace(" 31.0", " -5").replace(" 5000.0", " NaN")
    _, [one] = figures(text)
    assert "running" not in one.gauges
    assert "generation_tokens" not in one.counts


def test_an_answer_of_very_many_models_is_cut() -> None:
    text = "".join(answers.vllm(model=f"m{number}") for number in range(40))
    assert len(figures(text)[1]) == 16


class _Plugin:
    def __init__(self, made: object) -> None:
        self._made = made

    def load(self) -> object:
        return self._made


def test_a_plug_in_adds_a_kind_and_a_broken_one_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Kind("acme", "requests", prefixes=("acme_",))

    def broken() -> Kind:
        raise RuntimeError("no")

    found = [_Plugin(broken), _Plugin(lambda: "something else"), _Plugin(lambda: mine)]
    monkeypatch.setattr("gpulse.plugins.plugins", lambda group: found)
    assert list(plugin_kinds()) == [mine]
