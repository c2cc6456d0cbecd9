"""Running `kubestow simulate`: read, run with a progress bar where there is a terminal, write, summarise."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from kubestow import config
from kubestow.api.files import ObjectsError
from kubestow.cli import configuration_file
from kubestow.config import ConfigError, SchedulerConfiguration
from kubestow.insight.page.run import configuration_told
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.simulator import running
from kubestow.simulator.contents import ObjectError
from kubestow.simulator.decision_lines import NODES
from kubestow.simulator.page_files import kept
from kubestow.simulator.recording.files import is_recording
from kubestow.simulator.recording.replaying import Replay
from kubestow.simulator.results import span, summary
from kubestow.simulator.scenario.building import Prepared
from kubestow.simulator.scenario.reading import Scenario, read

_DEFAULTS = config.Features()
_MOMENTS = 600
"""About how many moments of a run are kept."""


class SimulateError(Exception):
    """It cannot be simulated; each line of the message says why."""


def simulate(
    files: tuple[str, ...],
    seed: int | None,
    out: Path | None,
    configuration: str | None,
    plugins: PluginCollection,
    features: config.Features = _DEFAULTS,
    decision_nodes: int = NODES,
    *,
    checked: bool = False,
    timed: bool = False,
) -> running.Run:
    """Simulate, with a progress bar; raises SimulateError."""
    with problems():
        source = source_of(files)
        chosen = load_configuration(configuration, plugins, features)
        watching = None
        if out is not None:
            length = source.longest if source.duration is None else source.duration
            every = min(max(length / _MOMENTS, 1.0), source.sample)
            watching = partial(
                kept, folder=out, every=every, configuration=configuration_told(chosen, features, plugins)
            )
        with _progress() as progress:
            return running.run(
                source,
                out,
                progress,
                name=", ".join(Path(file).name for file in files),
                decision_nodes=decision_nodes,
                seed=seed,
                configuration=chosen,
                plugin_sources=plugins.sources,
                features=features,
                checked=checked,
                timed=timed,
                watching=watching,
            )


def report(done: running.Run, out: Path | None) -> None:
    """Print the summary of a run, and where its results are."""
    for line in summary(done.results):
        click.echo(line)
    if out is not None:
        click.echo(f"Wrote {out / 'report.html'}, results.json, samples.csv and decisions.jsonl.")
        click.echo(f"See it: kubestow view {shlex.quote(str(out))}")


def demand_recording(file: str) -> None:
    """Raise SimulateError if a file is not a recording."""
    with problems():
        Path(file).open("rb").close()
    if not is_recording(file):
        raise SimulateError(f"{file}: is not a recording that can be read; kubestow record makes them")


def source_of(files: tuple[str, ...]) -> running.Source:
    """The scenario or the recording in files; raises ObjectsError, OSError."""
    if len(files) == 1 and is_recording(files[0]):
        recording = Replay(Path(files[0]))
        if not recording.is_ended:
            why = "its recorder was killed or still records, and what came last may be missing"
            click.echo(f"{files[0]}: has no end: {why}.", err=True)
        anew, kept = recording.pods()
        if kept:
            nothing = "" if anew else "; there is nothing to decide: record while pods arrive"
            click.echo(f"Pods with a node from the beginning: {kept}; placed anew: {anew}{nothing}.", err=True)
        return recording
    return Prepared(read_scenario(files))


def read_scenario(files: tuple[str, ...]) -> Scenario:
    """The scenario in files, what has no part in it told; raises ObjectsError."""
    scenario = read(files)
    for kind, count in sorted(scenario.skipped.items()):
        click.echo(f"Left out: {count} of kind {kind}, which has no part in a simulation", err=True)
    return scenario


def load_configuration(
    file: str | None, plugins: PluginCollection, features: config.Features = _DEFAULTS
) -> SchedulerConfiguration:
    """The scheduler's configuration; raises SimulateError."""
    if file is None:
        return config.default(features)
    try:
        return configuration_file.load(file, features, plugins)
    except ConfigError as error:
        raise SimulateError("\n".join(f"{file}: {problem}" for problem in error.problems)) from None


@contextmanager
def problems() -> Iterator[None]:
    """What is wrong with files becomes a SimulateError."""
    try:
        yield
    except (ObjectsError, ObjectError, ProfileError) as error:
        raise SimulateError(str(error)) from None
    except BrokenPipeError:
        # Whoever read what is printed has had enough; that is no problem with files.
        raise
    except OSError as error:
        raise SimulateError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None


@contextmanager
def _progress() -> Iterator[running.Progress | None]:
    """A bar on the terminal, nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[pods]} pods"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("simulating", total=None, pods=0)

        def tell(seconds: float, end: float, bound: int) -> None:
            bar.update(task, completed=seconds, total=end, pods=bound, description=f"{span(seconds)} of {span(end)}")

        yield tell
