"""What is wrong now, in words that are safe to print and fit the line."""

from __future__ import annotations

from typing import Any

from gpulse.model.event import Event
from gpulse.model.verdict import Concern, Holder, Verdict
from gpulse.present.concerns import concern_lines, facts, headline, place, summary, worded
from gpulse.present.text import width
from gpulse.present.theme import Theme

NOW = 1_700_000_000.0
PLAIN = Theme()
HOT = Concern("thermal_throttled", "critical", NOW, gpus=("3",), since=NOW - 90, lost=75.0)
LEAK = Concern("memory_leak", "warn", NOW, gpus=("5",), owner="ada", expected=NOW + 25)


def text(line: Any) -> str:
    return "".join(piece for piece, _ in line.pieces)


def test_places() -> None:
    assert place(Concern("hot", "warn", NOW)) == "machine"
    assert place(Concern("hot", "warn", NOW, gpus=("0", "1", "2"))) == "GPUs 0-2"
    assert place(Concern("hot", "warn", NOW, gpus=("0:1",))) == "GPU 0 MIG 1"
    assert place(Concern("hot", "warn", NOW, gpus=("0:1/0", "1"))) == "GPUs 0 MIG 1/0, 1"


def test_titles_are_those_that_cards_and_lists_show() -> None:
    titles = {
        "host_bound": "waiting for one thread",
        "input_bound_cpu": "waiting for CPUs",
        "memory_leak": "memory leak",
        "thermal_throttled": "too hot",
    }
    assert {key: worded([Concern(key, "warn", NOW)])[0].title for key in titles} == titles


def test_facts_are_only_those_that_are_known() -> None:
    assert facts(HOT) == ["for 1m30s", "about 1m15s of GPU time lost"]
    assert facts(LEAK) == ["ada", "memory full in 25s"]
    assert facts(LEAK.replace(expected=NOW - 5))[-1] == "memory full in 0s"
    assert facts(Concern("hot", "warn", NOW, since=NOW, lost=59.0)) == []


def test_the_number_of_concerns() -> None:
    assert summary([HOT, LEAK]) == "1 critical, 1 warning"
    assert summary([LEAK, LEAK]) == "2 warnings"
    assert summary([]) == ""


def test_words_come_from_the_verdict_or_the_event() -> None:
    leak = Verdict("memory_leak", advice=["detach_loss"], processes=[Holder(7, "python", "ada")])
    (one,) = worded([LEAK.replace(verdict=leak)])
    assert one.title == "memory leak"
    assert one.text.startswith("Memory leak: ada's python (pid 7)")
    assert one.remedy
    event = Event(NOW, "hot", ("3",), value=91, values={"above": 90.0})
    (one,) = worded([Concern("hot", "warn", NOW, gpus=("3",), event=event)])
    assert (one.text, one.remedy) == ("GPU 3 is at 91 °C (limit 90 °C)", "")


def test_names_that_others_chose_are_harmless() -> None:
    evil = "\x1b[31mada\n"
    holder = Holder(7, evil, evil)
    (one,) = worded([LEAK.replace(owner=evil, verdict=Verdict("memory_leak", processes=[holder]))])
    plain = one.to_plain()
    assert "\x1b" not in str(plain)
    assert plain["owner"].isprintable()
    assert plain["text"].isprintable()
    assert all(fact.isprintable() for fact in facts(LEAK.replace(owner=evil)))
    (unknown,) = worded([Concern(evil, "warn", NOW)])
    assert unknown.title.isprintable()


def test_each_concern_is_one_line_that_fits() -> None:
    wide, narrow = (concern_lines([HOT, LEAK], PLAIN, columns) for columns in (100, 30))
    assert [text(line)[2:] for line in wide] == [
        "GPU 3  too hot      for 1m30s · about 1m15s of GPU time lost",
        "GPU 5  memory leak  ada · memory full in 25s",
    ]
    assert all(line.width <= 30 for line in narrow)
    assert [line.pieces[0][1] for line in wide] == ["critical", "warn"]
    many = LEAK.replace(gpus=[str(at) for at in range(0, 60, 2)])
    assert all(line.width <= 30 for line in concern_lines([many], PLAIN, 30))


def test_a_headline_tells_the_worst_and_counts_the_rest() -> None:
    assert text(headline([HOT, LEAK], 100, "(y: why)")) == (
        "1 critical, 1 warning: GPU 3 too hot · GPU 5 memory leak, full in 25s  (y: why)"
    )
    assert text(headline([HOT, LEAK], 45, "(y: why)")) == "1 critical, 1 warning: GPU 3 too hot +1"
    assert text(headline([HOT, LEAK], 30, "(y: why)")) == "1 critical, 1 warning"
    assert headline([], 80).pieces == []
    for columns in range(1, 90):
        assert width(text(headline([HOT, LEAK, LEAK], columns, "(y: why)"))) <= columns
