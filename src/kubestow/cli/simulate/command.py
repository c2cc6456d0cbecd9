"""`kubestow simulate`: a cluster in virtual time, from files."""

from pathlib import Path
from typing import Any

import click

from kubestow.cli.support import (
    decision_nodes_option,
    fail,
    feature_gates_option,
    plugin_option,
    require_out,
    timings_option,
)


def _init(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        from kubestow.simulator.scenario.example import EXAMPLE

        click.echo(EXAMPLE, nl=False)
        context.exit()


@click.command("simulate", context_settings={"max_content_width": 120})
@click.argument("files", metavar="SCENARIO...", nargs=-1, required=True)
@click.option("--init", is_flag=True, is_eager=True, expose_value=False, callback=_init, help="Print an example.")
@click.option("--seed", type=click.IntRange(0), help="Seed of all random choices. [default: the scenario's]")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder to write report, results and decisions to."
)
@click.option("--config", "configuration", metavar="FILE", help="Configuration of the scheduler.")
@click.option("--check", "checked", is_flag=True, help="Check invariants after every event.")
@timings_option
@decision_nodes_option
@feature_gates_option("Features of the scheduler to turn on or off, such as pod groups.")
@plugin_option
def command(out: Path | None, **options: Any) -> None:
    """Simulate a cluster in virtual time and report the results.

    SCENARIO is files or folders, `-` is standard input: Kubernetes objects, as kubectl writes them, and a Scenario that
    lists events and their times. Ctrl-C ends a run early; its results so far are reported.
    """
    require_out(out)
    # Imported only now: help and usage errors must stay fast.
    from kubestow.cli.simulate.process import SimulateError, report, simulate

    try:
        report(simulate(out=out, **options), out)
    except SimulateError as error:
        fail(error)
