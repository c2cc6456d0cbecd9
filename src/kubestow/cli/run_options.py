"""--decision-nodes and --timings, for commands that write decisions.jsonl and a report."""

import click

decision_nodes_option = click.option(
    "--decision-nodes",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    metavar="COUNT",
    help="Of how many nodes each decision tells what plugins said, the best first.",
)
timings_option = click.option("--timings", "timed", is_flag=True, help="Tell how long plugins took on this machine.")
