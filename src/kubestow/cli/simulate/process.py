"""The process of `kubestow simulate`: read files, run with a progress bar, write results, print a summary."""

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from kubestow import config
from kubestow.api.custom_kinds import kinds_by_name
from kubestow.api.files import ObjectsError
from kubestow.cli import configuration_file
from kubestow.cli.support import CommandError, PollData
from kubestow.cli.terminal import console
from kubestow.config import ConfigError, SchedulerConfiguration
from kubestow.insight.page.run import page_configuration
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.simulator import running
from kubestow.simulator.contents import ObjectError
from kubestow.simulator.decision_lines import NODES
from kubestow.simulator.in_memory.polled_values import PolledValueError
from kubestow.simulator.page_files import record_moments
from kubestow.simulator.recording.files import is_recording
from kubestow.simulator.recording.replaying import Replay
from kubestow.simulator.results import format_duration, summary
from kubestow.simulator.scenario.building import Prepared
from kubestow.simulator.scenario.reading import Scenario, read

_DEFAULTS = config.Features()
_NO_VALUES = PollData()
_MOMENTS = 600
"""Approximate number of moments of a run to store."""


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
    polled: PollData = _NO_VALUES,
) -> running.Run:
    """Simulate with a progress bar. Raises CommandError."""
    with problems():
        # First the configuration, which may name installed plugins.
        chosen = load_configuration(configuration, plugins, features)
        polled.require_plugins(plugins)
        source = source_of(files, plugins.declared_kinds)
        watching = None
        if out is not None:
            length = source.longest if source.duration is None else source.duration
            every = min(max(length / _MOMENTS, 1.0), source.sample)
            watching = partial(
                record_moments, folder=out, every=every, configuration=page_configuration(chosen, features, plugins)
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
                polled=polled,
                watching=watching,
            )


def report(done: running.Run, out: Path | None) -> None:
    """Print the summary of a run, and the path of its results."""
    for line in summary(done.results):
        click.echo(line)
    if out is not None:
        click.echo(f"Wrote {out / 'report.html'}, results.json, samples.csv and decisions.jsonl.")
        click.echo(f"See it: kubestow view {shlex.quote(str(out))}")


def require_recording(file: str) -> None:
    """Raise CommandError if a file is not a recording."""
    with problems():
        Path(file).open("rb").close()
    if not is_recording(file):
        raise CommandError(f"{file}: is not a readable recording; kubestow record creates recordings")


def source_of(files: tuple[str, ...], declared: Iterable[type] = ()) -> running.Source:
    """Return the scenario or the recording in files. Raises ObjectsError, OSError.

    `declared` are the kinds of plugins.
    """
    if len(files) == 1 and is_recording(files[0]):
        recording = Replay(Path(files[0]))
        if not recording.is_ended:
            why = "its recorder was killed or is still running, and the last changes may be missing"
            click.echo(f"{files[0]}: is incomplete: {why}.", err=True)
        scheduled, kept = recording.pods()
        if kept:
            nothing = "" if scheduled else "; there is nothing to decide: record while pods arrive"
            click.echo(f"Pods bound at the start: {kept}; scheduled again: {scheduled}{nothing}.", err=True)
        return recording
    return Prepared(read_scenario(files, declared))


def read_scenario(files: tuple[str, ...], declared: Iterable[type] = ()) -> Scenario:
    """Return the scenario in files, and report ignored objects. Raises ObjectsError."""
    scenario = read(files, kinds_by_name(declared))
    for kind, count in sorted(scenario.skipped.items()):
        click.echo(f"Ignored: {count} of kind {kind}, which simulations do not use", err=True)
    return scenario


def load_configuration(
    file: str | None, plugins: PluginCollection, features: config.Features = _DEFAULTS
) -> SchedulerConfiguration:
    """Return the scheduler's configuration; `default` is that without a file. Raises CommandError."""
    if file is None or file == "default":
        return config.default(features)
    try:
        return configuration_file.load(file, features, plugins)
    except ConfigError as error:
        raise CommandError("\n".join(f"{file}: {problem}" for problem in error.problems)) from None


@contextmanager
def problems() -> Iterator[None]:
    """Raise errors of files as CommandError."""
    try:
        yield
    except (ObjectsError, ObjectError, PolledValueError, ProfileError) as error:
        raise CommandError(str(error)) from None
    except BrokenPipeError:
        # The reader of standard output closed it; that is not an error of a file.
        raise
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None


@contextmanager
def _progress() -> Iterator[running.Progress | None]:
    """Show a progress bar on a terminal, nothing elsewhere."""
    output = console(stderr=True)
    if not output.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[pods]} pods"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=output, transient=True) as bar:
        task = bar.add_task("simulating", total=None, pods=0)

        def update(seconds: float, end: float, bound: int) -> None:
            bar.update(
                task,
                completed=seconds,
                total=end,
                pods=bound,
                description=f"{format_duration(seconds)} of {format_duration(end)}",
            )

        yield update
