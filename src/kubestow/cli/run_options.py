"""--decision-nodes and --timings, for commands that write decisions.jsonl and a report."""

from pathlib import Path

import click
from click.core import ParameterSource

decision_nodes_option = click.option(
    "--decision-nodes",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    metavar="COUNT",
    help="Of how many nodes each decision tells what plugins said, the best first.",
)
timings_option = click.option("--timings", "timed", is_flag=True, help="Report how long plugins took on this machine.")


def demand_out(out: Path | None) -> None:
    """Raise UsageError if flags are given about what is written, and nothing is."""
    context = click.get_current_context()
    for name, flag in (("timed", "--timings"), ("decision_nodes", "--decision-nodes")):
        if out is None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{flag}: has no effect without --out, where reports and decisions are written")
