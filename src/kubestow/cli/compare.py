"""`kubestow compare`: two configurations on one scenario or recording."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubestow.cli.plugin_option import plugin_option

if TYPE_CHECKING:
    from kubestow.plugin.loading import PluginCollection


@click.command("compare", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.argument("a", metavar="CONFIG_A")
@click.argument("b", metavar="CONFIG_B")
@click.option("--on", "files", metavar="FILE", multiple=True, required=True, help="Scenario or recording; repeatable.")
@click.option("--seeds", type=click.IntRange(1, 1000), default=5, show_default=True, help="How many, from 1 on.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write report.html and results.json here."
)
@click.option("-o", "--output", type=click.Choice(["json"]), help="JSON instead of words.")
@plugin_option
def command(
    a: str, b: str, files: tuple[str, ...], seeds: int, out: Path | None, output: str | None,
    plugins: "PluginCollection",
) -> None:  # fmt: skip
    """Run two scheduler configurations on the same thing and tell what differs, and why.

    CONFIG_A and CONFIG_B are files, or `default`. Plugins of your own are loaded for both; a configuration that does
    not name them runs without them.
    """
    # Imported only now: help and usage errors must not pay for a cluster.
    from kubestow.cli.compare_process import run
    from kubestow.cli.simulate_process import SimulateError

    try:
        run((a, b), files, seeds, out, plugins, as_json=output is not None)
    except SimulateError as error:
        for line in str(error).splitlines():
            click.echo(f"Error: {line}", err=True)
        sys.exit(1)
