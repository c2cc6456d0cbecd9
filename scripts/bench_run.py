"""Measures: all sections as one table, or one workload as one line of JSON.

A section is a module `bench_NAME` here with `rows()`, which measures and yields; `SECTIONS` lists them in order. The
workloads are those of `workloads`.
"""

import argparse
import importlib
import json
import platform
import sys
from collections.abc import Sequence

from bench_rows import Row
from workloads import WORKLOADS

SECTIONS = ["decode", "evaluation", "scheduling", "client", "apiserver"]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description="Measure sections and print one table; or a workload, and print it as JSON."
    )
    names = f"sections: {' '.join(SECTIONS)} (all if none is named); or one workload: {' '.join(WORKLOADS)}"
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    parser.add_argument("--nodes", type=int, default=5_000, help="of a workload (default: %(default)s)")
    parser.add_argument("--pods", type=int, default=5_000, help="of a workload (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of a workload's choices (default: %(default)s)")
    options = parser.parse_args(arguments)
    if len(options.names) == 1 and options.names[0] in WORKLOADS:
        measure = importlib.import_module("bench_scheduling").measure
        print(json.dumps(measure(options.names[0], options.nodes, options.pods, options.seed)))
    elif unknown := set(options.names) - set(SECTIONS):
        parser.error(f"neither sections nor one workload: {' '.join(sorted(unknown))}; there are {names}")
    else:
        print_table(options.names or SECTIONS)
    return 0


def print_table(sections: Sequence[str]) -> None:
    print(f"Python {platform.python_version()} on {platform.machine()}\n")
    print(f"{'section':<12} {'what':<52} {'result':>14}  note")
    for section in sections:
        rows: Sequence[Row] = list(importlib.import_module(f"bench_{section}").rows())
        for row in rows:
            print(f"{section:<12} {row.what:<52} {row.result:>14}  {row.note}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
