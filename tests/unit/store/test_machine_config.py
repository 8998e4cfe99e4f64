"""The machine's settings: used only where nobody but root can change them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpulse.errors import ConfigError
from gpulse.store.config import read_machine_config

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of root")


def test_a_file_of_root_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert read_machine_config({"GPULSE_MACHINE_CONFIG": str(file)}) == {}
    file.write_text("[queue]\nlongest_reservation = '1d'\n")
    file.chmod(0o644)
    assert read_machine_config({"GPULSE_MACHINE_CONFIG": str(file)}) == {"queue": {"longest_reservation": "1d"}}


@pytest.mark.parametrize("what", ["owner", "mode", "folder", "link"])
def test_a_file_that_others_can_change_is_refused(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    file = folder / "config.toml"
    file.write_text("")
    if what == "owner":
        os.chown(file, 1000, 1000)
    elif what == "mode":
        file.chmod(0o666)
    elif what == "folder":
        folder.chmod(0o777)
    else:
        (folder / "other").write_text("")
        os.chown(folder / "other", 1000, 1000)
        file.unlink()
        file.symlink_to(folder / "other")
    with pytest.raises(ConfigError, match="can be changed by others than root"):
        read_machine_config({"GPULSE_MACHINE_CONFIG": str(file)})
