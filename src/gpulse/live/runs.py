"""Past and running programs of the server's user: a list, and one in full with where it lost GPU time."""

from __future__ import annotations

import time

from ..errors import UsageError
from ..model.budget import Budget
from ..model.stacks import CodeLine
from ..monitor.presence import folder_of, presence_of
from ..monitor.run_record import result
from ..monitor.traces import ask_stacks
from ..present.code import advised, code_sentence
from ..present.program import running_parts
from ..present.runs import command_text, gpus_of, limit_text, run_facts, speed_text
from ..present.text import clean
from ..present.verdicts import budget_row
from ..store.runs import EMPTY, KeptRun, kept_flame, kept_runs, run_named
from . import wire
from .parameters import Parameter, Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .api import ApiRequest
    from .hub import Hub

_MOST = 100
_NONE = "No runs yet: `gpulse run -- COMMAND` and programs with a Monitor are listed here."
_APART = ("code", "time", "verdict")  # facts that a page shows elsewhere


def _word(text: str) -> str:
    if not 1 <= len(text) <= 100:
        raise ValueError("must be an id of a run.")
    return text


RUN = Parameter(
    "run",
    "Id of a run, the beginning of one, `last` or `last~1`, as in `gpulse runs`.",
    {"type": "string", "minLength": 1, "maxLength": 100},
    _word,
)


def runs_answer(asked: ApiRequest, given: Mapping[str, Any]) -> bytes:
    """Return the newest runs in words; none where they may not be shown, with the reason."""
    if reason := _hidden(asked.hub):
        return wire.compact({"runs": [], "note": reason})
    found = [_row(run) for at, run in enumerate(kept_runs()) if at < _MOST]
    return wire.compact({"runs": found, "note": "" if found else _NONE})


def run_answer(asked: ApiRequest, given: Mapping[str, Any]) -> bytes:
    """Return one run, the newest if none is named, or the running program with a Monitor of this PID.

    With facts, lines of code with advice, and the tree of frames.
    """
    reason, run, pid = _hidden(asked.hub), given["run"], given["pid"]
    if run is None and pid is None:
        newest = None if reason else next(kept_runs(), None)
        return wire.compact(_kept(KeptRun(EMPTY)) | {"title": reason or _NONE} if newest is None else _kept(newest))
    if reason:
        raise Refusal(404, reason)
    try:
        return wire.compact(_kept(run_named(run)) if pid is None else _running(pid))
    except UsageError as error:
        raise Refusal(404, error.message) from None


def _hidden(hub: Hub) -> str:
    if not hub.real:
        return "A machine that is not this computer has no runs."
    return "" if hub.tells_programs else "This server hides command lines, and with them the runs."


def _row(run: KeptRun) -> dict[str, Any]:
    texts = {"command": command_text(run), "gpus": gpus_of(run), "speed": speed_text(run), "limit": limit_text(run)}
    return {"id": clean(run.id), "start": round(run.start, 3), "seconds": run.seconds, "result": result(run), **texts}


def _kept(run: KeptRun) -> dict[str, Any]:
    budget = Budget.from_plain(run.plain.get("budget"))
    told = [clean(str(text)) for text in run.list("code_text")]
    verdicts = [clean(str(one.get("text", ""))) for one in run.list("verdict") if isinstance(one, dict)]
    facts = [fact for fact in run_facts(run, result(run), time.time()) if fact[0] not in _APART]
    return {
        "id": clean(run.id),
        "title": command_text(run),
        "facts": facts,
        "verdicts": verdicts,
        "budget": [] if budget is None else budget_row(budget),
        "code": told,
        "flame": kept_flame(run),
    }


def _running(pid: int) -> dict[str, Any]:
    present = None if folder_of(pid) is None else presence_of(pid)
    if present is None:
        raise Refusal(404, f"process {pid} has no running Monitor of the server's user.")
    lines = [CodeLine(**line) for line in present.code]
    sentence = code_sentence(lines)
    return {
        "id": present.run,
        "title": f"Process {pid}",
        "facts": [fact for fact in running_parts(present) if fact[0] not in ("", "GPU waits in")],
        "verdicts": [],
        "budget": [],
        "code": [text for text in (sentence, *advised(lines)) if text],
        "flame": ask_stacks(pid),
    }
