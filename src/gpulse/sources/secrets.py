"""Mask secrets in command lines where they are read, so that no surface can forget it."""

from __future__ import annotations

from .secret_signs import name_of_secret, shape_of_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MASK = "***"
_QUOTES = "\"'`"
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.~+/%")
_OPTIONS = {"curl": ("-u", "--user", "--proxy-user"), "sshpass": ("-p",), "redis-cli": ("-a",), "wandb": ("login",)}


def mask(arguments: Sequence[str]) -> str:
    """Join a command line; mask what is a secret by its name or by its shape, and passwords in URLs.

    Secrets are also found inside an argument: a shell command, JSON, a header, the query of a URL.
    """
    shown: list[str] = []
    name = ""
    hidden: tuple[str, ...] = ()
    before = ""
    for argument in arguments:
        hidden = _OPTIONS.get(argument.rpartition("/")[2], hidden)
        if name and not argument.startswith("-") and name_of_secret(name, argument):
            shown.append(MASK)
        elif before in hidden and not argument.startswith("-"):
            shown.append(_mask_login(argument))
        else:
            shown.append(_mask_text(argument))
        name = argument if argument.startswith("-") and "=" not in argument else ""
        before = argument
    return " ".join(shown)


def _mask_login(argument: str) -> str:
    user, colon, password = argument.partition(":")
    return f"{user}:{MASK}" if colon and password else MASK


def _mask_text(text: str) -> str:
    """Mask the secrets inside one argument."""
    text = _mask_urls(text) if "://" in text else text
    shown: list[str] = []
    at = 0
    while at < len(text):
        end = _end_of_word(text, at)
        if end == at:
            shown.append(text[at])
            at += 1
            continue
        word = text[at:end]
        begin, over = _value_after(text, at, end)
        value = text[begin:over]
        if value and not value.startswith(MASK) and (name_of_secret(word, value) or word.lower() == "bearer"):
            shown.append(text[at:begin] + MASK)
            at = over
        else:
            shown.append(MASK if shape_of_secret(word) else word)
            at = end
    return "".join(shown)


def _end_of_word(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WORD:
        at += 1
    return at


def _value_after(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the value of the name at start..end begins and ends; an empty range if a name of no value."""
    at = _skip(text, end, _QUOTES + "\\")
    sign = _skip(text, at, " ")
    if text[sign : sign + 1] in ("=", ":") and text[sign : sign + 1] and text[sign : sign + 3] != "://":
        begin = _skip(text, sign + 1, " ")
        return _quoted(text, begin) or (begin, _end_of_value(text, start, begin, text[sign]))
    if sign > end and at == end and (text[start] == "-" or text[start:end].lower() == "bearer"):
        return (
            (end, end)
            if text[sign : sign + 1] == "-"
            else _quoted(text, sign) or (sign, _until(text, sign, " \n\t\"';|&"))
        )
    return end, end


def _quoted(text: str, at: int) -> tuple[int, int] | None:
    """Return the range inside the quotes that open here, if any; quotes may be escaped."""
    begin = _skip(text, at, "\\")
    if text[begin : begin + 1] not in tuple(_QUOTES):
        return None
    return begin + 1, _until(text, begin + 1, text[begin] + "\\")


def _end_of_value(text: str, start: int, begin: int, sign: str) -> int:
    if sign == ":":  # a header, or a line of JSON or YAML: its value may hold spaces
        return _until(text, begin, "\"'`,}\n&")
    if start == 0 and not any(letter in text for letter in " \n\t"):
        return len(text)  # the whole argument is NAME=VALUE
    return _until(text, begin, " \n\t\"'`&;,}#")


def _skip(text: str, at: int, letters: str) -> int:
    while at < len(text) and text[at] in letters:
        at += 1
    return at


def _until(text: str, at: int, letters: str) -> int:
    while at < len(text) and text[at] not in letters:
        at += 1
    return at


def _mask_urls(text: str) -> str:
    """Mask the password, or the only name, before the host of each URL."""
    shown, rest = "", text
    while "://" in rest:
        before, scheme, rest = rest.partition("://")
        end = _until(rest, 0, "/ \n\t\"'`")
        credentials, at, _ = rest[:end].rpartition("@")
        if at:
            user, colon, _ = credentials.partition(":")
            rest = f"{user}:{MASK}{rest[len(credentials) :]}" if colon else f"{MASK}{rest[len(credentials) :]}"
        shown += before + scheme
    return shown + rest
