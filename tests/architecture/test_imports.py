"""What each command really loads: a library that nobody needs yet is time that everybody waits."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.syntax import modules, statements
from tests.e2e.lab import environment
from tests.fake_nvml import Scenario
from tests.unit.sources.amd.cards import radeon

DEAR = {
    "asyncio", "typing", "dataclasses", "argparse", "logging", "subprocess", "importlib.metadata", "psutil", "pynvml",
    "datetime", "json", "rich", "inspect", "pathlib", "re", "textual", "starlette", "uvicorn", "torch", "numpy",
}  # fmt: skip

OTHER_VENDORS = tuple(f"gpulse.sources.{name}" for name in ("amd", "intel", "jetson", "smi", "drm"))
EXTRAS = {  # folder or file: what it may name, imported inside or for type checkers only
    "surfaces/web": {"starlette", "uvicorn", "anyio"},
    "surfaces/exporter": {"opentelemetry"},
    "sources/kubelet.py": {"grpc"},
    "recordings": {"pandas", "polars"},
    "delivery/apprise.py": {"apprise"},
    "surfaces/mcp.py": {"mcp", "anyio"},
    "surfaces/jupyter": {"jupyter_client", "jupyter_server", "tornado", "traitlets"},  # the server needs the client
    "surfaces/notebook": {"IPython", "anywidget", "ipykernel", "traitlets"},
}


def loaded(env: dict[str, str], code: str) -> set[str]:
    """The modules a piece of Python has loaded, without what listing them takes."""
    listing = "import sys; names = sorted(sys.modules); import json; print(); print(json.dumps(names))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{listing}"], env=env, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("imports")
    return environment(
        Scenario.load("h200-busy"), folder, GPULSE_CLAIMS=str(folder)
    )  # nobody holds a GPU of this machine


@pytest.fixture(scope="module")
def bare(env: dict[str, str]) -> set[str]:
    """What the interpreter and its site packages load by themselves."""
    return loaded(env, "pass")


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("gpulse")}


def command(*words: str) -> str:
    return f"from gpulse.cli.main import main\nassert main({list(words)!r}) == 0"


def test_importing_gpulse_loads_nothing(env: dict[str, str], bare: set[str]) -> None:
    modules = loaded(env, "import gpulse")
    assert ours(modules) == {"gpulse"}
    assert modules - bare <= {"gpulse", "__future__"}


def test_every_public_name_is_found_and_none_but_those(env: dict[str, str]) -> None:
    code = """
import gpulse
assert all(getattr(gpulse, name) is not None for name in gpulse.__all__)
assert set(gpulse.__all__) <= set(dir(gpulse))
try:
    gpulse.nonsense
except AttributeError as error:
    assert "nonsense" in str(error)
else:
    raise SystemExit("a name that is not there was found")
"""
    modules = loaded(env, code)
    assert "ctypes" not in modules
    assert "gpulse.sources.nvidia.source" not in modules


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("status", "--help"), ("metrics", "--help")])
def test_help_and_version_load_no_sampler(env: dict[str, str], bare: set[str], words: tuple[str, ...]) -> None:
    modules = loaded(env, command(*words))
    names = {"gpulse.sources", "gpulse.sources.vendors"}  # tables of names, which import nothing
    assert not {name for name in ours(modules) if ".sampling" in name or ".sources" in name} - names
    assert "ctypes" not in modules - bare
    if words[0].startswith("--"):
        assert not (modules - bare) & DEAR


@pytest.mark.parametrize("source", ["auto", "demo"])
def test_a_bare_glance_loads_nothing_dear(env: dict[str, str], bare: set[str], source: str) -> None:
    modules = loaded(env | {"GPULSE_SOURCE": source}, command())
    assert (modules - bare) & DEAR == set()
    assert ("gpulse.sources.nvidia.source" in modules) is (source == "auto")
    assert "gpulse.sources.replay" not in modules
    assert not {name for name in ours(modules) if name.startswith(OTHER_VENDORS)}


def test_demo_as_an_option_loads_no_driver(env: dict[str, str], bare: set[str]) -> None:
    modules = loaded(env, command("--demo"))
    assert "gpulse.sources.nvidia.nvml" not in modules
    assert "ctypes" not in modules - bare
    assert (modules - bare) & DEAR == set()


def test_looking_from_python_loads_no_command_line_and_no_view(env: dict[str, str], bare: set[str]) -> None:
    modules = loaded(env, "import gpulse\nassert gpulse.snapshot(['utilization']).gpus")
    assert not {name for name in ours(modules) if ".cli" in name or ".surfaces" in name or ".present" in name}
    assert (modules - bare) & {"argparse", "asyncio", "logging", "psutil", "pynvml", "torch"} == set()


def test_a_snapshot_from_python_starts_no_cuda(env: dict[str, str]) -> None:
    maps = "import gpulse\ngpulse.snapshot()\nassert 'libcuda' not in open('/proc/self/maps').read()"
    assert "gpulse" in loaded(env, maps)


def test_no_file_of_the_package_imports_a_library_that_is_not_installed_with_it() -> None:
    # typing_extensions only for type checkers; tomli is the one dependency, of Python 3.10, which has no tomllib
    everywhere = set(sys.stdlib_module_names) | {"gpulse", "typing_extensions", "tomllib", "tomli"}
    for path, tree in modules():
        here = Path(path).relative_to("gpulse")
        allowed = everywhere | EXTRAS.get(str(here.parent), set()) | EXTRAS.get(str(here), set())
        for node in statements(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in names:
                assert name.partition(".")[0] in allowed, f"{path} imports {name}"


def test_another_vendors_card_loads_that_vendor_and_no_other(
    env: dict[str, str], bare: set[str], tmp_path: Path
) -> None:
    radeon(tmp_path)
    modules = loaded(env | {"GPULSE_SOURCE": "auto", "GPULSE_ROOT": str(tmp_path)}, command())
    assert "gpulse.sources.amd.source" in modules
    assert not {name for name in ours(modules) if name.startswith(("gpulse.sources.intel", "gpulse.sources.jetson"))}
    assert (modules - bare) & DEAR == set()
