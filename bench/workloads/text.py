"""A tokenizer in plain Python, and a text for it: work that keeps one core busy."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z]+|\d+|[^\sA-Za-z\d]+")


def tokenize(text: str, vocabulary: dict[str, int]) -> list[int]:
    """Split a text into words and those into known pieces, greedily: what a tokenizer in plain Python does."""
    tokens = []
    for word in _WORD.findall(text):
        at = 0
        while at < len(word):
            end = next((end for end in range(len(word), at, -1) if word[at:end] in vocabulary), at + 1)
            tokens.append(vocabulary.get(word[at:end], 0))
            at = end
    return tokens


def sample_text() -> str:
    """Return a text of about 40 KB."""
    return " ".join(f"{word}{number % 97}" for number, word in enumerate(_TEXT.split() * 400))


def pieces(text: str) -> dict[str, int]:
    """Return a vocabulary of pieces of up to four letters."""
    return {text[at : at + size]: at + size for at in range(3000) for size in (1, 2, 3, 4)}


_TEXT = "the quick brown fox jumps over lazy dogs while several engineers measure what their devices really do all day"
