"""`kubestow sweep`: one scenario, many times, each time with other fields."""

import sys
from pathlib import Path
from typing import Any

import click

from kubestow.cli.support import fail, plugin_option

_VARY = "What to vary, such as config.percentageOfNodesToScore=10,50 or scenario.spec.nodes[0].count=4..9; repeatable."
_OBJECTIVES = ("wait", "wait95", "pending", "evictions", "fragmentation", "bound", "cpu")


@click.command("sweep", context_settings={"max_content_width": 120})
@click.argument("scenario", metavar="SCENARIO...", nargs=-1, required=True)
@click.option("--vary", metavar="FIELD=V,V,...", multiple=True, help=_VARY)
@click.option("--list", "listed", type=click.Path(path_type=Path, dir_okay=False), help="CSV: a column for each field.")
@click.option("--random", "draws", type=click.IntRange(1), default=None, help="Draw so many different combinations.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=1, show_default=True, help="How many, from 1 on.")
@click.option("--config", "configuration", metavar="FILE", help="Configuration of the scheduler, to be varied.")
@plugin_option
@click.option(
    "--by", "objective", type=click.Choice(_OBJECTIVES), default="wait", show_default=True, help="What is best."
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Results; a sweep goes on here."
)
@click.option("--workers", type=click.IntRange(1), help="Processes. [default: one for each core]")
@click.option("--dask", metavar="ADDRESS", help="Run on a Dask cluster, such as tcp://HOST:8786; needs kubestow[dask].")
@click.option("--ray", metavar="ADDRESS", help="Run on a Ray cluster, such as HOST:6379 or auto; needs kubestow[ray].")
def command(draws: int | None, **options: Any) -> None:
    """Simulate a scenario with many configurations, seeds or sizes, and tell which did best.

    A field begins with `config.` for the scheduler's configuration, or `scenario.` for the Scenario. Lists are combined
    with each other; a range LOW..HIGH is drawn from with --random. Started again with the same --out, a sweep that was
    killed or stopped goes on where it was.
    """
    # Imported only now: help and usage errors must not pay for a cluster.
    from kubestow.cli.simulate.process import SimulateError
    from kubestow.cli.simulate.sweep_process import Request, run
    from kubestow.simulator.sweeping import SweepStopped

    try:
        run(Request(draws=draws or 0, **options))
    except SimulateError as error:
        fail(error)
    except SweepStopped as stopped:
        click.echo(f"Stopped: {stopped}. The same command with the same --out goes on from there.", err=True)
        sys.exit(130)
