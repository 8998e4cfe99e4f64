"""Golden text: what a view looked like when somebody last looked at it and found it right.

`GPULSE_UPDATE=1 pytest` writes the files anew; then read the difference before keeping it.
"""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = Path(__file__).parent
_ESCAPE = "\N{SYMBOL FOR ESCAPE}"  # so that the files can be read, and shown, without acting on a terminal


def check_golden(name: str, lines: list[str]) -> None:
    """Compare lines with the file of this name."""
    path = _FOLDER / f"{name}.txt"
    text = "".join(f"{line}\n" for line in lines).replace("\x1b", _ESCAPE)
    if os.environ.get("GPULSE_UPDATE"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is not there; GPULSE_UPDATE=1 writes it"
    assert text == path.read_text(encoding="utf-8")
