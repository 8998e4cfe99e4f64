"""Mask secrets in command lines where they are read, so that no surface can forget it."""

from __future__ import annotations

from .secret_signs import ECHOES, READERS, SETTERS, TOOLS, WEBHOOKS, is_phrase, name_of_secret, shape_of_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MASK = "***"
_QUOTES = "\"'`"
_SPACES = " \t\n"
_BREAKS = ";|&()\n"  # end a command of a shell
_LISTS = "[]{},\"'"
_AFTER_QUOTES = (*_SPACES, *_BREAKS, *_QUOTES, ",", "]", "}", "")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.~+/%")
_LONG_VALUES = frozenset({"authorization", "cookie", "bearer"})  # headers whose value may hold spaces and semicolons
_LOOKUPS = ("env", "open", "get", "read", "input")  # functions that fetch a secret, whose argument is none
_SEEN = 200  # characters of a value that decide; a hostile command line is nothing but names
_DEEP = 6  # shells inside shells; a hostile command line must not exhaust the stack


def mask(arguments: Sequence[str]) -> str:
    """Join a command line; mask what is a secret by its name, by its shape or by the tool it is handed to, and passwords in URLs.

    Secrets are also found inside an argument: the text of a shell, Python code, JSON, a header, the query of a URL.
    """
    inside = [
        _mask_text(argument, alone=not at or arguments[at - 1] in ("env", "-e", "--env") or "=" in arguments[at - 1])
        for at, argument in enumerate(arguments)
    ]
    return _mask_private_keys(" ".join(_mask_words(inside, 0)))


class _Command:
    """What the words of one command so far say about the next one."""

    def __init__(self, deep: int) -> None:
        self._deep = deep
        self._signs: list[str] = []
        self._name = ""  # the option, or the name in a setting, whose value may follow
        self._rest = -1  # words left until every word is a secret; -1: never
        self._sets = False
        self.first = ""
        self.reads = False  # takes a secret from standard input

    def mask(self, word: str) -> str:
        """Return the next word, masked if it is a secret."""
        if not word.strip(_LISTS):
            return word
        name, self._name = self._name, ""
        self.first = self.first or word
        self.reads |= word.endswith("-stdin") or (word in READERS and (word != "-S" or self.first == "sudo"))
        if word.startswith(MASK):
            return word
        if name and not _is_option(word):
            if name in self._signs or (name == "<<<" and self.reads):
                return _mask_login(word)
            if name_of_secret(name, word):
                self._name = name if word.isalpha() and is_phrase(name) else ""  # the next of its words follows
                return MASK
        if rest := self._attached(word):
            return word[: len(word) - len(rest)] + _mask_login(rest)
        if not any(space in word for space in _SPACES):
            return self._plain(word)
        return _mask_shell(word, self._deep + 1) if self._deep < _DEEP else MASK

    def _plain(self, word: str) -> str:
        """Note what a word without spaces says about the next one."""
        bare = word.strip(_LISTS)  # in JSON and in Python a command is a list: ["mysql", "-psecret"]
        option = bare[:1] == "-" and "=" not in bare and (self._rest or _is_option(bare))
        if word[0] in "<>":
            self._rest = -1  # what follows is a file
        if not option and self._rest == 0 and "://" not in word and word not in TOOLS:
            return MASK
        if not option and self._rest > 0:
            self._rest -= 1
        low = bare.lower()
        if (program := low.rpartition("=")[2].rpartition("/")[2]) in TOOLS:
            self._signs, self._rest, self._sets = [], -1, False
            self._note(TOOLS[program].split())
        self._note([sign.partition(":")[2] for sign in self._signs if sign.startswith(f"{low}:")])
        if option:
            short = f"-{bare[-1]}"  # the last of several short options in one word takes the value
            self._name = short if short in self._signs and bare[:2] != "--" and bare[1:].isalpha() else bare
        elif low in self._signs:
            self._name = low
        elif self._sets or word == "<<<":
            self._name = word
        self._sets |= low in SETTERS
        return _mask_host(word) if "@" in word else word

    def _note(self, signs: list[str]) -> None:
        for sign in signs:
            if sign[0] == "+":
                self._rest = int(sign[1:])
            elif sign not in self._signs:
                self._signs.append(sign)

    def _attached(self, word: str) -> str:
        """Return the secret that is a part of this word: -pSECRET, --user=SECRET."""
        for sign in self._signs:
            if sign[-1] == "+" and len(word) >= len(sign) and word.startswith(sign[:-1]):
                return word[len(sign) - 1 :]
        return ""


class _Operator(str):
    """A sign of a shell that ends a command."""

    __slots__ = ()


def _mask_words(words: Sequence[str], deep: int) -> list[str]:
    """Mask the words of one command, or of several with operators between them."""
    command = _Command(deep)
    shown: list[str] = []
    echoed = range(0)
    start = 0
    for at, word in enumerate(words):
        if isinstance(word, _Operator):
            echoed = range(start + 1, at) if word == "|" and command.first in ECHOES else range(0)
            command, start = _Command(deep), at + 1
            shown.append(word)
            continue
        shown.append(command.mask(word) if word else word)
        if command.reads and echoed:
            shown[echoed.start : echoed.stop] = [
                each if _is_option(each) else MASK for each in shown[echoed.start : echoed.stop]
            ]
            echoed = range(0)
    return shown


