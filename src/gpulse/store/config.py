"""The configuration file: read whole, changed key by key, everything else in it left as it was."""

from __future__ import annotations

import os
import re

from ..errors import ConfigError
from .place import config_path as config_path
from .place import machine_path as machine_path
from .place import writable_by_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, TypeAlias

    Setting: TypeAlias = "str | bool | int | float | list[str]"
    # The whole name, tables first, of a key or header; where it begins, where its value begins (None: a header), where it ends.
    Statement: TypeAlias = tuple[tuple[str, ...], int, int | None, int]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ELEMENT = "[[]]"  # stands in a path for one table of an array of them
_TOML_LINE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def read_config(path: str) -> dict[str, Any]:
    """Return the tables of a configuration file; {} if there is none.

    Raises ConfigError naming the file, the line and what is wrong there.
    """
    text = _text(path)
    return _parse(text, path) if text else {}


def read_machine_config(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the tables of the machine's settings; {} where there are none. Others than root must not be able to change them.

    Raises ConfigError for a file that somebody else could write, and as `read_config` does.
    """
    path = machine_path(environ)
    if not os.path.exists(path):
        return {}
    if other := writable_by_others(path):
        raise ConfigError(
            f"{path} is not used: {other} can be changed by others than root;",
            f"run chown root {other} && chmod go-w {other}.",
        )
    return read_config(path)


def key_lines(path: str) -> list[tuple[tuple[str, ...], int]]:
    """Return the headers and keys of a file, each with its whole name and line, in order; nothing of a file that is not TOML.

    An entry of an array of tables has `[[]]` in its name, after the name of the array.
    """
    text = _text(path) or ""
    try:
        return [(name, text.count("\n", 0, start) + 1) for name, start, _, _ in _statements(text)]
    except (ValueError, RecursionError):
        return []


def write_table(path: str, table: str, values: Mapping[str, Setting]) -> None:
    """Set keys of one [table]; every other line, comment and key of the file stays as it is.

    The file is replaced at once or not at all; one behind a symbolic link is replaced where it lies. A new file is
    for its owner only. Raises ConfigError, and writes nothing, when the file cannot be understood or replaced.
    """
    if not values:
        return
    text = _text(path) or ""
    before = _parse(text, path)
    wanted = before.get(table, {})
    if not isinstance(wanted, dict):
        raise ConfigError(f"{path}: {table} is not a table;", f"rename that key, and [{table}] can be written.")
    changed = _edited(text, table, {key: _written(value) for key, value in values.items()})
    try:
        same = _alike(_parse(changed, path), {**before, table: {**wanted, **values}})
    except ConfigError:
        same = False
    if not same:  # the table is written in a way that this does not know how to change, inline for instance
        raise ConfigError(f"{path}: [{table}] cannot be changed where it is;", f"write it as lines below [{table}].")
    if changed != text:
        _replace(path, os.path.realpath(path), changed)


def _text(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: this is not UTF-8.") from None


def _parse(text: str, path: str) -> dict[str, Any]:
    try:
        return _loads(text)
    except RecursionError:
        raise ConfigError(f"{path}: this is nested too deeply.") from None
    except ValueError as error:
        found = _TOML_LINE.search(str(error))
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        what = str(error)[: found.start()] if found else str(error)
        raise ConfigError(f"{path}, line {line}: {what[:1].lower()}{what[1:]}.") from None


def _loads(text: str) -> dict[str, Any]:
    try:  # only where there is a file to read
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib
    values: dict[str, Any] = tomllib.loads(text)
    return values


def _is_toml(text: str) -> bool:
    try:
        _loads(text)
    except ValueError:
        return False
    return True


def _statements(text: str) -> Iterator[Statement]:
    """Walk the headers and keys of a text in order: the fewest lines that are TOML are one. Raises ValueError where none are."""
    table: tuple[str, ...] = ()
    start = end = 0
    while start < len(text):
        end = text.find("\n", end) + 1 or len(text)
        if not text[start:end].partition("#")[0].strip():
            start = end
        elif _is_toml(text[start:end]):
            at = start + len(text[start:end]) - len(text[start:end].lstrip())
            comments = [place for place in range(at, end) if text[place] == "#"]
            stop = next(place for place in (*comments, end) if _is_toml(text[at:place]))
            stop = at + len(text[at:stop].rstrip())
            if text[at] == "[":
                table = _name_in(text[at:stop])
                yield table, at, None, stop
            else:
                equals = next(
                    place for place in range(at, stop) if text[place] == "=" and _is_toml(f"{text[at:place]}= 0")
                )
                value = stop - len(text[equals + 1 : stop].lstrip())
                yield (*table, *_name_in(f"{text[at:equals]}= 0")), at, value, stop
            start = end
        elif end == len(text):
            raise ValueError("this is not TOML")


def _name_in(statement: str) -> tuple[str, ...]:
    """Return the name of a header or key; the keys of an array of tables are those of no table."""
    found: Any = _loads(statement)
    name: tuple[str, ...] = ()
    while isinstance(found, dict) and found:
        ((key, found),) = found.items()
        name = (*name, key)
    return (*name, _ELEMENT) if isinstance(found, list) else name


def _edited(text: str, table: str, values: Mapping[str, str]) -> str:
    """Return the text with the values set: where the key stands, else below the table's last, else in a new table."""
    newline = "\r\n" if "\r\n" in text else "\n"
    spans: dict[str, tuple[int, int]] = {}
    last: int | None = None  # where the table's last statement ends
    section: tuple[str, ...] = ()
    for name, _, value_at, end in _statements(text):
        if value_at is None:
            section = name
        elif name[:-1] == (table,):
            spans[name[-1]] = (value_at, end)
        if section == (table,):
            last = end
    fresh = [f"{_name(key)} = {value}" for key, value in values.items() if key not in spans]
    edits = [(*spans[key], value) for key, value in values.items() if key in spans]
    if fresh and last is not None:
        line_end = text.find("\n", last)
        at = len(text) if line_end < 0 else line_end + 1
        before = newline if line_end < 0 else ""
        edits.append((at, at, before + newline.join(fresh) + newline))
    elif fresh:
        space = "" if not text else newline if text.endswith("\n") else newline * 2
        edits.append((len(text), len(text), space + newline.join([f"[{_name(table)}]", *fresh]) + newline))
    for start, stop, value in sorted(edits, reverse=True):
        text = text[:start] + value + text[stop:]
    return text


def _name(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def toml_text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Return tables as the text of a settings file."""
    lines = [line for name, table in tables.items() for line in (f"[{_name(name)}]", *_lines(table))]
    return "".join(f"{line}\n" for line in lines)


def _lines(table: Mapping[str, Any]) -> Iterator[str]:
    return (f"{_name(key)} = {_written(value)}" for key, value in table.items())


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(_lines(value))} }}"
    return repr(value) if isinstance(value, (int, float)) else str(value)


def _quoted(text: str) -> str:
    return '"' + "".join(_escaped(char) for char in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return f"\\u{ord(char):04x}" if ord(char) < 0x20 or ord(char) == 0x7F else char


def _alike(one: object, other: object) -> bool:
    """Compare what was read, types and all; unlike ==, a NaN is like itself and True is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    return type(one) is type(other) and (one == other or (one != one and other != other))


def _replace(path: str, target: str, text: str) -> None:
    """Put a text in the place of a file: whole, on the disk, with the mode the file had."""
    from .lines import replaced

    try:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        old = os.stat(target) if os.path.exists(target) else None
        if old and not os.access(target, os.W_OK):
            raise PermissionError(0, "it is read-only")
        with replaced(target) as file:
            if old:
                os.fchmod(file.fileno(), old.st_mode & 0o7777)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(os.path.dirname(target))
    except (OSError, UnicodeEncodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it would not be UTF-8"
        raise ConfigError(f"{path} cannot be written: {why}.") from None


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)  # or the rename could be lost with the power
    except OSError:
        pass  # some file systems cannot, and the file itself is safe
    finally:
        os.close(handle)
