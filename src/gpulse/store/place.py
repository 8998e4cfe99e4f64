"""Where files are: the settings, and the history, on a disk of this machine and never on a network file
system, with who may read it and its one writer."""

from __future__ import annotations

import os
import stat

from ..errors import GpulseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEM = "/var/lib/gpulse"
VARIABLE = "GPULSE_HISTORY"  # names the file in place of both
_FILE = "history.db"
_MOUNTS = "/proc/self/mountinfo"
# Readers and writer share memory through a mapped file beside the database, which these do not offer.
_NETWORK = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "ceph", "gpfs", "beegfs", "9p", "afs", "glusterfs", "pvfs2", "orangefs",
    "panfs", "wekafs", "ocfs2", "gfs2", "virtiofs", "davfs", "acfs", "ncpfs", "vboxsf", "prl_fs",
}  # fmt: skip


def default_path(environ: Mapping[str, str] = os.environ, system: str = SYSTEM, mounts: str = _MOUNTS) -> str:
    """Return where a writer keeps the history: $GPULSE_HISTORY, else the machine's place if it may be written, else the user's own."""
    if own := environ.get(VARIABLE):
        return own
    if os.access(system, os.W_OK | os.X_OK) or (os.geteuid() == 0 and not os.path.exists(system)):
        return os.path.join(system, _FILE)
    return user_path(environ, mounts)


def user_path(environ: Mapping[str, str] = os.environ, mounts: str = _MOUNTS) -> str:
    """Return the user's own place: the state folder, or /var/tmp/gpulse-UID when that is on a network file system."""
    folder = state_folder(environ)
    if network_type(folder, mounts):
        folder = f"/var/tmp/gpulse-{os.geteuid()}"
    return os.path.join(folder, _FILE)


def existing_path(environ: Mapping[str, str] = os.environ, system: str = SYSTEM, mounts: str = _MOUNTS) -> str | None:
    """Return the history to read: $GPULSE_HISTORY, the machine's if this user may read it, or the user's own; None if there is none."""
    if own := environ.get(VARIABLE):
        return own if os.access(own, os.R_OK) else None
    for path in (os.path.join(system, _FILE), user_path(environ, mounts)):
        if os.access(path, os.R_OK):
            return path
    return None


def other_path(
    read: str, environ: Mapping[str, str] = os.environ, system: str = SYSTEM, mounts: str = _MOUNTS
) -> str | None:
    """Return the machine's or the user's history if it exists and is not the one that was read."""
    paths = (os.path.join(system, _FILE), user_path(environ, mounts))
    return next((path for path in paths if path != read and os.path.exists(path)), None) if read in paths else None


def path_to_read(path: str | None = None) -> str:
    """Return the history to read, this machine's or else the user's own if none is named; it may not exist.

    Raises HistoryError, saying who may read it, if this user may not.
    """
    chosen = path or existing_path() or default_path()
    named = path or os.environ.get(VARIABLE) or os.path.exists(chosen)
    _check_access(chosen if named else os.path.join(SYSTEM, _FILE))
    return chosen


def _check_access(path: str) -> None:
    try:
        status = os.stat(path)
    except PermissionError:  # in a folder that others may not enter: that of a service with a user of its own
        raise HistoryError(
            f"{path} may be read only by root;",
            "run this with sudo, or let a group read it: history_group in [privacy].",
        ) from None
    except OSError:
        return  # not there; opening it reports that
    if os.access(path, os.R_OK):
        return
    from .claims import user_name

    owner, me = user_name(status.st_uid), user_name(os.geteuid())
    if not (status.st_mode & 0o040 and status.st_gid != 0):
        raise HistoryError(f"{path} may be read only by {owner};", f"run this as {owner}.")
    import grp

    try:
        group = grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        group = str(status.st_gid)
    remedy = f"ask an administrator to run `usermod -aG {group} {me}`, then log in again; or run this as {owner}."
    raise HistoryError(f"{path} may be read only by {owner} and the members of the group {group};", remedy)


