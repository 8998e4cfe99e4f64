"""Lines of code in words."""

from __future__ import annotations

import pytest

from gpulse.model.stacks import CodeLine
from gpulse.present.code import advised, call_text, code_markdown, code_rows, code_sentence, kind_of, place_text

METRIC = CodeLine("/home/ada/train.py", 84, "compute_f1", 58.0, 1.0)
ITEM = CodeLine("/home/ada/train.py", 40, "train", 13.0, 228.0, "loss.item")


def test_the_sentence_says_how_long_the_gpu_waited_and_where() -> None:
    assert code_sentence([METRIC, ITEM]) == "The GPU waited 71 of 300 s; 58 s of it in train.py:84 compute_f1(…)."
    assert code_sentence([ITEM]) == "The GPU waited 13 of 241 s; 13 s of it in train.py:40 train(…), in loss.item()."
    assert code_sentence([METRIC, ITEM], seconds=80).startswith("The GPUs waited 71 of 300 GPU seconds; 58 s of it in ")


@pytest.mark.parametrize("lines", [[], [METRIC._replace(waited=0.2)], [METRIC._replace(waited=1.0, computed=300.0)]])
def test_nothing_is_said_where_the_gpu_hardly_waited(lines: list[CodeLine]) -> None:
    assert code_sentence(lines) == ""
    assert advised(lines) == []


def test_a_table_leaves_out_lines_that_hardly_count() -> None:
    small = METRIC._replace(line=1, waited=0.1, computed=0.0)
    assert code_rows([METRIC, ITEM, small]) == [
        ("train.py:84", "compute_f1", "", "58 s", "1.0 s"),
        ("train.py:40", "train", "loss.item()", "13 s", "228 s"),
    ]


def test_markdown_has_sentence_table_and_advice_and_shows_names_as_they_are() -> None:
    odd = CodeLine("/home/ada/a|b.py", 4, "<lambda>", 13.0, 228.0, "DataLoader.__next__")
    sentence, table, advice = code_markdown([METRIC, odd]).split("\n\n")
    assert sentence == code_sentence([METRIC, odd])
    assert table.splitlines() == [
        "| line | function | in | waited | computed |",
        "| --- | --- | --- | ---: | ---: |",
        "| train.py:84 | compute_f1 |  | 58 s | 1.0 s |",
        r"| a\|b.py:4 | &lt;lambda> | DataLoader.\_\_next\_\_ | 13 s | 228 s |",
    ]
    assert advice.startswith("- 58 s in train.py:84 compute_f1(…): ")
    assert r"- 13 s in a\|b.py:4, in DataLoader.\_\_next\_\_: " in advice
    assert code_markdown([METRIC._replace(waited=0.2)]) == ""


@pytest.mark.parametrize(
    ("call", "within", "role", "kind"),
    [
        ("loss.item", "", "main", "sync"),
        ("preds.cpu", "", "main", "download"),
        ("DataLoader.__next__", "", "main", "workers"),
        ("PIL.open", "DataLoader.__next__", "main", "no_workers"),
        ("", "DataLoader.__next__", "worker", "worker"),
        ("torch.save", "", "main", "save_in_loop"),
        ("print", "", "main", "print_in_loop"),
        ("logger.info", "", "main", "print_in_loop"),
        ("writer.add_image", "", "main", "print_in_loop"),
        ("", "", "main", "python"),
        ("torch.cuda.empty_cache", "", "main", "empty_cache"),
        ("batch.to", "", "main", "pageable"),
        ("nn.Linear", "", "main", "module_in_loop"),
        ("torch.compile", "", "main", "compile_in_loop"),
        ("lock.acquire", "", "main", "lock"),
        ("model", "", "main", "launches"),
    ],
)
def test_each_kind_of_line_has_advice_of_its_own(call: str, within: str, role: str, kind: str) -> None:
    line = CodeLine("t.py", 1, "train", 10.0, 0.0, call, within, "worker" if role == "worker" else "main")
    assert kind_of(line) == kind
    assert advised([line])[0].startswith("10 s in t.py:1 train(…)")


def test_what_a_line_is_in() -> None:
    assert call_text(METRIC) == ""
    assert call_text(METRIC._replace(call="PIL.open", within="DataLoader.__next__")) == "DataLoader.__next__"
    assert call_text(METRIC._replace(role="worker", within="DataLoader.__next__")) == "a loader worker"


def test_a_cell_is_called_a_cell() -> None:
    assert place_text(METRIC._replace(file="/tmp/ipykernel_12/345.py")) == "cell:84"
    assert place_text(METRIC._replace(file="In [3]")) == "In [3], line 84"
