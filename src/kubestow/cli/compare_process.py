"""Running `kubestow compare`."""

from functools import partial
from pathlib import Path

import click

from kubestow.cli.simulate_process import load_configuration, problems, source_of
from kubestow.config import SchedulerConfiguration
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator import comparison_report
from kubestow.simulator.comparing import compare
from kubestow.simulator.results import as_json as encoded
from kubestow.simulator.results import write_whole
from kubestow.simulator.running import Source
from kubestow.simulator.simulation import Simulation


def run(
    configurations: tuple[str, str], files: tuple[str, ...], seeds: int, out: Path | None, plugins: PluginCollection,
    *, as_json: bool,
) -> None:  # fmt: skip
    """Compare, and tell; raises SimulateError."""
    with problems():
        source = source_of(files)
        chosen = [load_configuration(None if one == "default" else one, plugins) for one in configurations]
        makes = [partial(_make, source, one, plugins.sources) for one in chosen]
        found = compare(makes[0], makes[1], list(range(1, seeds + 1)))
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            title = f"A: {configurations[0]}, B: {configurations[1]}"
            write_whole(out / "results.json", encoded(comparison_report.as_tree(found)))
            write_whole(out / "report.html", comparison_report.page_of(found, title).encode())
    if as_json:
        click.echo(encoded(comparison_report.as_tree(found)), nl=False)
        return
    click.echo(f"A: {configurations[0]}\nB: {configurations[1]}")
    for line in comparison_report.lines(found):
        click.echo(line)


def _make(
    source: Source, configuration: SchedulerConfiguration, sources: tuple[str, ...], seed: int
) -> tuple[Simulation, float]:
    simulation = source.simulation(seed=seed, configuration=configuration, plugin_sources=sources)
    return simulation, source.longest if source.duration is None else source.duration
