"""`gpulse mcp`: tools for assistants over the Model Context Protocol, on standard input and output."""

from __future__ import annotations

import sys

from ...plugins import need_extra
from ..options import DEMO, HELP, SOURCE, Arguments, Option, Verb
from ..session import source_name


def run(arguments: Arguments) -> int:
    """Serve until the client closes standard input."""
    need_extra("`gpulse mcp`", "mcp", "mcp.server")
    from ...surfaces.mcp import Tools, serve

    if sys.stdin.isatty():
        sys.stderr.write("gpulse: mcp speaks JSON-RPC on standard input; add it to an assistant as `gpulse mcp`.\n")
    try:
        serve(Tools(source_name(arguments), arguments.file))
    except KeyboardInterrupt:
        pass
    return 0


VERB = Verb(
    "mcp",
    (
        Option("--file", value="FILE", complete="files", help="History file to read (default: this machine's)"),
        *(SOURCE, DEMO, HELP),
    ),
    run,
    (
        ("claude mcp add gpulse -- gpulse mcp", "add gpulse to an assistant"),
        ("gpulse mcp --demo", "try it without a GPU"),
    ),
)  # fmt: skip
