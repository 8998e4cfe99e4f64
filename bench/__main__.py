"""All measurements of one run, as Markdown: `make bench`."""

from __future__ import annotations

import sys

from bench import history, live, loop, oneshot, sample, serving, wrapper
from bench.machine import install


def main() -> int:
    """Print the tables; figures of a shared machine are indicative, ratios within one run are what counts."""
    install()
    print("## From the shell\n\n" + "\n".join(oneshot.table()), flush=True)
    print("\n## From Python\n\n" + "\n".join(sample.tables()), flush=True)
    print("\n## A loop of CSV lines\n\n" + "\n".join(loop.table()), flush=True)
    print("\n## Live screens\n\n" + "\n".join(live.table()), flush=True)
    print("\n## Looking back\n\n" + "\n".join(history.table()), flush=True)
    print("\n## Model servers\n\n" + "\n".join(serving.table()), flush=True)
    print("\n" + "\n".join(wrapper.table()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
