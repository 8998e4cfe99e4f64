"""Bytes to keys: whole, in pieces, and when they are nonsense."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.screen.tty import Keyboard, KeyEvent

SEQUENCES = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1bOC": "right",
    b"\x1bOD": "left",
    b"\x1b[H": "home",
    b"\x1b[F": "end",
    b"\x1bOH": "home",
    b"\x1bOF": "end",
    b"\x1b[1~": "home",
    b"\x1b[4~": "end",
    b"\x1b[7~": "home",
    b"\x1b[8~": "end",
    b"\x1b[5~": "pageup",
    b"\x1b[6~": "pagedown",
    b"\x1b[2~": "insert",
    b"\x1b[3~": "delete",
    b"\x1b[Z": "backtab",
    b"\x1bOP": "f1",
    b"\x1bOQ": "f2",
    b"\x1bOR": "f3",
    b"\x1bOS": "f4",
    b"\x1b[[A": "f1",
    b"\x1b[[E": "f5",
    b"\x1b[11~": "f1",
    b"\x1b[15~": "f5",
    b"\x1b[17~": "f6",
    b"\x1b[18~": "f7",
    b"\x1b[19~": "f8",
    b"\x1b[20~": "f9",
    b"\x1b[21~": "f10",
    b"\x1b[24~": "f12",
}
PLAIN = {
    b"a": "a",
    b"G": "G",
    b"[": "[",
    b"\r": "enter",
    b"\n": "enter",
    b"\t": "tab",
    b" ": "space",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x0c": "ctrl-l",
    b"\x03": "ctrl-c",
    b"\x15": "ctrl-u",
    "é".encode(): "é",
    "漢".encode(): "漢",
    "🚀".encode(): "🚀",
}


def typed(*reads: bytes) -> list[KeyEvent]:
    """The events of some reads and a silence after them."""
    keyboard = Keyboard()
    events = [event for read in reads for event in keyboard.feed(read)]
    return events + keyboard.flush()


def keys(*reads: bytes) -> list[str]:
    return [event.key for event in typed(*reads)]


class TestWhole:
    @pytest.mark.parametrize(("data", "name"), [*SEQUENCES.items(), *PLAIN.items()])
    def test_each_is_one_key(self, data: bytes, name: str) -> None:
        keyboard = Keyboard()
        assert keyboard.feed(data) == [KeyEvent(name)]
        assert not keyboard.waiting
        assert keyboard.flush() == []

    def test_many_in_one_read_come_in_order(self) -> None:
        assert keys(b"a\x1b[Bq\x1b[21~\x1b[<64;3;4M/") == ["a", "down", "q", "f10", "", "/"]

    @pytest.mark.parametrize(
        "data",
        [b"\x1b[1;5A", b"\x1b[23~", b"\x1b[?1;2c", b"\x1b[200~", b"\x1b[27;5;9~", b"\x1bOz", b"\x1b[I", b"\x1b[ q"],
    )
    def test_one_that_nobody_needs_is_swallowed(self, data: bytes) -> None:
        assert keys(data + b"j") == ["j"]


class TestInPieces:
    @pytest.mark.parametrize(("data", "name"), [*SEQUENCES.items(), *PLAIN.items()])
    def test_cut_anywhere_it_is_the_same_key(self, data: bytes, name: str) -> None:
        for at in range(1, len(data)):
            keyboard = Keyboard()
            assert keyboard.feed(data[:at]) == []
            assert keyboard.feed(data[at:]) == [KeyEvent(name)]
            assert not keyboard.waiting

    @pytest.mark.parametrize(("data", "name"), [*SEQUENCES.items(), *PLAIN.items()])
    def test_byte_by_byte_it_is_the_same_key(self, data: bytes, name: str) -> None:
        assert keys(*(bytes([byte]) for byte in data)) == [name]

    def test_a_click_cut_anywhere_is_the_same_click(self) -> None:
        data = b"\x1b[<0;120;7M"
        for at in range(1, len(data)):
            assert typed(data[:at], data[at:]) == [KeyEvent(mouse="press", column=119, row=6)]

    @given(st.text(st.characters(codec="utf-8", min_codepoint=32), max_size=12), st.data())
    def test_text_cut_anywhere_is_the_same_text(self, text: str, data: st.DataObject) -> None:
        raw = text.encode()
        cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=4)))
        edges = [0, *cuts, len(raw)]
        reads = [raw[start:end] for start, end in itertools.pairwise(edges)]
        assert keys(*reads) == keys(raw)
        assert [key for key in keys(raw) if len(key) == 1] == [char for char in text if char not in " \x7f"]


class TestEscape:
    def test_alone_it_waits_and_is_a_key_after_a_silence(self) -> None:
        keyboard = Keyboard()
        assert keyboard.feed(b"\x1b") == []
        assert keyboard.waiting
        assert keyboard.flush() == [KeyEvent("escape")]
        assert not keyboard.waiting

    def test_with_a_letter_it_is_escape_and_the_letter(self) -> None:
        assert keys(b"\x1bx") == ["escape", "x"]
        assert keys(b"\x1b", b"x") == ["escape", "x"]

    def test_twice_it_is_twice(self) -> None:
        assert keys(b"\x1b\x1b") == ["escape", "escape"]

    def test_just_before_an_arrow_it_leaves_the_arrow_whole(self) -> None:
        assert keys(b"\x1b\x1b[A") == ["escape", "up"]
        assert keys(b"\x1b", b"\x1b[A") == ["escape", "up"]

    def test_just_before_a_click_it_leaves_the_click_whole(self) -> None:
        assert typed(b"\x1b\x1b[<0;1;1M") == [KeyEvent("escape"), KeyEvent(mouse="press")]

    def test_a_beginning_that_never_ends_stops_waiting(self) -> None:
        keyboard = Keyboard()
        assert keyboard.feed(b"\x1b[<0;3") == []
        keyboard.flush()
        assert not keyboard.waiting
        assert keyboard.feed(b"q") == [KeyEvent("q")]


class TestMouse:
    @pytest.mark.parametrize(
        ("data", "kind"),
        [
            (b"\x1b[<0;5;3M", "press"),
            (b"\x1b[<0;5;3m", "release"),
            (b"\x1b[<32;5;3M", "drag"),
            (b"\x1b[<64;5;3M", "wheelup"),
            (b"\x1b[<65;5;3M", "wheeldown"),
            (b"\x1b[<16;5;3M", "press"),  # with Ctrl held
        ],
    )
    def test_what_was_done_and_where(self, data: bytes, kind: str) -> None:
        assert typed(data) == [KeyEvent(mouse=kind, column=4, row=2)]

    @pytest.mark.parametrize(
        "data", [b"\x1b[<1;5;3M", b"\x1b[<2;5;3M", b"\x1b[<35;5;3M", b"\x1b[<64;5;3m", b"\x1b[<3;5;3M"]
    )
    def test_other_buttons_and_bare_moves_are_nothing(self, data: bytes) -> None:
        assert typed(data) == []

    def test_a_broken_one_is_swallowed(self) -> None:
        assert keys(b"\x1b[<0;5Mq") == ["q"]
        assert keys(b"\x1b[<;;Mq") == ["q"]

    def test_a_number_without_end_is_no_reason_to_fail(self) -> None:
        assert typed(b"\x1b[<0;" + b"9" * 5000 + b";1M" + b"q")[-1] == KeyEvent("q")


class TestNonsense:
    @given(st.lists(st.binary(max_size=24), max_size=6))
    @example([b"\x1b[", b"\x1b["])
    @example([b"\xf0", b"\x1b"])
    def test_any_bytes_do_no_harm_and_a_later_key_is_read(self, reads: list[bytes]) -> None:
        keyboard = Keyboard()
        for read in reads:
            keyboard.feed(read)
        keyboard.flush()
        assert not keyboard.waiting
        assert keyboard.feed(b"q")[-1:] == [KeyEvent("q")]

    @given(st.binary(max_size=60), st.integers(0, 60))
    def test_where_the_reads_are_cut_changes_nothing(self, data: bytes, at: int) -> None:
        assert typed(data[:at], data[at:]) == typed(data)

    @given(st.from_regex(re.compile(rb"(?:\x1b[\[O<]?[0-9;?<]{0,6}[A-Za-z~\[]?){1,5}", re.DOTALL), fullmatch=True))
    def test_things_like_sequences_do_no_harm(self, data: bytes) -> None:
        keyboard = Keyboard()
        keyboard.feed(data)
        keyboard.flush()
        assert keyboard.feed(b"\x1b[B") == [KeyEvent("down")]


def test_events_compare_by_what_they_say_and_can_be_read() -> None:
    assert KeyEvent("a") == KeyEvent("a")
    assert len({KeyEvent("a"), KeyEvent("a"), KeyEvent("b")}) == 2
    assert repr(KeyEvent("up")) == "KeyEvent(up)"
    assert repr(KeyEvent(mouse="press", column=3, row=4)) == "KeyEvent(press@3,4)"
