"""Prints what the sections measured as one table.

A section is a module `bench_NAME` here with `rows()`, which measures and yields; `SECTIONS` lists them in order.
"""

import argparse
import importlib
import platform
import sys
from collections.abc import Sequence

from bench_rows import Row

SECTIONS = ["decode", "evaluation", "apiserver"]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure, and print one table.")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"some of: {' '.join(SECTIONS)}; all if none")
    chosen = parser.parse_args(arguments).sections or SECTIONS
    if unknown := set(chosen) - set(SECTIONS):
        parser.error(f"no such section: {' '.join(sorted(unknown))}; there are: {' '.join(SECTIONS)}")

    print(f"Python {platform.python_version()} on {platform.machine()}\n")
    print(f"{'section':<12} {'what':<52} {'result':>14}  note")
    for section in chosen:
        rows: Sequence[Row] = list(importlib.import_module(f"bench_{section}").rows())
        for row in rows:
            print(f"{section:<12} {row.what:<52} {row.result:>14}  {row.note}".rstrip(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