def prepare(path: str, system: str = SYSTEM, mounts: str = _MOUNTS) -> int:
    """Make the folder of a history and return the mode of its files: the group may read the machine's, nobody a user's own.

    A history holds the command lines of all users, so it is never readable by everybody.
    Raises HistoryError when the folder is on the network, is not ours, or cannot be made or written.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if kind := network_type(folder, mounts):
        raise HistoryError(
            f"{path} is on a network file system ({kind}), which is not supported for a history;",
            f"name a file on a local disk, such as /var/tmp/gpulse-{os.geteuid()}/{_FILE}.",
        )
    shared = folder == os.path.abspath(system)
    try:
        if not os.path.exists(folder):
            os.makedirs(folder, mode=0o700)
            if shared:
                os.chmod(folder, 0o755)  # whatever the umask is
        status = os.lstat(folder)
    except OSError as error:
        raise HistoryError(f"{folder} cannot be created: {error.strerror}.") from None
    if folder.startswith("/var/tmp/gpulse-") and (
        not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077
    ):  # anybody can have made it before us
        raise HistoryError(f"{folder} is accessible to other users;", "remove it, or name another file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise HistoryError(f"{folder} is not writable;", "name a file in a folder you can write to.")
    return 0o640 if shared or (os.geteuid() == 0 and readers_group() is not None) else 0o600


def readers_group(environ: Mapping[str, str] = os.environ) -> int | None:
    """Return the id of the group that may read a history that this user writes: history_group in [privacy] of the machine's settings.

    Raises HistoryError for a group that does not exist: a history that the wrong people can read is worse than none.
    """
    if (name := history_group(environ)) is None:
        return None
    import grp

    try:
        return grp.getgrnam(name).gr_gid
    except (KeyError, ValueError):
        message = f"privacy.history_group of {machine_path(environ)}: there is no group {name!r};"
        raise HistoryError(message, f"run groupadd {name}, or name another.") from None


def history_group(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the name of that group as the settings have it; None if they name none."""
    if not os.path.exists(machine_path(environ)):
        return None
    from .config import read_machine_config

    table = read_machine_config(environ).get("privacy", {})
    name = table.get("history_group") if isinstance(table, dict) else None
    return None if name is None else str(name)


def let_group_read(path: str, mode: int) -> None:
    """Give a history and the files beside it to the group of its readers, whatever the umask is; raise OSError if that is not allowed."""
    if not mode & 0o040:
        return
    group = readers_group()
    for one in (path, f"{path}-wal", f"{path}-shm"):
        if os.path.exists(one):
            if group is not None and os.stat(one).st_gid != group:
                os.chown(one, -1, group)
            os.chmod(one, mode)  # those beside it may have been made with another umask


def network_type(folder: str, mounts: str = _MOUNTS) -> str | None:
    """Return the type of the network file system a folder is on, or would be made on; None on a local one."""
    kind = mount_type(folder, mounts)
    return kind if kind in _NETWORK or kind.startswith("fuse.") else None


def mount_type(path: str, mounts: str = _MOUNTS) -> str:
    """Return the type of the file system a file or folder is on, or would be made on; empty if unknown."""
    target = os.path.realpath(path)
    best, kind = "", ""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                before, _, after = line.partition(" - ")
                point = _unescaped(before.split()[4])
                if len(point) >= len(best) and (f"{target}/".startswith(f"{point.rstrip('/')}/")):
                    best, kind = point, after.split()[0]
    except (OSError, IndexError):
        return ""  # no Linux, or no /proc: nothing is known against the folder
    return kind


def state_folder(environ: Mapping[str, str]) -> str:
    """Return the folder for what gpulse keeps for a user: gpulse in $XDG_STATE_HOME or ~/.local/state."""
    return os.path.join(_own_folder(environ, "XDG_STATE_HOME", ".local/state"), "gpulse")


