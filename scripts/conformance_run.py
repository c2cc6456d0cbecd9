"""Runs case files: recorded results of kube-scheduler, one JSON object per line, compared with those of this program.

Each case has a `kind`; the module of that name in `conformance_kinds` checks it. The kind of a case that names a
`plugin` is `plugin`. A kind without a module fails, so that missing kinds are noticed. Cases are independent of one
another and run on all processors.
"""

import argparse
import gzip
import importlib
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

Case = dict[str, Any]
Check = Callable[[Case], str | None]

SHOWN_DIFFERENCES = 10
FEW_CASES = 20
SUFFIXES = (".jsonl", ".jsonl.gz")


@dataclass
class Tally:
    """The results of the cases of one file."""

    name: str
    passed: int = 0
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.name}: {self.passed} passed, {len(self.differences)} failed"


class UnusablePathError(Exception):
    """A path contains no cases."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 0 all passed, 1 some failed, 2 no cases."""
    parser = argparse.ArgumentParser(prog="scripts/conformance", description="Run recorded cases.")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a case file, plain or .gz, or a folder")
    parser.add_argument("--kind", help="only cases of this kind, or of the file with this name")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the first differences of failing cases")
    options = parser.parse_args(arguments)
    try:
        files = list(case_files(options.paths))
    except UnusablePathError as error:
        print(f"scripts/conformance: {error}", file=sys.stderr)
        return 2

    total = Tally("total")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for path in files:
            tally = run_file(path, options.kind, pool)
            if tally is None:
                continue
            print(tally, flush=True)
            if options.verbose:
                for difference in tally.differences[:SHOWN_DIFFERENCES]:
                    print(f"  {difference}")
            total.passed += tally.passed
            total.differences += tally.differences
    if not total.passed and not total.differences:
        print(f"scripts/conformance: no cases{f' of kind {options.kind}' if options.kind else ''}", file=sys.stderr)
        return 2
    print(total)
    return 1 if total.differences else 0


def case_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files of the given paths; those of a folder by name."""
    for path in paths:
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if p.name.endswith(SUFFIXES))
            if not found:
                raise UnusablePathError(f"{path}: no *.jsonl or *.jsonl.gz in this folder")
            yield from found
        elif path.is_file():
            yield path
        else:
            raise UnusablePathError(f"{path}: no such file or folder")


def run_file(path: Path, kind: str | None, pool: ProcessPoolExecutor) -> Tally | None:
    """Check the cases of a file; returns None if it has none of the kind."""
    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    if kind == name:
        kind = None
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        cases = [(f"line {number}", line) for number, line in enumerate(lines, 1) if line.strip()]
    arguments = (*zip(*cases, strict=True), repeat(kind)) if cases else ((), (), ())
    checked = pool.map(check_line, *arguments, chunksize=2) if len(cases) > FEW_CASES else map(check_line, *arguments)
    outcomes = [outcome for outcome in checked if outcome is not None]
    if not outcomes and kind is not None:
        return None
    return Tally(name, outcomes.count(""), [outcome for outcome in outcomes if outcome])


def check_line(place: str, line: str, kind: str | None) -> str | None:
    """Return "" for a case that passed, the difference if it failed, None if it is of another kind."""
    try:
        case = json.loads(line)
        case_kind, case_id = str(case["kind"] if "plugin" not in case else "plugin"), case.get("id", place)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{place}: not a case: {error!r}"
    if kind is not None and case_kind != kind:
        return None
    check = find_check(case_kind)
    if check is None:
        return f"{case_id}: kind {case_kind}: not implemented"
    try:
        difference = check(case)
    except Exception:  # an exception fails the case; the others still run
        difference = traceback.format_exc().strip()
    return f"{case_id}: {difference}" if difference is not None else ""


@cache
def find_check(kind: str) -> Check | None:
    """Return the check of a kind, None if there is none."""
    name = f"conformance_kinds.{kind}"
    if not kind.isidentifier() or importlib.util.find_spec(name) is None:
        return None
    check: Check = importlib.import_module(name).check
    return check


if __name__ == "__main__":
    sys.exit(main())
