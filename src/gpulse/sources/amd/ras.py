"""Errors of the memories, as RAS counts them by block since the driver was loaded."""

from __future__ import annotations

from ..files import names, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .reading import AmdReading

_LINKS = ("pcie_bif", "xgmi_wafl")  # blocks whose errors are those of links, not of memory
_SUFFIX = "_err_count"


def read_errors(reading: AmdReading) -> None:
    """Store the corrected and uncorrected errors of all memory blocks; boards without RAS have neither."""
    folder = f"{reading.files.path}/ras"
    files = [name for name in names(folder) if name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX) not in _LINKS]
    counts = [_counts(read_text(f"{folder}/{name}", 1024) or "") for name in files]
    for key, word in (("ecc_corrected", "ce"), ("ecc_uncorrected", "ue")):
        known = [count[word] for count in counts if word in count]
        reading.put(key, sum(known) if known else None)
    pages = read_text(f"{folder}/gpu_vram_bad_pages")
    lines = [line for line in (pages or "").splitlines() if line.lower().startswith("0x")]
    reading.put("retired_pages_uncorrected", None if pages is None else len(lines))


def _counts(text: str) -> dict[str, int]:
    """Read lines such as `ue: 0`."""
    found = {}
    for line in text.splitlines():
        word, colon, number = line.partition(":")
        if colon and number.strip().isdecimal() and number.isascii():
            found[word.strip()] = int(number)
    return found
