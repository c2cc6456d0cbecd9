"""The process of `kubestow compare`: each side runs in this process, or in another version of the program."""

import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from kubestow.cli.simulate.process import load_configuration, problems, source_of
from kubestow.cli.support import CommandError, PollData, report_count
from kubestow.config import Features, SchedulerConfiguration
from kubestow.config.features import FeatureGateError
from kubestow.plugin.loading import PluginCollection, PluginLoadError
from kubestow.simulator import comparison_report, running
from kubestow.simulator.comparing import NODES, CompareError, Comparison, RunSeed, compare
from kubestow.simulator.results import as_json as encoded
from kubestow.simulator.results import write_atomically
from kubestow.simulator.running import Source


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the comparison, A or B."""

    configuration: str
    """A file, or `default`."""
    plugins: tuple[str, ...]
    python: str | None
    """The interpreter that has the version of kubestow to run; None: this one."""


def run(
    sides: tuple[Side, Side],
    files: tuple[str, ...],
    seeds: int,
    out: Path | None,
    gates: str,
    polled: PollData,
    *,
    as_json: bool,
) -> None:
    """Compare and print the result; both sides get the values of `polled`. Raises CommandError."""
    with problems(), TemporaryDirectory(prefix="kubestow-compare-") as scratch:
        if "-" in files and any(side.python for side in sides):
            raise CommandError("standard input can be read only once: --python-a and --python-b need files")
        here = [_chosen(side, gates)[0] for side in sides if not side.python]
        if len(here) == len(sides):
            polled.require_plugins(*here)
        kinds = tuple(kind for plugins in here for kind in plugins.declared_kinds)
        source = source_of(files, kinds) if here else None
        run_a, run_b = (_runner(side, files, source, kinds, gates, polled) for side in sides)
        try:
            found = compare(run_a, run_b, list(range(1, seeds + 1)), out or Path(scratch), report_count)
        except CompareError as error:
            raise CommandError(str(error)) from None
        names = [_name(side, found.versions[number]) for number, side in enumerate(sides)]
        if out is not None:
            _write(out, found, f"A: {names[0]}, B: {names[1]}")
    if as_json:
        click.echo(encoded(comparison_report.as_tree(found)), nl=False)
        return
    click.echo(f"A: {names[0]}\nB: {names[1]}")
    for line in comparison_report.lines(found):
        click.echo(line)
    if out is not None:
        click.echo(f"Wrote {out / 'report.html'}, results.json and all runs.")


def _chosen(side: Side, gates: str) -> tuple[PluginCollection, Features, SchedulerConfiguration]:
    """Return the plugins, gates and configuration of a side. Raises CommandError."""
    try:
        plugins, features = PluginCollection(side.plugins), Features.parse(gates)
    except (PluginLoadError, FeatureGateError) as error:
        raise CommandError(str(error)) from None
    return plugins, features, load_configuration(side.configuration, plugins, features)


def _name(side: Side, version: str) -> str:
    plugins = f" with {', '.join(side.plugins)}" if side.plugins else ""
    return f"{side.configuration}{plugins}" + (f" (kubestow {version} of {side.python})" if side.python else "")


def _write(out: Path, found: Comparison, title: str) -> None:
    write_atomically(out / "results.json", encoded(comparison_report.as_tree(found)))
    write_atomically(out / "report.html", comparison_report.page_of(found, title).encode())


def _runner(
    side: Side, files: tuple[str, ...], source: Source | None, kinds: tuple[type, ...], gates: str, polled: PollData
) -> RunSeed:
    """Return the runner of a side. Raises CommandError if its configuration or plugins are invalid.

    `kinds` are those of the plugins of both sides, as both get the same objects.
    """
    if side.python is not None:
        return partial(_run_elsewhere, side.python, _arguments(side, files, gates, polled))
    assert source is not None
    plugins, features, configuration = _chosen(side, gates)

    def run_here(seed: int, folder: Path) -> None:
        running.run(
            source,
            folder,
            decision_nodes=NODES,
            seed=seed,
            configuration=configuration,
            plugin_sources=plugins.sources,
            kinds=kinds,
            features=features,
            polled=polled,
        )

    return run_here


def _arguments(side: Side, files: tuple[str, ...], gates: str, polled: PollData) -> list[str]:
    found = ["simulate", *files, "--decision-nodes", str(NODES)]
    if gates:
        found += ["--feature-gates", gates]
    if side.configuration != "default":
        found += ["--config", side.configuration]
    for plugin in side.plugins:
        found += ["--plugin", plugin]
    for one in polled.given:
        found += ["--poll-data", one]
    return found


def _run_elsewhere(python: str, arguments: list[str], seed: int, folder: Path) -> None:
    command = [python, "-m", "kubestow", *arguments, "--seed", str(seed), "--out", str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 what the user names
    if ran.returncode:
        said = ran.stderr.strip().splitlines()[-5:] or [f"ended with exit code {ran.returncode}"]
        raise CommandError("\n".join(f"{python}: {line.removeprefix('Error: ')}" for line in said))
