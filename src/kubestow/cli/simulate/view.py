"""`kubestow view`: results of a simulation, or a recording that is run again, on a page to look at."""

from pathlib import Path
from typing import Any

import click

from kubestow.cli.support import fail, plugin_option


@click.command("view", context_settings={"max_content_width": 120})
@click.argument("results", metavar="DIR|RECORDING", type=click.Path(path_type=Path))
@click.argument("other", metavar="[DIR|RECORDING]", required=False, type=click.Path(path_type=Path))
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Of the page; without it, any that is free.")
@click.option("--config", "configuration", metavar="FILE", help="Configuration with which recordings are run again.")
@plugin_option
def command(results: Path, other: Path | None, **options: Any) -> None:
    """Show what `kubestow simulate --out DIR` or `kubestow replay --out DIR` wrote, or a recording.

    A recording is run again first. With two, what moved between them is shown, too. It prints the address of the page,
    which only this machine can reach; Ctrl-C ends it.
    """
    # Imported only now: help and usage errors must not pay for a cluster.
    from kubestow.cli.simulate.process import SimulateError
    from kubestow.cli.simulate.view_process import view
    from kubestow.server.http.listening import ListenError
    from kubestow.simulator.page_files import ViewError

    try:
        view([results] if other is None else [results, other], **options)
    except (ViewError, SimulateError, ListenError) as error:
        fail(error)
