"""The result of one check of `gpulse doctor`: what was found, and what to do if it is not good."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    Level: TypeAlias = Literal["ok", "note", "warn", "fail"]


class Check:
    """`about` is a word or two, `found` a sentence, `remedy` what to do. All of it may be published after masking."""

    __slots__ = ("about", "found", "level", "remedy")

    def __init__(self, level: Level, about: str, found: str, remedy: str = "") -> None:
        self.level = level
        self.about = about
        self.found = found
        self.remedy = remedy

    def __repr__(self) -> str:
        return f"Check({self.level!r}, {self.about!r}, {self.found!r}, {self.remedy!r})"
