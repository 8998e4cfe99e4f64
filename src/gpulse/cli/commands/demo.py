"""`gpulse demo`: a walk through gpulse on a simulated machine."""

from __future__ import annotations

import sys

from ..main import main
from ..options import COLOR, DEMO_UNUSED, HELP, THEME, Arguments, Verb

# what to look for, the words after `gpulse`
STEPS = (
    ("Every GPU on one line: how busy it is, how much of the chip works, and who uses it.", "status"),
    ("GPU 4 is busy only part of the time. Why?", "why --gpu 4 --for 6s"),
    ("Who holds the memory, in which container or job?", "status --processes --gpu 4-7"),
    ("Which GPUs are free for me, as CUDA_VISIBLE_DEVICES wants them?", "pick 2 --free-memory 40GiB"),
    ("What happened last night?", "history --since 10h --events"),
    ("Who used how much of it?", "history --since 10h --usage"),
    ("The same for scripts, with nvidia-smi's fields and formats, or as JSON with --json.",
     "query --query-gpu=index,utilization.gpu,sm_active,memory.used --format=csv"),
)  # fmt: skip
_NEXT = "Live: gpulse top --demo, in the browser: gpulse serve --demo, your own GPUs: leave out --demo.\n"


def run(arguments: Arguments) -> int:
    """Run the steps; on a terminal, wait for Enter between them."""
    asking = sys.stdin.isatty() and sys.stdout.isatty()
    colors = ["--color", arguments.color, *(["--theme", arguments.theme] if arguments.theme else [])]
    for number, (text, words) in enumerate(STEPS, 1):
        sys.stdout.write(f"\n{number}/{len(STEPS)}  {text}\n$ gpulse --demo {words}\n\n")
        sys.stdout.flush()
        verb, *rest = words.split()
        code = _step([verb, "--demo", *(colors if verb in ("status", "why") else []), *rest])
        if code:
            return code
        if asking and number < len(STEPS) and not _go_on():
            return 0
    sys.stdout.write(f"\n{_NEXT}")
    return 0


def _step(words: list[str]) -> int:
    """Run a command; restore the signal handlers that it leaves for its end, or Ctrl-C would not end the next step."""
    import signal

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        return main(words)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _go_on() -> bool:
    """Wait for Enter; return False if the user wants to stop."""
    sys.stdout.write("\nEnter: next, q: quit ")
    sys.stdout.flush()
    answer = sys.stdin.readline()
    return answer != "" and not answer.strip().lower().startswith("q")


VERB = Verb(
    "demo",
    (COLOR, THEME, DEMO_UNUSED, HELP),
    run,
    (("gpulse demo", "seven things in two minutes, without a GPU"),),
)