def _mask_shell(text: str, deep: int) -> str:
    """Mask the text of a shell, or any other text with spaces: each of its commands by itself, quoted ones included."""
    words, begins = _split(text)
    if words == [text]:
        return text
    shown, done = [], 0
    for word, begin, masked in zip(words, begins, _mask_words(words, deep), strict=True):
        shown += [text[done:begin], masked]
        done = begin + len(word)
    return "".join((*shown, text[done:]))


def _split(text: str) -> tuple[list[str], list[int]]:
    """Return the words of the text of a shell, without quotes around them, and where each begins.

    A quote that is never closed, or escaped for a shell further in, is skipped.
    """
    words: list[str] = []
    begins: list[int] = []
    whole, text = text, text.replace("\\\n", "  ")  # a command goes on after an escaped line break
    at = 0
    while at < len(text):
        letter = text[at]
        begin = end = at
        if letter in _BREAKS:
            words.append(_Operator(letter))
            begins.append(at)
        elif letter in _QUOTES:
            closed = _closing(text, at)
            if closed >= 0 and text[closed + 1 : closed + 2] in _AFTER_QUOTES:
                begin, end = at + 1, closed
        elif letter not in _SPACES and letter != "\\":
            end = _end_of_shell_word(text, at)
        if end > begin:
            words.append(whole[begin:end])
            begins.append(begin)
        at = max(end, at) + (end <= at or begin > at)
    return words, begins


def _end_of_shell_word(text: str, at: int) -> int:
    while at < len(text) and text[at] not in _SPACES and text[at] not in _BREAKS:
        if text[at] in _QUOTES:
            end = _closing(text, at)
            if end < 0:
                return at + 1
            at = end
        elif text[at] == "\\" and text[at + 1 : at + 2] in (*_QUOTES, "\\"):
            return at
        at += 1
    return at


def _closing(text: str, at: int) -> int:
    """Return where the quote that opens here is closed, or -1; escaped quotes beyond the first few are taken as they are.

    The bound keeps a hostile text of nothing but escaped quotes from taking minutes.
    """
    end = text.find(text[at], at + 1)
    for _ in range(64):
        if end < 0 or text[at] == "'" or (end - len(text[at:end].rstrip("\\")) - at) % 2 == 0:
            break
        end = text.find(text[at], end + 1)
    return end


def _is_option(word: str) -> bool:
    """Return whether a word after an option is another option, and not a value that begins with a dash."""
    if word[:2] == "--":
        return word[2:].partition("=")[0].replace("-", "").replace("_", "").replace(".", "").isalnum() or word == "--"
    return word[:1] == "-" and (len(word) < 4 or len(set(word)) == 2) and not word[1:].isdigit()


def _mask_login(word: str) -> str:
    """Mask USER:PASSWORD; the user stays, unless it is all there is."""
    for sign in ":%,":
        user, found, password = word.partition(sign)
        if found and password:
            return f"{user}{sign}{MASK}"
    return MASK


def _mask_host(word: str) -> str:
    """Mask the password of USER:PASSWORD@HOST without a scheme, as in the options of proxies."""
    address = word.rpartition("=")[2]
    login, _, host = address.rpartition("@")
    user, colon, password = login.partition(":")
    name, _, port = host.partition(":")
    reachable = port.isdecimal() or ("." in name and not name[0].isdecimal()) or name.count(".") == 3
    if not (colon and password and reachable) or "/" in login or password.startswith(MASK):
        return word
    return f"{word[: len(word) - len(address)]}{user}:{MASK}@{host}"


def _mask_text(text: str, alone: bool) -> str:
    """Mask the secrets inside one argument: NAME=VALUE, "name": "value", headers, URLs, known formats.

    `alone` says that an argument NAME=VALUE is nothing more, so that its value may hold spaces.
    """
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
        begin, over = _value_after(text, at, end, alone)
        value = text[begin : min(over, begin + _SEEN)]
        if value and not value.startswith(MASK) and (word.lower() == "bearer" or name_of_secret(word, value)):
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


def _value_after(text: str, start: int, end: int, alone: bool) -> tuple[int, int]:
    """Return where the value of the name at start..end begins and ends; an empty range if it has none."""
    at = _skip(text, end, _QUOTES + "\\]}")
    sign = _skip(text, at, " ")
    letter = text[sign : sign + 1]
    word = text[start:end]
    if letter == ":" and ("/" in word or text[sign : sign + 3] == "://"):
        return end, end  # a path in a list of paths, a URL
    if letter and letter in "=:":
        return _value_of_sign(text, start, sign, alone)
    if letter == ">" and at == end and text[start - 1 : start] == "<":
        return sign + 1, _until(text, sign + 1, "<")
    if letter == "," and at > end and text[: start - 1].rstrip("\\").endswith("("):  # setdefault("NAME", "value")
        return _quoted(text, _skip(text, sign + 1, " ")) or (end, end)
    if sign > end and at == end:
        if word.lower() == "bearer":
            return _quoted(text, sign) or (sign, _until(text, sign, " \n\t\"';|&"))
        if word.lower() in ("password", "passwd"):  # SQL
            return _quoted(text, sign) or (end, end)
    return end, end


