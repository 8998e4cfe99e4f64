"""What is said of runs, as HTML, Markdown and JSON."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from gpulse.model.catalog import Gpu, Host
from gpulse.model.snapshot import Problem, Snapshot
from gpulse.present.html import LINE_COLORS
from gpulse.sinks.base import Mark
from gpulse.surfaces.report.account import account
from gpulse.surfaces.report.comparison import comparison_document, comparison_to_plain, differences, run_to_plain
from gpulse.surfaces.report.document import TableBlock, to_markdown
from gpulse.surfaces.report.html import to_html
from gpulse.surfaces.report.pages import run_document, tiles
from gpulse.surfaces.report.recorded_samples import RecordedSample
from gpulse.surfaces.report.run import Run
from tests.unit.surfaces.report.runs import GIB, HOSTILE, START, gpu, process, run_of, sample, samples


class Elements(HTMLParser):
    """The elements of a page, and what each of the scripts holds."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.seen and self.seen[-1] == "script" and self.scripts:
            self.scripts[-1] += data


def hostile_run() -> Run:
    """A run in which everything that can be chosen is."""
    moments = []
    for at in range(20):
        text = HOSTILE[at % len(HOSTILE)]
        one = process(at, name=text, user=text, command=text, job=text)
        snapshot = Snapshot(
            START + at,
            (gpu(0, one, name=text, throttle_reasons=(text,)), Gpu({"uuid": text})),
            Host({"name": text}),
            {text: text, "version": text},
            (Problem(text, text),),
        )
        moments.append(
            RecordedSample(
                snapshot,
                phase=text,
                step=at,
                marks=[Mark(text, text, START + at)],
                values={text: 1.0, f"train/{text}": 2.0},
            )
        )
    return account(moments, HOSTILE[0])


