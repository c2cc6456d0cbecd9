"""`kubestow replay`: a recording, run again in virtual time."""

from pathlib import Path
from typing import Any

import click

from kubestow.cli.support import decision_nodes_option, demand_out, fail, plugin_option, timings_option


@click.command("replay", context_settings={"max_content_width": 120})
@click.argument("file")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of every choice by chance.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write report, results and decisions here."
)
@click.option("--config", "configuration", metavar="FILE", help="Configuration of the scheduler.")
@click.option(
    "--speed",
    type=click.Choice(["virtual"]),
    default="virtual",
    expose_value=False,
    help="As fast as it can be computed.",
)
@timings_option
@decision_nodes_option
@plugin_option
def command(file: str, out: Path | None, **options: Any) -> None:
    """Run a recording again: the cluster changes as it did, and the scheduler decides anew."""
    demand_out(out)
    # Imported only now: help and usage errors must not pay for a cluster.
    from kubestow.cli.simulate.process import SimulateError, demand_recording, report, simulate

    try:
        demand_recording(file)
        report(simulate((file,), out=out, **options), out)
    except SimulateError as error:
        fail(error)