def _value_of_sign(text: str, start: int, sign: int, alone: bool) -> tuple[int, int]:
    """Return where the value after = or : begins and ends."""
    begin = sign + (2 if text[sign : sign + 2] in ("==", ":=", "=>", ":-") else 1)
    value = _skip(text, begin, " ")
    quoted = _quoted(text, value)
    if quoted:
        return quoted
    if text[sign : sign + 2] == "==":
        return sign, sign  # a version, or a comparison
    if text[value : value + 1] == "(":
        return value, _until(text, value, ")")
    if text[sign] == ":":
        spaced = value > begin or text[start:sign].lower() in _LONG_VALUES
        end = _until(text, value, "\"'`,}\n&" if spaced else "\"'`,}&" + _SPACES)
        annotated = text[value:end].rstrip().endswith("=") and _quoted(text, end)  # Python: TOKEN: str = "value"
        return annotated or (value, end)
    if value > begin and not text[start:sign].endswith(" "):
        return begin, begin  # an empty variable of a shell, before a command
    if start == 0 and (alone or text[0] == "-" or not any(space in text for space in _SPACES)):
        return value, len(text)  # the whole argument is NAME=VALUE
    return _bare_value(text, start, value)


def _bare_value(text: str, start: int, begin: int) -> tuple[int, int]:
    """Return where a value without quotes ends; the argument of a function if it is one."""
    stops = "&;|)" + _SPACES + _QUOTES + ("}" if "{" in text[:start] else "") + ("#" if text[start - 1] in "?&" else "")
    end = _until(text, begin, stops)
    called = text[begin:end].partition("(")
    if called[1] or "[" in called[0]:
        quoted = _quoted(text, begin + len(called[0]) + 1)
        return (begin, begin) if not quoted or any(word in called[0].lower() for word in _LOOKUPS) else quoted
    comma = text.find(",", begin, end)
    if comma >= 0 and "=" in text[comma:end]:
        return begin, comma  # the next of several options: user=me,password=secret,port=1
    return begin, end


def _quoted(text: str, at: int) -> tuple[int, int] | None:
    """Return the range inside the quotes that open here, if any; quotes may be escaped, and have one of Python's prefixes."""
    escaped = text[at : at + 1] == "\\"
    begin = _skip(text, at, "\\")
    if begin == at and text[at : at + 1].lower() in ("r", "b", "f", "u", "$"):
        begin += 1
    if text[begin : begin + 1] not in tuple(_QUOTES):
        return None
    if text[begin : begin + 3] in ('"""', "'''"):
        end = text.find(text[begin : begin + 3], begin + 3)
        return begin + 3, end if end >= 0 else len(text)
    if escaped:
        return begin + 1, _until(text, begin + 1, text[begin] + "\\")
    end = _closing(text, begin)
    return begin + 1, end if end >= 0 else len(text)


def _skip(text: str, at: int, letters: str) -> int:
    while at < len(text) and text[at] in letters:
        at += 1
    return at


def _until(text: str, at: int, letters: str) -> int:
    return min((end for letter in letters if (end := text.find(letter, at)) >= 0), default=len(text))


def _mask_urls(text: str) -> str:
    """Mask in each URL the password, or the only name, before the host, and the keys of webhooks."""
    shown, rest = "", text
    while "://" in rest:
        before, scheme, rest = rest.partition("://")
        end = _until(rest, 0, "/ \n\t\"'`")
        credentials, at, _ = rest[:end].rpartition("@")
        if at:
            user, colon, _ = credentials.partition(":")
            if colon:
                rest = f"{user}:{MASK}{rest[len(credentials) :]}"
            elif before.endswith(("http", "https")):  # elsewhere a name alone is a user: ssh://git@host
                rest = f"{MASK}{rest[len(credentials) :]}"
        for place in WEBHOOKS:
            address, found, key = rest.partition(place)
            if found and not any(letter in address for letter in _SPACES + _QUOTES):
                rest = f"{address}{place}{MASK}{key[_until(key, 0, _SPACES + _QUOTES + '?') :]}"
        shown += before + scheme
    return shown + rest


def _mask_private_keys(text: str) -> str:
    """Mask what is between BEGIN and END of private keys."""
    shown = ""
    while "PRIVATE KEY-----" in text:
        before, sign, text = text.partition("PRIVATE KEY-----")
        shown += f"{before}{sign}{MASK}"
        text = text[text.find("-----END") :] if "-----END" in text else ""
        ending, sign, text = text.partition("PRIVATE KEY-----")
        shown += ending + sign
    return shown + text
