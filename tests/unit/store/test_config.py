"""The configuration file: what is written is read back, and nobody's lines are lost."""

from __future__ import annotations

import math
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.errors import ConfigError
from gpulse.store.config import config_path, read_config, write_table
from gpulse.store.secret_file import read_secret

_SETTINGS = st.one_of(
    st.text(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.lists(st.text(), max_size=4),
)
_TABLES = st.dictionaries(st.text(), _SETTINGS, max_size=5)
_HAND_WRITTEN = """\
# my settings
answer = 42  # of a newer version

[other]
"odd key" = 'C:\\path'   # a literal

[ top ] # the screen
# how often
interval = 2.5   # seconds
columns = [
  "pid", # first
  'user',
]
  theme = "li#ght" # not a comment inside
future = { a = 1, b = [1, 2] }
text = \"\"\"
two [top]
lines = "quoted" \"\"\"

[top.deeper]
interval = 9
[last]
x = 1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


class TestPath:
    @pytest.mark.parametrize(
        ("environ", "path"),
        [
            ({"GPULSE_CONFIG": "/a/b.toml", "XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/a/b.toml"),
            ({"GPULSE_CONFIG": "", "XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/gpulse/config.toml"),
            ({"XDG_CONFIG_HOME": "", "HOME": "/h"}, "/h/.config/gpulse/config.toml"),
            ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, "/h/.config/gpulse/config.toml"),
            ({"HOME": "/h"}, "/h/.config/gpulse/config.toml"),
        ],
    )
    def test_as_the_environment_says(self, environ: dict[str, str], path: str) -> None:
        assert config_path(environ) == path


class TestReading:
    def test_no_file_and_an_empty_one_are_no_settings(self, file: Path) -> None:
        assert read_config(str(file)) == {}
        file.write_bytes(b"")
        assert read_config(str(file)) == {}

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("[top]\ninterval = \n", 2),
            ("[top]\ninterval = fast\n", 2),
            ("[top]\n\ninterval\n", 3),
            ("[top\n", 1),
            ("# x\n[top]\na = 1\na = 2\n", 4),
            ("[top]\na = 1\n[top]\n", 3),
            ("[top]\na = [1\nb = 2\n", None),
            ('[top]\na = "open\n', 2),
            ('[top]\na = "\\q"\n', 2),
            ("[top]\na = 1 b = 2\n", 2),
            ("a = 1\n[a.b]\n", 2),
            ("a = 01\n", 1),
            ("= 1\n", 1),
        ],
    )
    def test_a_broken_file_is_named_with_its_line(self, file: Path, text: str, line: int | None) -> None:
        file.write_text(text)
        with pytest.raises(ConfigError) as caught:
            read_config(str(file))
        assert caught.value.exit_code == 2
        assert str(file) in caught.value.message
        if line is not None:
            assert f", line {line}: " in caught.value.message

    def test_bytes_that_are_no_text_are_named_with_their_line(self, file: Path) -> None:
        file.write_bytes(b"[top]\nx = '\xff'\n")
        with pytest.raises(ConfigError, match=r"line 2: this is not UTF-8"):
            read_config(str(file))

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
            read_config(str(tmp_path))

    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("a = 1_000\nb = -2\nc = +3.5e-2\nd = inf", {"a": 1000, "b": -2, "c": 0.035, "d": math.inf}),
            ("a.b = 1\na.c = true # yes\n[d.'e f']\ng = false", {"a": {"b": 1, "c": True}, "d": {"e f": {"g": False}}}),
            ("a = [ # x\n'b', \"c\",\n# y\n]\r\n", {"a": ["b", "c"]}),
            ('a = "\\u00e9\\U0001F600\\t\\"\\\\n"', {"a": 'é😀\t"\\n'}),
            ("a = \"\"\"\nb\\\n   c\"\"\"\nd = '''\ne\\f'''", {"a": "bc", "d": "e\\f"}),
            ('"" = ""', {"": ""}),
        ],
    )
    def test_what_people_write_is_read(self, file: Path, text: str, values: dict[str, Any]) -> None:
        file.write_bytes(text.encode())
        assert read_config(str(file)) == values


class TestWriting:
    @given(table=st.text(), values=_TABLES)
    @example(table="top", values={"a": "\x7f\x00\u2028\\\"'#[]\r\n", "b": -0.0, "c": 1e300, "d": 5e-324})
    def test_what_was_written_is_given_back(self, table: str, values: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.toml")
            write_table(path, table, values)
            found = read_config(path)
        assert found == ({table: values} if values else {})
        assert [type(value) for value in found.get(table, {}).values()] == [type(v) for v in values.values()]

    @given(first=_TABLES, second=_TABLES, other=_TABLES)
    def test_later_values_win_and_other_keys_stay(
        self, first: dict[str, Any], second: dict[str, Any], other: dict[str, Any]
    ) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.toml")
            write_table(path, "top", first)
            write_table(path, "other", other)
            write_table(path, "top", second)
            found = read_config(path)
        assert found.get("top", {}) == {**first, **second}
        assert found.get("other", {}) == other

    @given(values=st.dictionaries(st.sampled_from(["interval", "columns", "theme", "text", "new"]), _SETTINGS))
    @example(values={"columns": ["pid"], "text": "short", "new": True})
    def test_comments_and_unknown_keys_survive(self, values: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "config.toml")
            Path(path).write_text(_HAND_WRITTEN)
            before = read_config(path)
            write_table(path, "top", values)
            after, text = read_config(path), Path(path).read_bytes().decode()
        assert after == {**before, "top": {**before["top"], **values}}
        for kept in ("# my settings", "# of a newer version", "# a literal", "[ top ] # the screen", "# how often"):
            assert kept in text
        for kept in ("   # seconds", " # not a comment inside", "future = { a = 1, b = [1, 2] }"):
            assert kept in text
        assert text.endswith("[top.deeper]\ninterval = 9\n[last]\nx = 1\n")

    def test_one_key_changes_one_line(self, file: Path) -> None:
        file.write_text(_HAND_WRITTEN)
        write_table(str(file), "top", {"interval": 5.0})
        assert file.read_text() == _HAND_WRITTEN.replace("interval = 2.5   #", "interval = 5.0   #")

    def test_a_new_key_goes_below_the_last_of_its_table(self, file: Path) -> None:
        file.write_text("[top]\na = 1 # one\n\n# about the next\n[next]\n")
        write_table(str(file), "top", {"b": 2})
        assert file.read_text() == "[top]\na = 1 # one\nb = 2\n\n# about the next\n[next]\n"

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("", "[top]\na = 1\n"),
            ("# mine", "# mine\n\n[top]\na = 1\n"),
            ("[top]", "[top]\na = 1\n"),
            ("[x]\r\ny = 1\r\n", "[x]\r\ny = 1\r\n\r\n[top]\r\na = 1\r\n"),
            ("[top]\r\nb = 1\r\n", "[top]\r\nb = 1\r\na = 1\r\n"),
            ("top.a = 7 # dotted\n", "top.a = 1 # dotted\n"),
            ('["top"]\n"a" = [1,\n 2]\n', '["top"]\n"a" = 1\n'),
            ("[[runs]]\na = 5\n[[runs]]\na = 6\n", "[[runs]]\na = 5\n[[runs]]\na = 6\n\n[top]\na = 1\n"),
        ],
    )
    def test_where_a_value_goes(self, file: Path, before: str, after: str) -> None:
        file.write_bytes(before.encode())
        write_table(str(file), "top", {"a": 1})
        assert file.read_bytes().decode() == after

    @pytest.mark.parametrize(
        "text",
        ["[top\n", "[top]\na = \n", "top = 3\n", "top = { b = 1 }\n", "top.b = 1\n", "[[top]]\nb = 1\n"],
    )
    def test_what_cannot_be_changed_safely_is_left_alone(self, file: Path, text: str) -> None:
        file.write_text(text)
        with pytest.raises(ConfigError, match=r"config\.toml"):
            write_table(str(file), "top", {"a": 1})
        assert file.read_text() == text
        assert os.listdir(file.parent) == [file.name]

    def test_a_new_file_is_its_owners_alone_and_its_folder_is_made(self, tmp_path: Path) -> None:
        file = tmp_path / "new" / "gpulse" / "config.toml"
        write_table(str(file), "top", {"a": 1})
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert os.listdir(file.parent) == [file.name]

    def test_an_old_file_keeps_its_mode(self, file: Path) -> None:
        file.write_text("")
        file.chmod(0o644)
        write_table(str(file), "top", {"a": 1})
        assert stat.S_IMODE(file.stat().st_mode) == 0o644

    @pytest.mark.parametrize("there", [True, False])
    def test_a_link_stays_one_and_its_target_is_written(self, tmp_path: Path, file: Path, there: bool) -> None:
        target = tmp_path / "dotfiles" / "gpulse.toml"
        if there:
            target.parent.mkdir()
            target.write_text("# kept\n")
        file.symlink_to(target)
        write_table(str(file), "top", {"a": 1})
        assert file.is_symlink()
        assert target.read_text().endswith("[top]\na = 1\n")
        assert target.read_text().startswith("# kept") is there

    def test_nothing_to_change_is_no_write(self, file: Path) -> None:
        file.write_text("[top]\na = 1\n")
        before = file.stat()
        write_table(str(file), "top", {"a": 1})
        assert file.stat().st_ino == before.st_ino

    @pytest.mark.parametrize("call", ["fsync", "replace", "open"])
    def test_a_write_that_fails_leaves_the_old_file_and_no_other(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        file.write_text("[top]\na = 1\n")
        monkeypatch.setattr(os, call, fail)
        with pytest.raises(ConfigError, match=r"cannot be written: No space left on device"):
            write_table(str(file), "top", {"a": 2})
        monkeypatch.undo()
        assert file.read_text() == "[top]\na = 1\n"
        assert os.listdir(file.parent) == [file.name]

    def test_a_file_made_read_only_is_not_replaced(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file.write_text("[top]\n")
        monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
        with pytest.raises(ConfigError, match="it is read-only"):
            write_table(str(file), "top", {"a": 1})
        assert file.read_text() == "[top]\n"

    def test_text_that_no_file_can_hold_is_refused(self, file: Path) -> None:
        with pytest.raises(ConfigError):
            write_table(str(file), "top", {"a": "\ud800"})
        assert not file.exists()


def test_a_secret_is_the_first_line_with_all_its_spaces(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    for text, secret in (("a b \n", "a b "), ("\r\ntoken\r\nmore\n", "token"), ("token", "token")):
        path.write_text(text, newline="")
        assert read_secret(str(path), "the file") == secret
    path.write_text(" \n")
    with pytest.raises(ConfigError, match="is empty"):
        read_secret(str(path), "the file")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_secret(str(tmp_path / "missing"), "the file")
