"""A home, a place for temporary files and a Python path that one test process and its children have to themselves."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# pyright installs itself with npm, by the settings and into the cache of whoever runs the tests
REAL_HOME = pwd.getpwuid(os.geteuid()).pw_dir
_KEPT = "PYTEST_DEBUG_TEMPROOT"  # where pytest keeps the folders of the last three runs
_PERSONAL = (
    *("GPULSE_", "XDG_", "CUDA_", "JUPYTER", "FAKE_NVML"),
    *("LC_", "LANG", "TERM", "COLORTERM", "COLUMNS", "NO_COLOR", "FORCE_COLOR"),
    *("LOCAL_", "SLURM_", "OMPI_", "MPI_", "PMI_", "RANK", "WORLD_SIZE"),  # set by launchers of jobs
    *("NOTIFY_", "WATCHDOG_"),  # set by systemd
)
_OF_THE_SUITE = ("GPULSE_FUZZ", "GPULSE_ORDER", "GPULSE_TEST_LIMIT", "GPULSE_UPDATE")


class Surroundings:
    """What a user and a machine have that tests must neither read nor change; entered before the first test is loaded.

    gpulse has its settings, history and runs in HOME or where XDG_* and GPULSE_* say, and the files of monitors in XDG_RUNTIME_DIR.
    """

    def __init__(self) -> None:
        os.environ.setdefault(_KEPT, tempfile.gettempdir())
        self.folder = Path(tempfile.mkdtemp(prefix="gpulse-tests-", dir=os.environ[_KEPT]))
        places = {"HOME": "home", "XDG_RUNTIME_DIR": "run", "TMPDIR": "tmp", "GPULSE_CLAIMS": "claims"}
        for name in places.values():
            (self.folder / name).mkdir(0o700)
        for name in [name for name in os.environ if name.startswith(_PERSONAL) and name not in _OF_THE_SUITE]:
            del os.environ[name]
        os.environ |= {name: str(self.folder / place) for name, place in places.items()} | {
            "GPULSE_RUNS": "off",  # tests that keep runs name a folder of their own
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",  # children import this tree, whatever is installed
        }
        tempfile.tempdir = None  # read TMPDIR again

    def take_left(self) -> list[str]:
        """Remove what gpulse has kept here, which a later test could find, and return its names."""
        folders = [*self.folder.glob("home/**/*gpulse*"), self.folder / "claims"]
        kept = {path for folder in folders for path in folder.rglob("*")} | {*folders[:-1]}
        names = sorted(str(path.relative_to(self.folder)) for path in kept)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        folders[-1].mkdir(0o700)
        return names

    def remove(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)
