"""Documents made from the tables: docs/metrics.md, docs/cli.md, the man page and the completion scripts.

python -m tools.docs            # write them
python -m tools.docs --check    # exit 1 when one is not up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

from gpulse._version import __version__
from gpulse.cli.completion import script
from gpulse.cli.help import usage
from gpulse.cli.main import VERBS, load
from gpulse.cli.options import Verb
from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS
from gpulse.model.metric import Metric
from gpulse.sources.registry import metric_sources

ROOT = Path(__file__).parent.parent
MADE = "made by `make docs`; do not edit"
EXIT_CODES = (
    (0, "answered, also when some fields are missing"),
    (1, "anything else that failed"),
    (2, "the request was wrong: a verb, an option, a metric, a GPU"),
    (3, "no GPU was found; the message says what was looked for and why it failed"),
    (124, "the driver did not answer"),
    (130, "interrupted"),
)
VARIABLES = (
    ("GPULSE_SOURCE", "the source when --source is not given"),
    ("NO_COLOR, FORCE_COLOR", "switch colours off, or on where they would be off"),
    ("COLUMNS", "the width to fill, instead of the terminal's"),
    ("CUDA_VISIBLE_DEVICES", "what `--gpu visible` means"),
    ("GPULSE_ROOT", "a folder to read /proc and /sys from; for tests"),
)


def metrics_page() -> str:
    """Return docs/metrics.md."""
    out = [
        f"<!-- {MADE} -->",
        "# Metrics",
        "",
        "Every metric gpulse knows. A value that is not there is null and has a reason in `gaps`:",
    ]
    out += ["`unsupported`, `denied`, `failed`, `lost`, `timeout`, `asleep`, `skipped` or `pending`.", ""]
    for title, metrics in (("GPU", GPU_METRICS), ("Process", PROCESS_METRICS), ("Host", HOST_METRICS)):
        out += [
            f"## {title}",
            "",
            "| key | unit | asked | meaning | nvidia-smi | DCGM |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        out += [_metric_row(metric) for metric in metrics.values()]
        out.append("")
    missing = sorted(GPU_METRICS.keys() - metric_sources()["nvidia"])
    out.append(
        f"NVIDIA has all of the GPU metrics but {', '.join(f'`{key}`' for key in missing)}, which gpulse derives."
    )
    return "\n".join([*out, ""])


def _metric_row(metric: Metric) -> str:
    often = {"static": "once", "fast": "each sample", "slow": "every 5 s"}[metric.cost]
    smi = ", ".join(f"`{name}`" for name in metric.smi)
    dcgm = f"`{metric.dcgm}`" if metric.dcgm else ""
    return f"| `{metric.key}` | {metric.unit.symbol} | {often} | {metric.help} | {smi} | {dcgm} |"


def cli_page() -> str:
    """Return docs/cli.md."""
    out = [f"<!-- {MADE} -->", "# Command line", "", "`gpulse [VERB] [options]`; without a verb, `status`.", ""]
    for name in VERBS:
        out += _verb_section(load(name))
    out += [
        "## Exit codes",
        "",
        "| code | meaning |",
        "| --- | --- |",
        *(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES),
        "",
    ]
    out += [
        "## Environment",
        "",
        "| variable | meaning |",
        "| --- | --- |",
        *(f"| {name} | {meaning} |" for name, meaning in VARIABLES),
        "",
    ]
    return "\n".join(out)


def _verb_section(verb: Verb) -> list[str]:
    out = [f"## gpulse {verb.name}", "", f"{verb.help}.", "", "| option | meaning |", "| --- | --- |"]
    out += [f"| `{usage(option)}` | {option.help} |" for option in verb.options]
    out += ["", "```sh", *(f"{command:<44} # {meaning}" for command, meaning in verb.examples), "```", ""]
    return out


def man_page() -> str:
    """Return the man page, in roff."""
    out = [f'.\\" {MADE}', f'.TH GPULSE 1 "" "gpulse {__version__}" "User Commands"', ".SH NAME"]
    out += [
        "gpulse \\- what your GPUs are really doing, and why",
        ".SH SYNOPSIS",
        ".B gpulse",
        "[\\fIVERB\\fR] [\\fIoptions\\fR]",
    ]
    out += [".SH DESCRIPTION", "Without a verb, gpulse shows every GPU at a glance.", ".SH VERBS"]
    for name in VERBS:
        verb = load(name)
        out += [f".SS gpulse {name}", _roff(f"{verb.help}.")]
        for option in verb.options:
            out += [".TP", f".B {_roff(usage(option))}", _roff(option.help)]
    out.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES:
        out += [".TP", f".B {code}", _roff(f"{meaning}.")]
    out.append(".SH ENVIRONMENT")
    for variable, meaning in VARIABLES:
        out += [".TP", f".B {_roff(variable)}", _roff(f"{meaning}.")]
    return "\n".join([*out, ""])


def _roff(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def documents() -> dict[Path, str]:
    """Return what each made file must hold."""
    return {
        ROOT / "docs/metrics.md": metrics_page(),
        ROOT / "docs/cli.md": cli_page(),
        ROOT / "docs/gpulse.1": man_page(),
        ROOT / "completions/gpulse.bash": script("bash"),
        ROOT / "completions/_gpulse": script("zsh"),
        ROOT / "completions/gpulse.fish": script("fish"),
    }


def main(argv: list[str]) -> int:
    """Write the files, or say which are not up to date."""
    stale = [path for path, text in documents().items() if not path.exists() or path.read_text() != text]
    if "--check" in argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not up to date: run `make docs`.", file=sys.stderr)
        return int(bool(stale))
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(documents()[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