def _own_folder(environ: Mapping[str, str], variable: str, usual: str) -> str:
    """Return the folder that a variable names, else the `usual` one in the user's home; never another user's for root.

    `sudo -E` keeps HOME: settings there could name a command for root to run, and a link could let root write anywhere.
    """
    stated, home = environ.get(variable, ""), environ.get("HOME") or os.path.expanduser("~")
    if os.path.isabs(stated) and not _is_anothers(
        stated
    ):  # a relative one is to be ignored, says the XDG specification
        return stated
    if _is_anothers(home):
        import pwd

        home = pwd.getpwuid(0).pw_dir
    return os.path.join(home, usual)


def _is_anothers(folder: str) -> bool:
    """Return whether this is root, and others could change what is in a folder."""
    return os.geteuid() == 0 and writable_by_others(folder) != ""


def _unescaped(point: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, char)
    return point


class HistoryError(GpulseError):
    """A history that cannot be opened, read or written."""


class DamagedBlock(HistoryError):
    """A block whose bytes are not what was written."""


class HistoryBusy(HistoryError):
    """A history that somebody else writes; `holder` says who, as far as they tell."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(f"{holder} already writes {path};", "read it instead, or name another file.")
        self.holder = holder


_PATIENCE = 0.1  # seconds; somebody may be looking at who holds it, which takes it for an instant


class WriterLock:
    """The right to write a history, held until `release`. Raises HistoryBusy when somebody else has it."""

    def __init__(self, path: str, mode: int = 0o600) -> None:
        from .claims import open_locked, sign

        try:
            handle = open_locked(f"{path}.lock", mode & 0o600, _PATIENCE)
        except OSError as error:
            if isinstance(error, PermissionError) and os.path.exists(f"{path}.lock"):
                raise HistoryBusy(path, "another user") from None
            raise HistoryError(f"{path}.lock cannot be opened: {error.strerror}.") from None
        if handle is None:
            raise HistoryBusy(path, holder(path) or "another process")
        self._handle = handle
        sign(handle, f"process {os.getpid()} ({_program()})")

    def release(self) -> None:
        """Let others write; safe to call twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def holder(path: str) -> str | None:
    """Return who writes a history now, as `process 1234 (gpulse serve)`; None when nobody does."""
    from .claims import lock_holder

    try:
        found = lock_holder(f"{path}.lock")
    except PermissionError:
        return "another user"  # or nobody: the lock of another user cannot be tried
    return "another process" if found == "" else found


def _program() -> str:
    """Return the program and its verb; further words of a command line are nobody's business."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read(4096).decode("utf-8", "replace").split("\0")
    except OSError:
        return "gpulse"
    # the text after -c is no name, and may hold a secret
    names = [
        os.path.basename(word) for word in words[:3] if word and word[0] != "-" and not set(word) & set(" \n\t\"'=;(")
    ]
    return " ".join("".join(char for char in name if char.isprintable()) for name in names)[:80]


def config_path(environ: Mapping[str, str]) -> str:
    """Return the path of the settings file: $GPULSE_CONFIG, or gpulse/config.toml in $XDG_CONFIG_HOME or ~/.config."""
    if stated := environ.get("GPULSE_CONFIG"):
        return os.path.expanduser(stated)
    return os.path.join(_own_folder(environ, "XDG_CONFIG_HOME", ".config"), "gpulse", "config.toml")


MACHINE = "/etc/gpulse/config.toml"  # the machine's own settings, which only an administrator can write


def machine_path(environ: Mapping[str, str]) -> str:
    """Return the path of the machine's settings: $GPULSE_MACHINE_CONFIG, or /etc/gpulse/config.toml."""
    return environ.get("GPULSE_MACHINE_CONFIG") or MACHINE


def writable_by_others(path: str) -> str:
    """Return the file or folder through which somebody other than root could change a file; empty where nobody can."""
    from .trust import weak_point

    found = weak_point(path)
    return "" if found is None else found.path
