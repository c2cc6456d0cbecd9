"""`kubestow replay`: replays a recording in virtual time."""

from pathlib import Path
from typing import Any

import click

from kubestow.cli.support import decision_nodes_option, fail, plugin_option, require_out, timings_option


@click.command("replay", context_settings={"max_content_width": 120})
@click.argument("file")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random choices.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder to write report, results and decisions to."
)
@click.option("--config", "configuration", metavar="FILE", help="Configuration of the scheduler.")
@click.option(
    "--speed",
    type=click.Choice(["virtual"]),
    default="virtual",
    expose_value=False,
    help="Replay as fast as possible.",
)
@timings_option
@decision_nodes_option
@plugin_option
def command(file: str, out: Path | None, **options: Any) -> None:
    """Replay a recording: the cluster changes as recorded, and the scheduler decides again."""
    require_out(out)
    # Imported only now: help and usage errors must stay fast.
    from kubestow.cli.simulate.process import SimulateError, report, require_recording, simulate

    try:
        require_recording(file)
        report(simulate((file,), out=out, **options), out)
    except SimulateError as error:
        fail(error)