def test_texts_of_others_are_shown_and_never_obeyed() -> None:
    page = to_html(run_document(hostile_run(), HOSTILE[1]))
    elements = Elements(page)
    assert elements.seen.count("script") == 2
    assert "img" not in elements.seen
    assert not [name for name, _ in elements.attributes if name.startswith("on")]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\\x1b[31m" in page
    data = json.loads(elements.scripts[0])
    assert any("<script>" in phase[2] for phase in data["phases"])


def test_a_page_asks_for_nothing() -> None:
    page = to_html(run_document(run_of(samples(30))))
    elements = Elements(page)
    policy = dict(elements.attributes).get("http-equiv")
    assert policy == "Content-Security-Policy"
    assert not {"img", "iframe", "object", "embed"}.intersection(elements.seen)
    assert [value for name, value in elements.attributes if name in ("src", "href")] == ["data:,"]
    assert "://" not in page.replace("http-equiv", "")


def test_lines_have_the_colors_of_the_page() -> None:
    page = to_html(run_document(run_of(samples(30))))
    assert "--lines" not in page
    for colors in LINE_COLORS.values():
        assert " ".join(f"--c{at}: {color};" for at, color in enumerate(colors)) in page


def test_texts_of_others_stay_between_backticks_in_markdown() -> None:
    text = to_markdown(run_document(hostile_run()))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", text)
    outside = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert "alert" not in outside
    assert "onerror" not in outside
    rows = [line for line in outside.splitlines() if line.startswith("|")]
    assert rows
    assert all(line.endswith("|") for line in rows)


def test_a_report_says_what_happened() -> None:
    def snapshots() -> list[Snapshot]:
        def full(held: int) -> Gpu:
            return gpu(0, process(memory_used=held * GIB), memory_used=138 * GIB, memory_percent=98.6, energy=0.0)

        hot = gpu(1, utilization=0.0, sm_active=0.0, throttle_reasons=("hw_thermal_slowdown",))
        ended = gpu(0, memory_used=0.0, energy=7200.0)
        return [sample(at, full(130 if at < 27 else 138) if at < 30 else ended, hot) for at in range(60)]

    text = to_markdown(run_document(run_of(snapshots())))
    assert "probably out of memory: it held 138 GiB" in text
    assert re.search(r"59s so far +\| GPU 1 throttled: too hot", text)
    assert re.search(r"Peak memory +\| +138/140 GiB \| 99 % of GPU 0", text)
    assert re.search(r"Idle +\| +50 %", text)
    assert "`ada`" in text
    assert "GPU-hours" in text


def test_where_the_time_went_is_in_every_form() -> None:
    run = run_of(samples(60, utilization=100.0, sm_active=90.0, tensor_active=60.0, dram_active=30.0))
    (found,) = run_to_plain(run)["budget"]
    assert found["index"] == 0
    assert found["shares"]["tensor"] == pytest.approx(0.6, abs=0.05)
    assert sum(found["shares"].values()) == pytest.approx(1, abs=0.001)
    text = f"tensor cores {100 * found['shares']['tensor']:.0f} %"
    markdown, page = to_markdown(run_document(run)), to_html(run_document(run))
    assert re.search(rf"^- GPU 0: `#+[^`]*` .*# {text}", markdown, re.MULTILINE)
    assert f'<i class="swatch chart1"></i>{text}</li>' in page
    assert re.search(rf'role="img" aria-label="[^"]*{text}', page)


def test_a_column_nobody_has_is_left_out() -> None:
    document = run_document(run_of(samples(5)))
    table = next(block for block in document.blocks if isinstance(block, TableBlock) and block.title == "GPUs")
    assert "Tensor" not in table.header
    assert "SM active" in table.header


def test_a_run_without_activity_shows_utilization() -> None:
    bare = [Snapshot(START + at, (Gpu({"index": 0, "utilization": 40.0}),)) for at in range(5)]
    run = run_of(bare)
    assert run.activity == "utilization"
    assert "Utilization, mean" in to_markdown(run_document(run))


def test_json_has_the_figures_and_round_trips() -> None:
    plain = json.loads(json.dumps(run_to_plain(run_of(samples(30))), allow_nan=False))
    assert plain["start"] == "2023-11-14T22:13:20.000000Z"
    assert plain["summary"]["gpus"][0]["stats"]["power_draw"]["mean"] == pytest.approx(500.0)
    assert (plain["schema"], plain["energy_estimated"], plain["driver"]["cuda"]) == (1, True, "13.0")


def test_equal_runs_do_not_differ() -> None:
    first, second = run_of(samples(100)), run_of(samples(100))
    assert not [each.title for each in differences(first, second) if each.matters]
    assert "No significant differences" in to_markdown(comparison_document(first, second))


def test_a_difference_that_matters_is_marked() -> None:
    first, second = run_of(samples(100), "a"), run_of(samples(100, power_draw=300.0), "b")
    assert {each.title for each in differences(first, second) if each.matters} == {"Power per GPU", "Energy"}
    text = to_markdown(comparison_document(first, second))
    assert "**▼ 200 W (-40 %)**" in text
    page = to_html(comparison_document(first, second))
    assert '<tr class="changed"><th scope="row">Power per GPU</th>' in page


def test_a_difference_within_what_a_run_varies_by_itself_is_not() -> None:
    def wavy(high: float) -> list[Snapshot]:
        return [sample(at, gpu(power_draw=100.0 if at // 10 % 2 else high)) for at in range(100)]

    found = {each.title: each for each in differences(run_of(wavy(700.0)), run_of(wavy(600.0)))}
    assert found["Power per GPU"].before == pytest.approx(400.0, rel=0.02)
    assert found["Power per GPU"].noise > 25
    assert not found["Power per GPU"].matters


def test_a_comparison_as_json() -> None:
    plain = comparison_to_plain(run_of(samples(20)), run_of(samples(40)))
    (duration,) = [each for each in plain["differences"] if each["figure"] == "Duration"]
    assert (duration["a"], duration["b"], duration["matters"]) == (19.0, 39.0, True)


def test_runs_of_different_gpus_can_be_compared() -> None:
    one, two = run_of(samples(20)), run_of(sample(at, gpu(0), gpu(1)) for at in range(20))
    assert "2 × `H200`" in to_markdown(comparison_document(one, two))


def test_eight_gpus_over_an_hour_stay_small() -> None:
    def wave(at: int, index: int, scale: float) -> float:
        return scale * ((at * 7919 + index * 104729) % 997) / 997  # as restless as numbers can be

    keys = {"tensor_active": 100, "dram_active": 100, "clock_sm": 1980, "pcie_rx": 5e9, "pcie_tx": 5e9}
    run = run_of(
        sample(
            at,
            *(
                gpu(index, **{key: wave(at, index, high) for key, high in keys.items()}, sm_active=wave(at, index, 100))
                for index in range(8)
            ),
        )
        for at in range(1200)
    )
    assert len(to_html(run_document(run))) < 1_000_000


def test_throttling_that_nobody_recorded_is_not_none() -> None:
    assert "Throttled" not in [name for name, _, _ in tiles(run_of(samples(10)))]
    assert ("Throttled", "none", "by heat or hardware") in tiles(run_of(samples(10, throttle_reasons=())))


def test_one_sample_is_one() -> None:
    assert tiles(run_of(samples(1)))[0][2] == "1 sample"
