"""A real sshd on loopback that stands for several machines: each has a port of its own, and its own programs in PATH."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.ports import free_port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
SSHD = "/usr/sbin/sshd"


class Sshd:
    """One server. `machines` are the programs of each: name → program → shell text. `ssh` is a command that knows their names.

    The kernel's files of a machine without programs are below bin-NAME/root. `add` names machines that cannot be reached.
    """

    def __init__(self, folder: Path, machines: Mapping[str, Mapping[str, str]]) -> None:
        self.folder = folder
        folder.chmod(0o700)
        for key in ("host", "user", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
        (folder / "authorized").write_text((folder / "user.pub").read_text())
        for name, programs in machines.items():
            home = folder / f"bin-{name}"
            home.mkdir()
            for program, text in programs.items():
                (home / program).write_text(f"#!/bin/sh\n{text}\n")
                (home / program).chmod(0o755)
        self.config = folder / "config"
        self.config.write_text("")
        self.ssh = folder / "ssh"
        self.ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {self.config} "$@"\n')
        self.ssh.chmod(0o755)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # as root, sshd does not start without it
        ports = {name: free_port() for name in machines}
        self._start(ports)
        for name, port in ports.items():
            self.add(name, port)

    def _start(self, ports: Mapping[str, int]) -> None:
        """Start the server and wait until it listens."""
        folder = self.folder
        lines = [
            *(f"ListenAddress 127.0.0.1:{port}" for port in ports.values()),
            *(f"HostKey {folder}/host", f"AuthorizedKeysFile {folder}/authorized", f"PidFile {folder}/pid"),
            *("PasswordAuthentication no", "KbdInteractiveAuthentication no", "UsePAM no", "StrictModes no"),
            *("PermitRootLogin yes", "MaxStartups 400:30:600"),
        ]
        for name, port in ports.items():
            home = folder / f"bin-{name}"
            root = "" if any(path.is_file() for path in home.iterdir()) else f" GPULSE_ROOT={home}/root"
            lines += [f"Match LocalPort {port}", f"  SetEnv PATH={home}:/usr/bin:/bin HOME={home}{root}"]
        (folder / "sshd_config").write_text("\n".join(lines) + "\n")
        command = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
        self._server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._server.stderr is not None
        for _ in ports:
            said = self._server.stderr.readline()
            if "listening" not in said:
                self.close()
                raise RuntimeError(f"sshd does not start: {said or 'it ended'}")

    @property
    def pid(self) -> int:
        """The process of the server."""
        return self._server.pid

    def add(self, name: str, port: int, key: str = "user") -> None:
        """Name a machine that is reached by a port, with a key."""
        lines = [
            *(f"Host {name}", "HostName 127.0.0.1", f"Port {port}", f"IdentityFile {self.folder}/{key}"),
            *("IdentitiesOnly yes", "StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"),
        ]
        with self.config.open("a") as file:
            file.write("\n".join(lines) + "\n")

    def port(self, name: str) -> int:
        """Return the port of a machine."""
        words = self.config.read_text().split()
        return int(words[words.index("Port", words.index(name)) + 1])

    def close(self) -> None:
        """End the server; its sessions end with their connections."""
        self._server.terminate()
        self._server.communicate(timeout=20)


def gpulse(*options: str) -> str:
    """Return the shell text of a gpulse with these options in front of what it is asked for."""
    words = [sys.executable, "-m", "gpulse"]
    return f'PYTHONPATH={shlex.quote(str(ROOT / "src"))} exec {shlex.join(words)} "$@" {shlex.join(options)}'
