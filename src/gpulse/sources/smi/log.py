"""Parse the output of `nvidia-smi -q -x`, including UTF-16 from Windows and names that break the XML."""

from __future__ import annotations

import re

from ...errors import SourceUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_BARE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")
_MOST = 1 << 26


def decode(content: bytes) -> str:
    """Return the text; PowerShell writes a redirected output as UTF-16."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8-sig", "replace")


def parse_log(text: str) -> Element:
    """Return the log of a text; of several, as `nvidia-smi -l` writes them, the last whole one. Raise SourceUnavailable."""
    if len(text) > _MOST or "<!ENTITY" in text:
        raise _unreadable("it is too big or declares entities")
    parts = [part for part in text.split("<?xml") if "<nvidia_smi_log" in part]
    for part in reversed(parts):
        if (log := _parsed(part[part.index("<nvidia_smi_log") :])) is not None:
            return log
    raise _unreadable("no whole nvidia_smi_log is in it")


def _parsed(part: str) -> Element | None:
    from xml.etree.ElementTree import ParseError, fromstring

    end = part.rfind("</nvidia_smi_log>")
    whole = part[: end + len("</nvidia_smi_log>")] if end >= 0 else ""
    for candidate in (whole, _BARE.sub("&amp;", _CONTROL.sub("", whole))):
        try:
            return fromstring(candidate)
        except (ParseError, ValueError):
            continue
    return None


def _unreadable(why: str) -> SourceUnavailable:
    return SourceUnavailable(
        f"nvidia-smi: this is no output of `nvidia-smi -q -x`: {why}.", "Record it with `nvidia-smi -q -x > FILE`."
    )
