"""docs/top.md: the live screen, with its keys and the filter language from the code."""

from __future__ import annotations

from gpulse.model.process_filter import FILTER_HELP
from gpulse.surfaces.top.actions import help_table
from gpulse.surfaces.top.feeds import REPLAY

_INTRO = """\
# The live screen

`gpulse top` shows GPUs, charts, the host and every process that uses a GPU. It needs a terminal of at least 40 × 10
characters. If standard output is not a terminal, it writes one line per sample.

```sh
gpulse top                                  # press ? for the keys
gpulse top --filter user:ada --sort sm      # the processes of one user, busiest first
gpulse top --tree                           # processes below the processes that started them
gpulse top --readonly                       # disable signals
gpulse top --source replay:run.ndjson.gz    # look at a recording
```
"""
_FILTERS = """\
## Filters

A filter selects processes. Type `/` in `gpulse top`, use `--filter` of `gpulse top` and `gpulse --processes`, or type into the filter
field of the page: the language is the same. A filter is a list of words; a process must match all of them.
"""
_AFTER_FILTERS = """
Upper and lower case are the same. A missing value matches no comparison. Sizes are written as `512MiB`, `1.5G` or `300MB`, durations as
`90`, `10m` or `1h30m`. While you type, a word that is not understood is searched as plain text; on the command line it is an error.
An active filter is shown at the end of the column titles and in the bottom line; `Esc` removes it.

## GPUs

If something is wrong, the line below the header says what, the worst first: `2 critical, 1 warning: GPU 3 too hot · …`; `y` opens the whole
list with the explanations.

GPUs are drawn as cards, or as lines where cards do not fit. `←` and `→`, `Tab` and the arrow keys, or a click select a GPU, and the charts
show it. Narrow lines drop names, power limits and activity before the user and what is wrong, which has short words of its own
(`held idle`). Lines that do not fit are counted below the others, with what is wrong there (`↓36 more  30, 38 too hot`); the arrow keys,
PgDn, End and the wheel scroll to them. `Enter`, `d` or a second click
opens the GPU on the whole screen: charts, all metrics by group with minimum and mean of the last 60 seconds, MIG instances, processes,
events, and what limits it with the evidence. `←` and `→` go to the next GPU, `Esc` closes. Its metrics are read only while it is open.

A chart that these GPUs cannot have (SM active before Hopper, utilization with MIG) is replaced by another one and says why. At the start,
the charts contain what the history has recorded. Going back in time shows the events up to that time.

## Host

`n` or a click opens the host on the whole screen: CPUs, context switches, memory and paging, every disk and network port, and the processes
that use most CPU and memory. Their role is `GPU` (uses a GPU), `worker` (descends from one that does) or `no GPU`: a data loader is often
starved by a process that uses no GPU. These values are read only while the view is open.

## Details of a process

`Enter` on a process shows its command, GPUs, verdict, environment and, for your own Python processes, what each thread is executing now,
read once per second with py-spy (`pip install py-spy`) without pausing the process.

## Tree

`t` or `--tree` shows each process below the process that started it. A launcher that uses no GPU itself, for example `torchrun` or a batch
system, gets a dim row if it started several GPU processes; it cannot be selected or signaled. Ancestors with a single branch and init are
left out. Ancestors are read from /proc: in a recording, only the PID of the parent is known.

## Signals

`K` or `F9` opens the signal menu for the tagged processes, or for the selected one. It lists PID, user and command of each process, and the
signals with their numbers. Select a signal with the arrow keys, with a click, or by typing its number (`9` for KILL), and press Enter to
send it. A process that ended in the meantime is not signaled, even if its PID is in use again.

## Colors

`--theme`, `GPULSE_THEME` or the setting `theme` in the table `[terminal]` sets the theme of all commands. `w` in `gpulse top` saves it.

| theme | colors |
| --- | --- |
| `auto` | `dark` or `light` by the background of the terminal, else `neutral` (default) |
| `dark`, `light` | for a dark or a light background |
| `neutral` | readable on both |
| `contrast` | high contrast |
| `blind` | distinguishable without seeing red or green; serious values are also bold or underlined |
| `mono` | bold, dim and reverse only |

The background is taken from `COLORFGBG`. If that is not set, `gpulse top` asks the terminal (OSC 11); other commands do not, because they
would have to wait for the answer.
"""


def top_page(made: str) -> str:
    """Return docs/top.md."""
    out = [f"<!-- {made} -->", _INTRO, "## Keys", "", *_table("key", help_table())]
    out += ["", "In a recording, these keys control the playback:", "", *_table("key", _replay())]
    out += ["", _FILTERS, *_table("word", list(FILTER_HELP), spaced=False), _AFTER_FILTERS]
    return "\n".join(out)


def _replay() -> list[tuple[str, str]]:
    return [(" ".join(action.keys), action.what) for action in REPLAY if action.what]


def _table(head: str, rows: list[tuple[str, str]], spaced: bool = True) -> list[str]:
    lines = [f"| {head} | meaning |", "| --- | --- |"]
    for keys, meaning in rows:
        words = " ".join(f"`{key}`" for key in keys.split()) if spaced else f"`{keys}`"
        lines.append(f"| {words} | {meaning} |")
    return lines
