"""`kubestow view`: serves a web page with the results of a simulation, or of a recording that is replayed."""

from pathlib import Path
from typing import Any

import click

from kubestow.cli.support import fail, plugin_option


@click.command("view", context_settings={"max_content_width": 120})
@click.argument("results", metavar="DIR|RECORDING", type=click.Path(path_type=Path))
@click.argument("other", metavar="[DIR|RECORDING]", required=False, type=click.Path(path_type=Path))
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Port of the page; 0: any free port.")
@click.option("--config", "configuration", metavar="FILE", help="Configuration to replay recordings with.")
@plugin_option
def command(results: Path, other: Path | None, **options: Any) -> None:
    """Show the results of `kubestow simulate --out DIR` or `kubestow replay --out DIR`, or a recording.

    A recording is replayed first. With two arguments, the differences are shown, too. Prints the address of the page,
    which only this machine can reach. Press Ctrl-C to stop.
    """
    # Imported only now: help and usage errors must stay fast.
    from kubestow.cli.simulate.process import SimulateError
    from kubestow.cli.simulate.view_process import view
    from kubestow.server.http.listening import ListenError
    from kubestow.simulator.page_files import ViewError

    try:
        view([results] if other is None else [results, other], **options)
    except (ViewError, SimulateError, ListenError) as error:
        fail(error)
