"""Assemble the pages of the documentation site in build/site-source: `make site` builds the site from them.

Pages outside docs/ get a place in it, and links between pages are rewritten to fit.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "build/site-source"
REPOSITORY = "https://github.com/gpulse/gpulse/blob/main"
MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "bench/RESULTS.md": "results.md",
}
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)((?:#[^)\s]*)?)(?=\))")


def main() -> int:
    """Write all pages anew."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE, ignore=shutil.ignore_patterns("*.1"))
    places = (
        {path: path.removeprefix("docs/") for path in _documents()} | MOVED | {"docs/decisions": "decisions/index.md"}
    )
    for path, place in places.items():
        if path.endswith(".md"):
            text = (ROOT / path).read_text(encoding="utf-8")
            (SOURCE / place).write_text(_relinked(text, path, place, places), encoding="utf-8")
    (SOURCE / "decisions/index.md").write_text(_decisions(), encoding="utf-8")
    return 0


def _decisions() -> str:
    """Return the list of decision records."""
    records = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    titles = [(record.name, record.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")) for record in records]
    return "# Decisions\n\n" + "".join(f"- [{title}]({name})\n" for name, title in titles)


def _documents() -> list[str]:
    return [str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*") if path.is_file()]


def _relinked(text: str, path: str, place: str, places: dict[str, str]) -> str:
    """Return a page whose links lead to other pages of the site, or to the repository where the site has no such page."""

    def link(found: re.Match[str]) -> str:
        target, anchor = found[1], found[2]
        if re.match(r"[a-z]+:", target):
            return found[0]
        there = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if there in places:
            return os.path.relpath(places[there], os.path.dirname(place) or ".") + anchor
        if not (ROOT / there).exists():
            raise SystemExit(f"{path}: {target} is not there")
        return f"{REPOSITORY}/{there}{anchor}"

    return _LINK.sub(link, text)


if __name__ == "__main__":
    sys.exit(main())
