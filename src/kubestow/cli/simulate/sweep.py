"""`kubestow sweep`: simulates one scenario many times with different field values."""

import sys
from pathlib import Path
from typing import Any

import click

from kubestow.cli.support import fail, plugin_option

_VARY = (
    "Field and values, such as config.percentageOfNodesToScore=10,50 or scenario.spec.nodes[0].count=4..9; repeatable."
)
_OBJECTIVES = ("wait", "wait95", "pending", "evictions", "fragmentation", "bound", "cpu")


@click.command("sweep", context_settings={"max_content_width": 120})
@click.argument("scenario", metavar="SCENARIO...", nargs=-1, required=True)
@click.option("--vary", metavar="FIELD=V,V,...", multiple=True, help=_VARY)
@click.option("--list", "listed", type=click.Path(path_type=Path, dir_okay=False), help="CSV: a column per field.")
@click.option("--random", "draws", type=click.IntRange(1), default=None, help="Number of combinations to draw.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=1, show_default=True, help="Number of seeds, from 1.")
@click.option("--config", "configuration", metavar="FILE", help="Configuration of the scheduler to vary.")
@plugin_option
@click.option("--by", "objective", type=click.Choice(_OBJECTIVES), default="wait", show_default=True, help="Objective.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for results; an interrupted sweep continues.",
)
@click.option("--workers", type=click.IntRange(1), help="Number of processes. [default: one per core]")
@click.option("--dask", metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://HOST:8786; needs kubestow[dask].")
@click.option("--ray", metavar="ADDRESS", help="Run on a Ray cluster, such as HOST:6379 or auto; needs kubestow[ray].")
def command(draws: int | None, **options: Any) -> None:
    """Simulate a scenario with many configurations, seeds or sizes, and rank the results.

    A field begins with `config.` for the scheduler's configuration, or `scenario.` for the Scenario. All combinations
    of lists are simulated; values of a range LOW..HIGH are drawn with --random. An interrupted sweep continues when it
    is started again with the same --out.
    """
    # Imported only now: help and usage errors must stay fast.
    from kubestow.cli.simulate.process import SimulateError
    from kubestow.cli.simulate.sweep_process import Request, run
    from kubestow.simulator.sweeping import SweepStopped

    try:
        run(Request(draws=draws or 0, **options))
    except SimulateError as error:
        fail(error)
    except SweepStopped as stopped:
        click.echo(f"Stopped: {stopped}. Run the same command with the same --out to continue.", err=True)
        sys.exit(130)
