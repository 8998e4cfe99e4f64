"""Tests for the words of the pages: those of present, as they are written for TypeScript."""

from __future__ import annotations

from pathlib import Path

from gpulse.model.metric import GAPS
from gpulse.present.words import PAGE_GAPS
from tools.docs import MADE
from tools.vocabulary import vocabulary

WRITTEN = Path(__file__).parents[3] / "web/src/vocabulary.ts"


def test_the_pages_have_the_words_of_present() -> None:
    assert WRITTEN.read_text(encoding="utf-8") == vocabulary(MADE), "run `make docs` and `npm run build` in web/"


def test_every_gap_has_a_word() -> None:
    assert set(PAGE_GAPS) == set(GAPS)
