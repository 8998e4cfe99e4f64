"""A report as text in one of its forms, and the file it goes to."""

from __future__ import annotations

import os

from ...errors import GpulseError, UsageError
from ...store.lines import save

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.serving import Tariff
    from .document import Document
    from .run import Run

FORMS = ("html", "markdown", "json", "text", "folded")
_SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json"}


def form_of(path: str, *tables: str) -> str:
    """Return the form that the name of a file asks for, which may be one of `tables`; raise UsageError when it asks for none."""
    suffix = os.path.splitext(path)[1].lower()
    forms = _SUFFIXES | {f".{table}": table for table in tables}
    if suffix not in forms:
        *some, last = (".html", ".md", ".json", *(f".{table}" for table in tables))
        raise UsageError(f"{path!r} has no known extension;", f"use {', '.join(some)} or {last}.")
    return forms[suffix]


def report_document(runs: Sequence[Run], title: str = "") -> Document:
    """Return what is said of one run, or of two side by side."""
    if len(runs) == 2:
        from .comparison import comparison_document

        return comparison_document(runs[0], runs[1], title)
    from .pages import run_document

    return run_document(runs[0], title)


def report_text(form: str, runs: Sequence[Run], title: str = "") -> str:
    """Return one run, or two side by side, in one of FORMS; `text` is without colors, 120 cells wide."""
    if form == "json":
        return _json(runs)
    if form == "folded":
        return _folded(runs)
    document = report_document(runs, title)
    if form == "text":
        from ...present.theme import Theme
        from .terminal import to_terminal

        return to_terminal(document, Theme(), 120)
    if form == "html":
        from .html import to_html

        return to_html(document)
    from .document import to_markdown

    return to_markdown(document)


def _folded(runs: Sequence[Run]) -> str:
    from .flame import folded

    if len(runs) > 1:
        raise UsageError("report: two recordings cannot be compared as folded;", "use html, markdown or json.")
    stacks = runs[0].summary.stacks
    if not stacks:
        raise GpulseError(
            f"{runs[0].name} has no stacks.",
            "Record them from the program, with Monitor(JsonlSink(path)), or with gpulse run.",
        )
    return folded(stacks)


def write_report(recording: str, path: str, title: str = "", tariff: Tariff | None = None) -> None:
    """Write what a recording says to a file, whose name says the form; raise GpulseError when either cannot be."""
    from .account import account
    from .recorded_samples import recorded

    form = form_of(path)
    run = account(recorded(recording), os.path.basename(recording))
    run.tariff = tariff
    save(path, [report_text(form, [run], title)])


def _json(runs: Sequence[Run]) -> str:
    import json

    from .comparison import comparison_to_plain, run_to_plain

    plain = comparison_to_plain(runs[0], runs[1]) if len(runs) == 2 else run_to_plain(runs[0])
    return json.dumps(plain, indent=2, allow_nan=False) + "\n"
