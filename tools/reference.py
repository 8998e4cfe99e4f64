"""Reference pages made from the code: every public Python name, the HTTP API, and the series of /metrics."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gpulse
from gpulse import callbacks, sinks, testing
from gpulse.model.verdict import Diagnosis
from gpulse.present.exposition import Family, series_name
from gpulse.surfaces.exporter.exporter import Exporter, history_families
from gpulse.surfaces.exporter.families import DETAIL_SERIES
from gpulse.surfaces.exporter.otlp_push import OtlpPush
from gpulse.surfaces.web.openapi import QUESTIONS, document

_WIDE = 90  # characters of a signature on one line
_PACKAGES = (
    (gpulse, "The package", "`import gpulse` loads nothing; each name is loaded when it is used."),
    (sinks, "gpulse.sinks", "Where `Monitor` writes samples. A sink imports its library when it is opened."),
    (testing, "gpulse.testing", "Scripted GPUs for your own tests."),
)


def python_page() -> str:
    """Return the page of all public Python names, with their signatures and what they promise."""
    lines = [
        "# Python reference",
        "",
        "Everything public. [gpulse in Python](python.md) and [Training code](training.md) show it in use.",
    ]
    for package, title, text in _PACKAGES:
        lines += ["", f"## {title}", "", text]
        for name in package.__all__:
            if name != "__version__":
                lines += _entry(package, name)
    lines += [
        "",
        "## gpulse.callbacks",
        "",
        "One callback for each training framework, which must be installed.",
        *_callbacks(),
    ]
    return "\n".join(lines) + "\n"


def _entry(package: Any, name: str) -> Iterator[str]:
    value = getattr(package, name)
    if inspect.ismodule(value):
        return  # sinks, callbacks and testing have sections of their own
    yield from (
        "",
        f"### {name}",
        "",
        "```py",
        f"{name}{_signature(value)}",
        "```",
        "",
        inspect.getdoc(value) or "",
    )
    if inspect.isclass(value) and not issubclass(value, Exception):
        for key, member in _members(value):
            yield from ("", f"- `{key}{_signature(member, bound=True)}`: {_first_line(member.__doc__)}")


def _callbacks() -> Iterator[str]:
    """Yield the sections of the callbacks, read as text: loading them would load the frameworks."""
    for name in callbacks.__all__:
        path = Path(callbacks.__file__).with_name(f"{name}.py")
        module = ast.parse(path.read_text(encoding="utf-8"))
        yield from ("", f"### gpulse.callbacks.{name}", "", _first_line(ast.get_docstring(module)))
        for each in module.body:
            if isinstance(each, (ast.ClassDef, ast.FunctionDef)) and not each.name.startswith("_"):
                yield from ("", f"- `{each.name}`: {_first_line(ast.get_docstring(each))}")


def _first_line(text: str | None) -> str:
    return inspect.cleandoc(text or "").partition("\n")[0]


def _members(value: type) -> Iterator[tuple[str, Any]]:
    for key, member in vars(value).items():
        member = member.__func__ if isinstance(member, classmethod) else member
        if not key.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)) and member.__doc__:
            yield key, member


class _Written:
    """An annotation that is shown as it is written."""

    def __init__(self, text: object) -> None:
        self._text = text if isinstance(text, str) else inspect.formatannotation(text)

    def __repr__(self) -> str:
        return self._text.replace('"', "")


def _signature(value: Any, bound: bool = False) -> str:
    """Return the arguments of a function, without `self` if it is bound; empty for a property."""
    if isinstance(value, property):
        return ""
    shown = inspect.signature(value)
    parameters = [
        each if each.annotation is each.empty else each.replace(annotation=_Written(each.annotation))
        for each in list(shown.parameters.values())[bound:]
    ]
    told = shown.return_annotation
    result = shown.replace(parameters=parameters, return_annotation=told if told is shown.empty else _Written(told))
    text = re.sub(r"<object object at 0x[0-9a-f]+>", "...", str(result))
    return text if len(text) < _WIDE or bound else _one_per_line(parameters, text.rpartition(") -> ")[2])


def _one_per_line(parameters: list[inspect.Parameter], result: str) -> str:
    lines = [str(each) for each in parameters]
    named = [at for at, each in enumerate(parameters) if each.kind is each.KEYWORD_ONLY]
    if named and not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        lines.insert(named[0], "*")
    return "(\n" + "".join(f"    {line},\n" for line in lines) + f") -> {result}"


def http_page() -> str:
    """Return the page of the server's API, from the table that answers and describes it."""
    paths: dict[str, Any] = document(QUESTIONS)["paths"]
    lines = [
        "# HTTP API",
        "",
        "What `gpulse serve` answers. `/api/openapi.json` is the same for programs (OpenAPI 3.1), with the shape of every answer.",
        "Send the token as `Authorization: Bearer TOKEN`. Every time is a number, seconds since 1970; a missing value is null or absent.",
    ]
    for path, methods in sorted(paths.items()):
        for method, asked in methods.items():
            lines += ["", f"## {method.upper()} {path}", "", asked["summary"]]
            if given := asked.get("parameters"):
                lines += ["", "| parameter | |", "| --- | --- |"]
                lines += [f"| `{each['name']}` | {each.get('description', '')} |" for each in given]
    return "\n".join(lines) + "\n"


def series_page() -> str:
    """Return the page of the series of /metrics, as a server that exports everything yields them."""
    details = {series_name(metric, "gpu") for metric in DETAIL_SERIES}
    families = list(_families())
    lines = [
        "# Prometheus series",
        "",
        "What `/metrics` of `gpulse serve` exports, in base units. Names are stable. `--dcgm-names` and `--smi-names` add the names of",
        "NVIDIA's DCGM exporter and of nvidia_gpu_exporter; [Metrics](metrics.md) lists them. A series without a value is absent.",
        "",
        *_series_table(each for each in families if each.name not in details),
        "",
        "## On request",
        "",
        "`gpulse serve --metrics NAME` exports the metrics of the group `details`; `--metrics all` exports all of them.",
        "",
        *_series_table(each for each in families if each.name in details),
    ]
    return "\n".join(lines) + "\n"


def _series_table(families: Iterable[Family]) -> Iterator[str]:
    yield from ("| series | type | |", "| --- | --- | --- |")
    for family in families:
        yield f"| `{family.name}` | {family.kind} | {family.help} |"


def _families() -> Iterator[Family]:
    """Yield every family, also those that are empty on the machine of the demo."""
    exporter = Exporter(judged=lambda: Diagnosis([]), details=[metric.key for metric in DETAIL_SERIES])
    exporter.add(gpulse.snapshot(source="demo"), 0.001)
    exporter.text()  # the time that it takes is a series of the next page
    yield from exporter._families(processes=True, dcgm=False, smi=False)
    idle: Any = SimpleNamespace(_sent=0, _requests=0, _lost={}, _failures={}, _retries=0, _pending=0, _success=0)
    yield from OtlpPush.families(idle)
    recording: Any = SimpleNamespace(writable=True, failures=0, waiting=0, lost=0)
    yield from history_families(recording)
