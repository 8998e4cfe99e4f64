"""Nothing that a user can set, read or call is missing from docs/: each is counted, and the count of what is missing is 0."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import gpulse
from gpulse import callbacks, sinks, testing
from gpulse.analysis.diagnosis.rules import RULES
from gpulse.cli.help import usage
from gpulse.cli.main import VERBS, load
from gpulse.model.condition import CONDITIONS, KINDS
from gpulse.present.exposition import series_name
from gpulse.settings.effective import LISTS, OWN, rule_settings
from gpulse.settings.table import ENVIRONMENT, TABLES
from gpulse.surfaces.exporter import families
from gpulse.surfaces.exporter.families import GPU_RATES, HOST_RATES

ROOT = Path(__file__).parents[2]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
ALL = "\n".join(PAGES.values())
CODE = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}


def named(word: str, page: str = ALL) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", page) is not None


def section(page: str, title: str) -> str:
    return re.split(rf"^## {re.escape(title)}$", PAGES[page], flags=re.MULTILINE)[1].partition("\n## ")[0]


def test_every_option_is_in_the_section_of_its_verb() -> None:
    missing = [
        f"{name} {flag}"
        for name in VERBS
        for option in load(name).options
        for flag in option.flags
        if not named(flag if flag.startswith("-") else usage(option), section("cli", f"gpulse {name}"))
    ]
    assert missing == []


def test_every_setting_is_on_the_page_of_settings() -> None:
    missing = [
        f"{table}.{key}"
        for table, keys in TABLES.items()
        for key in keys
        if not named(key, section("settings", f"[{table}]"))
    ]
    alerts = [
        *OWN,
        *(setting.name.removeprefix("alerts.") for setting in rule_settings()),
        *(f"alerts.{key}" for key in LISTS),
    ]
    missing += [f"alerts.{key}" for key in alerts if not named(key, section("settings", "[alerts]"))]
    missing += [
        f"alerts.{table}.{key}" for table, (_, keys) in LISTS.items() for key in keys if not named(key, PAGES["alerts"])
    ]
    assert missing == []


def test_every_environment_variable_is_documented() -> None:
    read = {word for text in CODE.values() for word in re.findall(r"\bGPULSE_[A-Z_]+[A-Z]\b", text)}
    read |= {setting.environ for table in TABLES.values() for setting in table.values() if setting.table != "queue"}
    read |= {setting.environ for setting in ENVIRONMENT}
    assert len(read) > 50
    assert [name for name in sorted(read) if not named(name)] == []


def test_every_series_of_prometheus_is_documented() -> None:
    constant = set()
    for text in (text for text in CODE.values() if "Family(" in text):
        for node in ast.walk(ast.parse(text)):
            family = isinstance(node, ast.Call) and ast.unparse(node.func) == "Family"
            row = node.args if family else node.elts if isinstance(node, ast.Tuple) else []  # type: ignore[attr-defined]
            name, kind = [*(part.value if isinstance(part, ast.Constant) else "" for part in row), "", ""][:2]
            if kind in ("gauge", "counter", "info") and isinstance(name, str):
                constant.add(name)
    constant = {name for name in constant if name.startswith(("gpulse_", "process_"))}
    assert len(constant) > 25
    derived = {series_name(metric, "gpu") for metric in (*families.GPU_SERIES, *families.DETAIL_SERIES)}
    derived |= {series_name(metric, "host") for metric in families.HOST_SERIES}
    derived |= {series_name(metric, "serving") for metric in families.SERVER_SERIES}
    derived |= {families.total_name(metric, "gpu") for metric in GPU_RATES}
    derived |= {families.total_name(metric, "host") for metric in HOST_RATES}
    derived |= set(families.PROCESS_SERIES)
    assert [name for name in sorted(constant | derived) if not named(name, PAGES["series"])] == []


def members(value: type) -> Iterator[str]:
    """Yield the methods and properties of a class; one that its base declares is documented there."""
    for key, member in vars(value).items():
        inherited = any(hasattr(base, key) for base in value.__bases__) and not member.__doc__
        if not key.startswith("_") and not inherited and isinstance(member, (FunctionType, property, classmethod)):
            yield key


def test_every_public_name_and_method_is_in_the_python_reference() -> None:
    missing = []
    for package in (gpulse, sinks, testing, callbacks):
        for name in package.__all__:
            value = None if package is callbacks else getattr(package, name)
            if not named(name, PAGES["reference"]) and name != "__version__":
                missing.append(name)
            if inspect.isclass(value) and not issubclass(value, Exception):
                missing += [
                    f"{name}.{key}" for key in members(value) if not re.search(rf"`{key}\b", PAGES["reference"])
                ]
    assert missing == []


def codes() -> Iterator[int]:
    """Yield the numbers that the verbs return and the errors end with."""
    for path, text in CODE.items():
        for node in ast.walk(ast.parse(text if "cli" in path.relative_to(ROOT).parts or "exit_code" in text else "")):
            ends = isinstance(node, ast.Return) and "cli" in path.relative_to(ROOT).parts
            sets = isinstance(node, ast.Assign) and any("exit_code" in ast.unparse(each) for each in node.targets)
            value: Any = getattr(node, "value", None) if ends or sets else None
            for each in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
                if isinstance(each, ast.Constant) and type(each.value) is int:
                    yield each.value


def test_every_exit_code_is_documented() -> None:
    found = set(codes())
    assert {0, 1, 2, 3, 124, 126, 127, 130} <= found
    assert [code for code in sorted(found) if not re.search(rf"^\| {code} \|", PAGES["cli"], re.MULTILINE)] == []


def test_every_verdict_condition_and_kind_of_event_is_documented() -> None:
    conditions = section("diagnosis", "Conditions")
    assert [rule.key for rule in RULES if f"### {rule.key}" not in PAGES["diagnosis"]] == []
    assert [key for key in (*CONDITIONS, *KINDS) if f"`{key}`" not in conditions] == []
