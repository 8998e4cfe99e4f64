"""Texts for users are in plain English: help, error hints, metric descriptions and documents."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from gpulse.cli.main import VERBS, load
from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, SERVER_METRICS
from tests.architecture.syntax import modules, statements

ROOT = Path(__file__).parents[2]
ODD = re.compile(
    r"\b(so many|so much|so long|unless given|a looks?|looks? (more|less) often|say so|says so|himself|shown the door|"
    r"whoever|anew|held down|where there is none|nobody|somebody|everybody|in words|at the most|now and then|"
    r"same room|lets? go|such a thing|values of now|tells? of|its like|who waits stands|knows? nothing of|says? of itself|"
    r"a (line|card|row|series|file) a|per cent|utilisation|colours?|honoured|is no (file|number|path|address|metric))\b",
    re.IGNORECASE,
)
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/gpulse.1", "Makefile")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "deploy").rglob("*.*")),
]
METRICS = [*GPU_METRICS.values(), *PROCESS_METRICS.values(), *HOST_METRICS.values(), *SERVER_METRICS.values()]


def odd(text: str) -> list[str]:
    """Return the odd phrases in a text; quoted wrong input, as in examples of errors, does not count."""
    return [found[0] for found in ODD.finditer(re.sub(r"'utilisation'", "", text))]


def test_odd_phrases_are_found() -> None:
    assert odd("Look every so many seconds; 1 unless given") == ["so many", "unless given"]
    assert odd("Time between samples, in seconds (default: 1)") == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_has_no_odd_phrase(path: Path) -> None:
    assert odd(path.read_text(encoding="utf-8")) == []


def test_docstrings_have_no_odd_phrase() -> None:
    plain_in_code = {"nobody", "somebody", "everybody"}
    found = {}
    for name, tree in modules():
        for node in statements(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                phrases = [
                    phrase for phrase in odd(ast.get_docstring(node) or "") if phrase.lower() not in plain_in_code
                ]
                if phrases:
                    found[f"{name}:{getattr(node, 'name', 'module')}"] = phrases
    assert found == {}


@pytest.mark.parametrize("verb", VERBS)
def test_an_option_says_what_it_sets(verb: str) -> None:
    for option in load(verb).options:
        flag = option.flags[0]
        assert odd(option.help) == [], flag
        assert option.help[0].isupper() or option.help.startswith("`"), flag
        assert not option.help.endswith("."), flag
        assert option.help.count("(default") <= 1, flag
        if "(default" in option.help:
            assert option.help.endswith(")"), f"{flag}: the default comes last"


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_summarized_by_an_imperative(name: str) -> None:
    summary = VERBS[name]
    assert odd(summary) == []
    assert summary[0].isupper()
    assert not summary.endswith(".")
    assert summary.split()[0].rstrip("s") == summary.split()[0], "an imperative, not a noun or a third person"
    assert len(summary) <= 80


def test_a_metric_is_described_in_one_sentence() -> None:
    for metric in METRICS:
        assert odd(f"{metric.title} {metric.help}") == [], metric.key
        assert metric.help[0].isupper(), metric.key
        assert metric.help.endswith("."), metric.key
