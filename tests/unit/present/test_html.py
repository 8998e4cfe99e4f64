"""Values as HTML: text from anybody is only ever text, and what is missing is a dash."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

import gpulse
from gpulse.model.catalog import Gpu, Process
from gpulse.model.snapshot import Problem, Snapshot
from gpulse.model.verdict import Budget, Diagnosis, Verdict
from gpulse.present.html import budget_html, escape, snapshot_html, table
from gpulse.present.verdicts import PART_TITLES


@given(st.text())
def test_no_text_becomes_markup(text: str) -> None:
    written = escape(text)
    assert not re.search(r"[<>\"\x00-\x08]", written)


def test_names_of_processes_are_text() -> None:
    evil = Process({"pid": 7, "name": "<script>alert(1)</script>", "user": "<b>", "memory_used": 1.0})
    page = snapshot_html(Snapshot(1.0, (Gpu({"index": 0, "uuid": "a", "name": "<img src=x>"}, processes=(evil,)),)))
    assert not re.search(r"<(script|img|b)\b", page)


def test_what_is_missing_is_a_dash_and_never_a_zero() -> None:
    row = snapshot_html(Snapshot(1.0, (Gpu({"index": 3, "uuid": "a"}),)))
    assert "–" in row
    assert "0 %" not in row


def test_a_snapshot_shows_itself() -> None:
    lost = Gpu({"index": 1, "uuid": "b"}, state="lost")
    taken = Snapshot(
        1.0, (Gpu({"index": 0, "uuid": "a", "utilization": 97.0}), lost), problems=(Problem("nvidia", "odd & ill"),)
    )
    page = taken._repr_html_()
    assert "97 %" in page
    assert "lost" in page
    assert "odd &amp; ill" in page
    assert gpulse.snapshot_html(taken) == page
    assert "No GPU" in snapshot_html(Snapshot(1.0))


def test_a_table_has_its_heads_and_rows() -> None:
    assert table(["a<"], ["<td>1</td>"]).count("<tr>") == 2


def test_a_diagnosis_shows_its_sentences() -> None:
    diagnosis = gpulse.diagnose([gpulse.snapshot(source="demo") for _ in range(3)])
    page = diagnosis._repr_html_()
    assert page.count("<b>GPU ") == 8
    assert diagnosis.verdicts[0]._repr_html_() in page
    assert "<script" not in Verdict("<script>", index=0)._repr_html_()
    assert Diagnosis()._repr_html_()


def test_where_the_time_went_is_a_bar_and_a_text() -> None:
    budget = Budget(60, {"tensor": 0.25, "workers": 0.75}, ["workers"])
    page = gpulse.diagnosis_html([Verdict("input_bound_cpu", budget=budget)])
    assert 'aria-label="waiting for workers ~75 %, tensor cores 25 %"' in page
    assert re.findall(r"</span> ([^<]+)</span>", page) == ["tensor cores 25 %", "waiting for workers ~75 %"]
    assert re.findall(r"flex:([\d.]+)", page) == ["0.25", "0.75"]
    every = budget_html(Budget(1, dict.fromkeys(PART_TITLES, 1 / len(PART_TITLES))))
    assert every.count("flex:") == len(PART_TITLES)  # each part has a color
