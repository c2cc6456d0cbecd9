"""Measures sections and prints a table, or measures one workload and prints the result as JSON.

A section is a module `bench_NAME` with a generator `rows(full)` of measurements; `SECTIONS` lists them in order. The
workloads are those of `workloads`.
"""

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench_rows import RATE, Row
from bench_tables import PAGE, fill
from kubestow import __version__
from workloads import WORKLOADS

SECTIONS = [
    "decode",
    "client",
    "cel",
    "evaluation",
    "scheduling",
    "records",
    "page",
    "simulation",
    "extender",
    "plugins",
    "apiserver",
    "http",
]

_BUSY = 0.5
"""The load average above which a machine has other work."""

Found = dict[str, dict[str, Row]]
"""By section and by label of the row."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description="Measure sections and print a table, or one workload and print JSON."
    )
    names = f"sections: {' '.join(SECTIONS)} (all if none is named); or one workload: {' '.join(WORKLOADS)}"
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    parser.add_argument("--full", action="store_true", help="sections: include the large sizes, which takes long")
    where = "sections: write the results to FILE (default: build/bench.json if all are measured)"
    parser.add_argument("--json", type=Path, metavar="FILE", help=where)
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="sections: print ratios to OLD.json")
    update = "sections: write their tables into docs/reference/benchmarks.md"
    parser.add_argument("--update-docs", action="store_true", help=update)
    parser.add_argument("--http", metavar="WORKLOAD", choices=list(WORKLOADS), help="a workload over HTTPS, see below")
    parser.add_argument("--nodes", type=int, default=5_000, help="nodes of a workload (default: %(default)s)")
    parser.add_argument("--pods", type=int, default=5_000, help="pods of a workload (default: %(default)s)")
    parser.add_argument("--running", type=int, default=0, help="with --http: additional running pods")
    parser.add_argument("--seed", type=int, default=0, help="seed of a workload (default: %(default)s)")
    records = "workload: record decisions, with this memory limit"
    parser.add_argument("--records", type=int, default=0, metavar="BYTES", help=records)
    parser.epilog = (
        "--http: the embedded control plane runs in a process of its own and has all nodes and pods before the "
        "scheduler starts; the scheduler's process alone is measured."
    )
    options = parser.parse_args(arguments)
    if options.http:
        measure = importlib.import_module("bench_http").measure
        print(json.dumps(measure(options.http, options.nodes, options.pods, options.running)))
    elif len(options.names) == 1 and options.names[0] in WORKLOADS:
        measure = importlib.import_module("bench_scheduling").measure
        found = measure(options.names[0], options.nodes, options.pods, options.seed, record_bytes=options.records)
        print(json.dumps(found))
    elif unknown := set(options.names) - set(SECTIONS):
        parser.error(f"neither sections nor a single workload: {' '.join(sorted(unknown))}; there are {names}")
    else:
        run_sections(options.names or SECTIONS, options)
    return 0


def run_sections(sections: Iterable[str], options: argparse.Namespace) -> None:
    # Read first: it may be the file that is written.
    old = None if options.compare is None else read(options.compare)
    found: Found = {}
    python = f"Python {platform.python_version()}"
    environment = f"Kubestow {__version__}, {python} on {platform.machine()}, {os.cpu_count()} cores"
    load, *_ = os.getloadavg()
    if load >= _BUSY:
        environment += f", with other work (load {load:.1f})"
    print(f"{environment}\n")
    print(f"{'section':<12} {'what':<60} {'result':>14}  note")
    for section in sections:
        found[section] = {}
        for row in importlib.import_module(f"bench_{section}").rows(options.full):
            found[section][row.what] = row
            print(f"{section:<12} {row.what:<60} {row.result:>14}  {row.note}".rstrip(), flush=True)
    path = options.json or (None if options.names else Path("build/bench.json"))
    if path is not None:
        write(path, found)
        print(f"\nwritten to {path}")
    if options.update_docs:
        PAGE.write_text(fill(PAGE.read_text(), found, environment, " --full" if options.full else ""))
    if old is not None:
        print_ratios(old, found)


def write(path: Path, found: Found) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"section": section, **row._asdict()} for section, rows in found.items() for row in rows.values()]
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    path.write_text(json.dumps({**machine, "rows": rows}, indent=1) + "\n")


def read(path: Path) -> Found:
    found: Found = {}
    try:
        for row in json.loads(path.read_text())["rows"]:
            section = row.pop("section")
            found.setdefault(section, {})[row["what"]] = Row(**row)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"scripts/bench: {path} was not written by --json: {error}") from None
    return found


def print_ratios(old: Found, new: Found) -> None:
    """Print old / new, or new / old for rates, so that above 1 is better."""
    if not any(rows.keys() & old.get(section, {}).keys() for section, rows in new.items()):
        print("\nnothing to compare: the earlier results have other sections or sizes")
        return
    print(f"\n{'section':<12} {'what':<60} {'before':>14} {'now':>14}  times as fast")
    for section, rows in new.items():
        for what, row in rows.items():
            before = old.get(section, {}).get(what)
            if before is None or not before.value or not row.value or before.unit != row.unit:
                continue
            ratio = row.value / before.value if row.unit.endswith(RATE) else before.value / row.value
            print(f"{section:<12} {what:<60} {before.result:>14} {row.result:>14}  {ratio:.2f}")


if __name__ == "__main__":
    sys.exit(main())
