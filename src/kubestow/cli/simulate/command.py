"""`kubestow simulate`: a cluster in virtual time, from files."""

from pathlib import Path
from typing import Any

import click

from kubestow.cli.support import (
    decision_nodes_option,
    demand_out,
    fail,
    feature_gates_option,
    plugin_option,
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
@click.option("--seed", type=click.IntRange(0), help="Of every choice by chance. [default: the scenario's]")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write report, results and decisions here."
)
@click.option("--config", "configuration", metavar="FILE", help="Configuration of the scheduler.")
@click.option("--check", "checked", is_flag=True, help="Check invariants at every moment.")
@timings_option
@decision_nodes_option
@feature_gates_option("Features of the scheduler to turn on or off, such as those of pod groups.")
@plugin_option
def command(out: Path | None, **options: Any) -> None:
    """Simulate a cluster in virtual time and say what came of it.

    SCENARIO are files or folders, `-` is standard input: ordinary Kubernetes objects, as kubectl writes them too, and a
    Scenario that says what happens and when. Ctrl-C ends a run early; what ran is reported.
    """
    demand_out(out)
    # Imported only now: help and usage errors must not pay for a cluster.
    from kubestow.cli.simulate.process import SimulateError, report, simulate

    try:
        report(simulate(out=out, **options), out)
    except SimulateError as error:
        fail(error)
