"""Injects faults into schedulers and counts what is lost: `scripts/chaos --help`."""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.chaos.planes import Embedded, Plane, Real  # noqa: E402
from support.chaos.stories import STORIES  # noqa: E402
from support.chaos.world import Row  # noqa: E402
from support.fuzzing import running as fuzzing  # noqa: E402
from support.fuzzing.targets import TARGETS  # noqa: E402
from support.integration.real_control_plane import folders  # noqa: E402
from support.scenarios.random_events import run_events  # noqa: E402

RANDOM, FUZZ = "random events", "fuzzing"
SEEDS, EVENTS, INPUTS = 100, 20_000, 1_000_000


def main() -> int:
    options = _options()
    names = options.story or [*STORIES, RANDOM, FUZZ]
    print(f"seed {options.seed}, {'the real' if options.real else 'the embedded'} API server", flush=True)
    print(f"{'story':<24}{'faults':>10}{'pods':>8}{'bound':>8}{'lost':>6}{'double':>8}", end="")
    print(f"{'over':>6}{'fencing':>9}{'other':>7}{'settled':>9}{'seconds':>9}")
    rows = []
    for row in _rows(options, names):
        rows.append(row)
        counts = [row.lost, row.double, row.overcommitted, row.fencing, row.other]
        cells = "".join(f"{len(found):>{width}}" for found, width in zip(counts, (6, 8, 6, 9, 7), strict=True))
        print(f"{row.story:<24}{row.faults.total():>10,}{row.pods:>8,}{row.bound:>8,}{cells}", end="")
        print(f"{row.settled:>8.1f}s{row.seconds:>8.0f}s", flush=True)
        for kind, count in sorted(row.faults.items()):
            print(f"    {kind:<40}{count:>9,}")
        for line in row.problems[:20]:
            print(f"    WRONG {line}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps([vars(row) for row in rows], indent=1) + "\n")
    problems = sum(len(row.problems) for row in rows)
    print(f"{len(rows)} stories, {sum(row.faults.total() for row in rows):,} faults and inputs, {problems} problems")
    return 1 if problems else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    stories = [*STORIES, RANDOM, FUZZ]
    parser.add_argument("--story", action="append", choices=stories, help="run only this story; repeatable")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="default: random")
    parser.add_argument("--share", type=float, default=1.0, help="share of each story, such as 0.1 (default: all)")
    parser.add_argument("--real", action="store_true", help="use the kube-apiserver in KUBEBUILDER_ASSETS")
    parser.add_argument("--json", help="also write the table to this file, as JSON")
    parser.add_argument("--keep", action="store_true", help="keep logs, and add failing inputs to the corpus")
    return parser.parse_args()


def _rows(options: argparse.Namespace, names: list[str]) -> Iterator[Row]:
    for name in names:
        if name == RANDOM:
            yield _random_events_row(options)
        elif name == FUZZ:
            yield _fuzz_row(options)
        else:
            yield _story_row(options, name)


def _story_row(options: argparse.Namespace, name: str) -> Row:
    story, amount, _ = STORIES[name]
    row = Row(name, options.seed)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        story(row, folder / "world", _real if options.real else Embedded, max(1, int(amount * options.share)))
    finally:
        if options.keep:
            print(f"    logs are in {folder}")
        else:
            shutil.rmtree(folder)
    return row


def _real(folder: Path) -> Plane:
    found = folders()
    if not found:
        sys.exit("--real needs KUBEBUILDER_ASSETS, a folder with kube-apiserver and etcd")
    return Real(found[0], folder)


def _random_events_row(options: argparse.Namespace) -> Row:
    """Run long sequences of random events in virtual time, with regular checks."""
    row, started = Row(RANDOM, options.seed), time.monotonic()
    seeds = range(options.seed, options.seed + max(1, int(SEEDS * options.share)))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for bound, problem in pool.map(_one_random_run, seeds):
            row.faults["events"] += EVENTS
            row.bound += bound
            row.other += [problem] if problem else []
    row.seconds = time.monotonic() - started
    return row


def _one_random_run(seed: int) -> tuple[int, str]:
    try:
        chaos = run_events(random.Random(seed), EVENTS, check_every=1000)
    except Exception as error:
        return 0, f"seed {seed}: {type(error).__name__}: {error}"
    return len(chaos.harness.cluster.bindings), ""


def _fuzz_row(options: argparse.Namespace) -> Row:
    """Run mutated inputs through all parsers of external input."""
    row, started = Row(FUZZ, options.seed), time.monotonic()
    each = max(1, int(INPUTS * options.share) // len(TARGETS) + 1)
    with ProcessPoolExecutor(os.cpu_count(), initializer=fuzzing.limit_memory, max_tasks_per_child=1) as pool:
        found = {name: pool.submit(fuzzing.fuzz, name, options.seed, each) for name in TARGETS}
        for name, finds in found.items():
            row.faults[name] += each
            for find in finds.result():
                kept = f" ({fuzzing.add_to_corpus(find)})" if options.keep else ""
                row.other.append(f"{name}: {find.data[:80]!r}: {find.trace.splitlines()[-1]}{kept}")
    row.seconds = time.monotonic() - started
    return row


if __name__ == "__main__":
    sys.exit(main())
