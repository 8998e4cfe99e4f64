"""Records when each cell of a kernel ran, for the curves of the kernel in JupyterLab."""

from __future__ import annotations

import os
import sys
import time

from ...store.cell_log import CellLog, CellSpan, first_line, remove_left_behind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CellRecorder:
    """Two hooks of IPython around each cell; whatever goes wrong here, the cell does not notice.

    A shell that is no kernel of Jupyter has nothing to record.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._log = _log(shell)
        self._open: tuple[CellSpan, Any] | None = None  # the cell that runs, and how IPython knows it

    def started(self, info: Any) -> None:
        """Note that a cell begins."""
        try:
            message = self._shell.get_parent()
            id = str(message["header"]["msg_id"])
            if self._log is None or info.silent or not info.store_history or self._is_open(id):
                return
            cell = getattr(info, "cell_id", None) or (message.get("metadata") or {}).get("cellId")
            span = CellSpan(id, cell, None, first_line(info.raw_cell or ""), time.time())
            self._open = span, info
            self._log.append(span)
        except Exception:  # noqa: BLE001, S110
            pass

    def ended(self, result: Any) -> None:
        """Note how it ended; `result` is None for a cell that was interrupted early."""
        try:
            if self._log is None or self._open is None or (result is not None and result.info is not self._open[1]):
                return  # one that the cell ran
            (span, _), self._open = self._open, None
            span.count = getattr(result, "execution_count", None)  # before, it depends on the version of IPython
            interrupted = result is None or isinstance(result.error_in_exec, KeyboardInterrupt)
            span.end, span.ok = time.time(), "interrupted" if interrupted else bool(result.success)
            self._log.append(span)
        except Exception:  # noqa: BLE001, S110
            pass

    def _is_open(self, id: str) -> bool:
        """Return whether a cell that runs was asked for by this message: it may run others, which count as part of it."""
        return self._open is not None and self._open[0].id == id


def _log(shell: Any) -> CellLog | None:
    """Return the file of this kernel; None in a shell that is no kernel of Jupyter."""
    if "ipykernel" not in sys.modules or getattr(shell, "kernel", None) is None:
        return None
    try:
        from ipykernel.connect import get_connection_file

        path = os.path.abspath(get_connection_file())
    except Exception:  # noqa: BLE001
        return None
    remove_left_behind(os.path.dirname(path))
    return CellLog(path)
